// The processes of bench/http.mjs: the peer, and the client that loads a server.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { processorMs } from "../workloads/idle-watches.mjs";

function start(script, argument) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [path, JSON.stringify(argument)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const line = async () => {
    const [text] = await Promise.race([once(lines, "line"), once(child, "exit").then(() => [])]);
    if (text === undefined) throw new Error(`${script} has ended`);
    return text;
  };
  return { child, line };
}

/** Starts the peer and waits until it listens. */
export async function spawnPeer(options) {
  const { child, line } = start("peer.mjs", options);
  return { child, url: await line(), pid: child.pid };
}

/** Requests per second, by the clock and by the server's processor time. */
export async function load({ url, pid }, options) {
  const { child, line } = start("load.mjs", { url, ...options });
  await line();
  const busy = processorMs(pid);
  child.stdin.write("measure\n");
  const { requests, ms } = JSON.parse(await line());
  const used = processorMs(pid) - busy;
  child.kill();
  return { perSecond: (requests / ms) * 1000, perProcessorSecond: (requests / used) * 1000 };
}
