// How many entries a second a server exports.

import { processorMs } from "../workloads/idle-watches.mjs";

const AIM = 150_000;
const NEWLINE = 10;

/** Reads one export and returns a line of text. */
export async function exported({ url, pid, accessToken }, entries) {
  const { paths } = await (await fetch(`${url}/openapi.json`)).json();
  if (paths["/api/export"] === undefined) return "this server has no route /export";
  const [start, busy] = [performance.now(), processorMs(pid)];
  const headers = { authorization: `Bearer ${accessToken}`, "accept-encoding": "identity" };
  const answer = await fetch(`${url}/api/export`, { headers });
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  let [lines, bytes] = [0, 0];
  for await (const piece of answer.body) {
    bytes += piece.length;
    for (let at = piece.indexOf(NEWLINE); at !== -1; at = piece.indexOf(NEWLINE, at + 1)) lines++;
  }
  const seconds = (performance.now() - start) / 1000;
  const used = (processorMs(pid) - busy) / 1000;
  if (lines !== entries) throw new Error(`${lines} lines instead of ${entries}`);
  const rate = lines / seconds;
  const round = (n) => Math.round(n).toLocaleString("en");
  return (
    `GET /export of ${round(entries)} entries: ${round(rate)}/s (≥ ${round(AIM)}) ` +
    `${rate >= AIM ? "✓" : "✗"}, ${(bytes / 1e6 / seconds).toFixed(0)} MB/s, ` +
    `${round(lines / used)} per second of processor`
  );
}
