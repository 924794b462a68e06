// Duty: clients of others against our server: Deno's built-in one, the npm client, and on request
// the Python one; over HTTP on a file.
//
//   node __test__/peers/run.mjs               Deno (of __test__/runtime) and npm (of this folder)
//   node __test__/peers/run.mjs --python      Python too: pip install denokv first

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openKv, serve } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { deno } from "../runtime/binaries.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const RUN_MS_MAX = 60_000;

const folder = newFolder("peers");
const path = join(folder, "kv.sqlite3");
const accessToken = "token-of-the-peers";
const server = await serve({ path, listen: "127.0.0.1:0", accessToken });
const runs = [
  [
    "deno",
    process.env.DENO ?? deno(),
    ["run", "-A", "--quiet", "--no-lock", "--unstable-kv", "deno-client.mjs"],
  ],
  ["npm", process.execPath, ["npm-client.mjs"]],
];
if (process.argv.includes("--python")) runs.push(["python", "python3", ["python-client.py"]]);

let failed = false;
for (const [name, command, args] of runs) {
  const code = await run(command, args);
  if (code !== 0) console.error(`${name}: ended with ${code}`);
  failed ||= code !== 0;
}
await server.close();
await look();
process.exitCode = failed ? 1 : 0;

function run(command, args) {
  const child = spawn(command, args, {
    cwd: here,
    stdio: "inherit",
    timeout: RUN_MS_MAX,
    env: {
      ...process.env,
      SERVER_URL: server.url,
      SERVER_TOKEN: accessToken,
      DENO_KV_ACCESS_TOKEN: accessToken,
    },
  });
  return new Promise((resolve) => {
    child.on("error", resolve);
    child.on("close", (code, signal) => resolve(code ?? signal));
  });
}

/** What the clients wrote lies in the file as openkv writes it. */
async function look() {
  const kv = await openKv(path);
  assert.deepEqual((await kv.get(["deno", "object"])).value, { from: "deno" });
  const cyclic = (await kv.get(["deno", "cyclic"])).value;
  assert.equal(cyclic.self, cyclic);
  assert.equal((await kv.get(["deno", "u64"])).value.value, 7n);
  const message = await new Promise((resolve) => void kv.listenQueue(resolve));
  assert.deepEqual(message, { from: "npm" });
  await kv.close();
}
