// Duty: clients of others against our server: Deno's built-in one, the npm client, and on request
// the Python one; over HTTP on a file, and at a server that does not lead their database: of two servers
// on PostgreSQL, which tell the leader's address, or hand requests over.
//
//   node __test__/peers/run.mjs               Deno (of __test__/runtime) and npm (of this folder)
//   node __test__/peers/run.mjs --python      Python too: pip install denokv first

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { openKv, serve } from "../../index.mjs";
import { Cluster, createAt } from "../kit/cluster.mjs";
import { newFolder } from "../kit/folder.mjs";
import { deno } from "../runtime/binaries.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const RUN_MS_MAX = 60_000;

checkInstalled();

const folder = newFolder("peers");
const path = join(folder, "kv.sqlite3");
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
await runOnFile();
for (const forward of [false, true]) await runBehindLeader({ forward });
process.exitCode = failed ? 1 : 0;

/** Without its packages a client fails, and what it should have written would be waited for. */
function checkInstalled() {
  const { dependencies } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const missing = Object.keys(dependencies).filter(
    (name) => !existsSync(join(here, "node_modules", name, "package.json")),
  );
  if (missing.length === 0) return;
  console.error(`${missing.join(", ")}: not installed. Run: npm ci --prefix __test__/peers`);
  process.exit(1);
}

async function runOnFile() {
  const accessToken = "token-of-the-peers";
  const server = await serve({ path, listen: "127.0.0.1:0", accessToken });
  await runAll(server.url, accessToken);
  await server.close();
  if (!failed) await look();
}

async function runBehindLeader(options) {
  const cluster = await Cluster.create();
  try {
    const [leader, other] = [await cluster.start(options), await cluster.start(options)];
    const accessToken = await createAt([leader, other], "peers");
    const kv = await openKv(`${leader.url}/peers`, { accessToken });
    await kv.set(["first"], "write");
    await kv.close();
    await runAll(`${other.url}/peers`, accessToken);
  } finally {
    await cluster.close();
  }
}

async function runAll(url, accessToken) {
  for (const [name, command, args] of runs) {
    const code = await run(command, args, url, accessToken);
    if (code !== 0) console.error(`${name} at ${url}: ended with ${code}`);
    failed ||= code !== 0;
  }
}

function run(command, args, url, accessToken) {
  const child = spawn(command, args, {
    cwd: here,
    stdio: "inherit",
    timeout: RUN_MS_MAX,
    env: {
      ...process.env,
      SERVER_URL: url,
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
