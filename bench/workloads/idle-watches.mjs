// Measures what a thousand idle watches, or change feeds, cost a server: resident memory and
// processor time, read from Linux's /proc.

import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";

const CONNECTIONS = 20;
const SECONDS = 10;
/** Duration of a clock tick in /proc; Linux has 100 ticks per second on all systems. */
const TICK_MS = 10;
/** The key "a"; the keys between "a" and "b". */
const KINDS = {
  watches: { path: "watch", body: Buffer.from("0a050a03026100", "hex") },
  feeds: { path: "openkv/feed", body: Buffer.from("0003000000026100" + "03000000026200", "hex") },
};

/** Opens `count` watches or feeds, waits, and returns a line of text and its numbers. */
export async function idleWatches({ url, pid, accessToken }, kind = "watches", count = 1000) {
  if (!existsSync("/proc/self/status")) return { text: "idle watches are measured on Linux only" };
  const answer = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${accessToken}`, "content-type": "application/json" },
    body: '{"supportedVersions":[2,3]}',
  });
  const { token, databaseId, endpoints } = await answer.json();
  const path = new URL(`${endpoints[0].url}/${KINDS[kind].path}`, url).pathname;
  const before = residentMb(pid);
  const sessions = Array.from({ length: CONNECTIONS }, () => connect(url));
  let open = 0;
  for (let n = 0; n < count; n++) {
    const stream = sessions[n % CONNECTIONS].request({
      ":method": "POST",
      ":path": path,
      authorization: `Bearer ${token}`,
      "x-denokv-version": "3",
      "x-denokv-database-id": databaseId,
      "content-type": "application/x-protobuf",
    });
    stream.end(KINDS[kind].body);
    await once(stream, "response");
    stream.once("data", () => open++);
    stream.on("data", () => {});
  }
  while (open < count) await sleep(20);
  await sleep(1000);
  const busy = processorMs(pid);
  await sleep(SECONDS * 1000);
  const used = (processorMs(pid) - busy) / SECONDS;
  const resident = residentMb(pid);
  for (const session of sessions) session.destroy();
  const grown = resident - before;
  const text =
    `${count} idle ${kind}, ${resident.toFixed(1)} MB resident, ` +
    `${grown.toFixed(1)} MB more than without, ${used.toFixed(1)} ms of processor a second`;
  return { text, grown, used };
}

/** Resident memory of a process, in MiB. */
export function residentMb(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
}

/** The processor time that a process has used; 0 if unknown. */
export function processorMs(pid) {
  if (!existsSync("/proc/self/stat")) return 0;
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
