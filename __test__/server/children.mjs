// Duty: starts and kills servers in separate processes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { endsWithTests, killed } from "../kit/living.mjs";

const script = fileURLToPath(new URL("child.mjs", import.meta.url));
/** The server is Node.js's, also for who starts it from Deno. */
const node = globalThis.Deno ? "node" : process.execPath;

/** Starts a server and waits until it listens. */
export async function spawnServer(options) {
  const child = spawn(node, [script, JSON.stringify(options)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  endsWithTests(child);
  const lines = createInterface({ input: child.stdout });
  const [url] = await Promise.race([once(lines, "line"), once(child, "exit").then(() => [])]);
  if (url === undefined) throw new Error("the server has ended before it listened");
  return { child, url, pid: child.pid };
}

/** Ends it as a power cut would: it learns nothing. */
export async function kill({ child }) {
  await killed(child);
}
