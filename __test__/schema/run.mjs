// Duty: Schemathesis against the HTTP API of a server, by the server's own OpenAPI document: no status
// 5xx, every answer as documented (status, media type, headers, schema), no request taken that the
// document excludes, no route without a token. The same requests in every run.
//
//   node __test__/schema/run.mjs             what CI runs
//   node __test__/schema/run.mjs -n 500      more requests for each operation; options of `st run`
//
// Installs Schemathesis into target/schemathesis, by the versions in requirements.txt.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { KvU64, openKv, serve } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const venv = fileURLToPath(new URL("../../target/schemathesis", import.meta.url));
const RUN_MS_MAX = 240_000;
/** Of each queue. hooks.py has the same number, and the order of the queues. */
const MESSAGES = 300;
const token = "token-of-the-schema-tests";

install();
const path = join(newFolder("schema"), "kv.sqlite3");
await fill();
const server = await serve({ path, listen: "127.0.0.1:0", accessToken: token });
const folder = newFolder("schemathesis");
const answers = join(folder, "answers");
process.exitCode = (await run()) || (await unanswered());
await server.close();

function install() {
  const requirements = join(here, "requirements.txt");
  const [wanted, installed] = [readFileSync(requirements, "utf8"), join(venv, "installed.txt")];
  if (existsSync(installed) && readFileSync(installed, "utf8") === wanted) return;
  const quiet = ["--quiet", "--disable-pip-version-check"];
  for (const [command, ...args] of [
    ["python3", "-m", "venv", "--clear", venv],
    [join(venv, "bin/pip"), "install", ...quiet, "--requirement", requirements],
  ]) {
    const { status, error } = spawnSync(command, args, { stdio: "inherit" });
    if (status !== 0) throw error ?? new Error(`${command} ended with ${status}`);
  }
  writeFileSync(installed, wanted);
}

/** Entries, messages and dead letters, so that reads find some. */
async function fill() {
  const kv = await openKv(path, { durability: "normal" });
  for (const value of [null, 1.5, 2n ** 70n, "text", new KvU64(7n), new Date(0), [1], { a: 1 }]) {
    await kv.set([typeof value, `${value}`], value);
    await kv.set(["entry", typeof value], value, { expireIn: 3_600_000 });
  }
  for (const key of [["entry"], ["entry", 42n]]) await kv.set(key, { n: 1n });
  await kv.set(["text", 1], { name: "a word" });
  await kv.createIndex({ prefix: ["text"], fields: ["name"] });
  const letters = kv.queue("letters");
  const enqueue = (queue, number) => queue.enqueue({ number }, { backoffSchedule: [] });
  const numbers = Array.from({ length: MESSAGES }, (_, number) => number);
  await Promise.all(numbers.map((number) => enqueue(letters, number)));
  for (const _ of numbers) await (await letters.receive()).nack();
  for (const name of ["mail", "kept"])
    await Promise.all(numbers.map((number) => enqueue(kv.queue(name), number)));
  await kv.close();
}

async function run() {
  const args = ["--config-file", join(here, "schemathesis.toml"), "run", ...process.argv.slice(2)];
  const child = spawn(join(venv, "bin/st"), [...args, `${server.url}/openapi.json`], {
    stdio: "inherit",
    timeout: RUN_MS_MAX,
    cwd: folder,
    env: {
      ...process.env,
      TOKEN: token,
      HOOKS: join(here, "hooks.py"),
      ANSWERS: answers,
      NO_COLOR: "1",
    },
  });
  return new Promise((resolve) => {
    child.on("error", (error) => resolve(console.error(error) ?? 1));
    child.on("close", (code, signal) => resolve(code ?? signal));
  });
}

/** Whether an operation never answered 200: then the requests tested nothing but its refusals. */
async function unanswered() {
  const { paths } = await (await fetch(`${server.url}/openapi.json`)).json();
  const answered = new Set(readFileSync(answers, "utf8").split("\n"));
  const missing = Object.entries(paths)
    .flatMap(([path, item]) => Object.keys(item).map((name) => `${name.toUpperCase()} ${path}`))
    .filter((label) => !answered.has(`200 ${label}`));
  if (missing.length > 0) console.error(`no answer 200 of ${missing.join(", ")}`);
  return missing.length > 0 ? 1 : 0;
}
