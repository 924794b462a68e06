// What idle streams of events cost a server: resident memory and processor time, read from Linux's /proc.
// Each stream has a connection of its own, as in a browser, and watches a key of its own.

import { existsSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { processorMs, residentMb } from "../workloads/idle-watches.mjs";

const SECONDS = 10;
const MB_MAX = 200;
const AT_ONCE = 100;

/** Opens the streams, waits, and returns a line of text. */
export async function idleStreams({ url, pid, accessToken }, count) {
  if (!existsSync("/proc/self/status")) return "idle streams are measured on Linux only";
  const { hostname, port, host } = new URL(url);
  const before = residentMb(pid);
  const sockets = [];
  const open = (n) =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) });
      sockets.push(socket);
      socket.write(
        `GET /api/watch?keys=${encodeURIComponent(`[["idle",${n}]]`)}&initial=false HTTP/1.1\r\nhost: ${host}\r\n` +
          `authorization: Bearer ${accessToken}\r\naccept: text/event-stream\r\n\r\n`,
      );
      socket.on("error", reject);
      socket.on("close", () => reject(new Error("the server has closed a stream")));
      let text = "";
      socket.on("data", (piece) => {
        if (text === undefined) return;
        text += piece;
        if (!text.includes("event: ")) return;
        if (text.startsWith("HTTP/1.1 200")) resolve();
        else reject(new Error(text));
        text = undefined;
      });
    });
  for (let from = 0; from < count; from += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, n) => from + n);
    await Promise.all(numbers.map(open));
  }
  await sleep(1000);
  const busy = processorMs(pid);
  await sleep(SECONDS * 1000);
  const used = (processorMs(pid) - busy) / SECONDS;
  const grown = residentMb(pid) - before;
  for (const socket of sockets) socket.removeAllListeners("close").destroy();
  return (
    `${count} idle streams of events: ${grown.toFixed(1)} MB more than without ` +
    `(≤ ${MB_MAX}) ${grown <= MB_MAX ? "✓" : "✗"}, ${used.toFixed(1)} ms of processor a second`
  );
}
