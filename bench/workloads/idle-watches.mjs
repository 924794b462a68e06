// What a thousand watches that nothing happens to cost a server: resident memory and processor
// time, read from Linux's /proc.

import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";

const WATCHES = 1000;
const CONNECTIONS = 20;
const SECONDS = 10;
/** How a clock tick of /proc translates: Linux has 100 a second everywhere. */
const TICK_MS = 10;
/** The request for a watch of one key, "a". */
const BODY = Buffer.from("0a050a03026100", "hex");

/** Opens the watches, waits, and answers a line of text. */
export async function idleWatches({ url, pid, accessToken }) {
  if (!existsSync("/proc/self/status")) return "idle watches are measured on Linux only";
  const answer = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${accessToken}`, "content-type": "application/json" },
    body: '{"supportedVersions":[2,3]}',
  });
  const { token, databaseId, endpoints } = await answer.json();
  const path = new URL(`${endpoints[0].url}/watch`, url).pathname;
  const before = residentMb(pid);
  const sessions = Array.from({ length: CONNECTIONS }, () => connect(url));
  let open = 0;
  for (let n = 0; n < WATCHES; n++) {
    const stream = sessions[n % CONNECTIONS].request({
      ":method": "POST",
      ":path": path,
      authorization: `Bearer ${token}`,
      "x-denokv-version": "3",
      "x-denokv-database-id": databaseId,
      "content-type": "application/x-protobuf",
    });
    stream.end(BODY);
    await once(stream, "response");
    stream.once("data", () => open++);
    stream.on("data", () => {});
  }
  while (open < WATCHES) await sleep(20);
  await sleep(1000);
  const busy = processorMs(pid);
  await sleep(SECONDS * 1000);
  const used = (processorMs(pid) - busy) / SECONDS;
  const resident = residentMb(pid);
  for (const session of sessions) session.destroy();
  return (
    `${WATCHES} idle watches, ${resident.toFixed(1)} MB resident, ` +
    `${(resident - before).toFixed(1)} MB more than without, ${used.toFixed(1)} ms of processor a second`
  );
}

function residentMb(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
}

/** Processor time that a process has used so far; 0 where nothing tells. */
export function processorMs(pid) {
  if (!existsSync("/proc/self/stat")) return 0;
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
