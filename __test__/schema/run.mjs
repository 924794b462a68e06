// Duty: Schemathesis against the HTTP API of a server, by the server's own OpenAPI document: no status
// 5xx, every answer as documented (status, media type, headers, schema), no request taken that the
// document excludes, no route without a token. The same requests in every run.
//
//   node __test__/schema/run.mjs             what CI runs
//   node __test__/schema/run.mjs -n 500      more requests for each operation; options of `st run`
//
// Installs Schemathesis into target/schemathesis, by the versions in requirements.txt.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { KvU64, openKv, serve } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { pythonPrograms } from "../kit/python.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const RUN_MS_MAX = 240_000;
/** Of each queue. hooks.py has the same number, and the order of the queues. */
const MESSAGES = 300;
/** As in hooks.py. */
const SCHEDULES = 20;
const token = "token-of-the-schema-tests";

const programs = pythonPrograms("schemathesis", join(here, "requirements.txt"));
const path = join(newFolder("schema"), "kv.sqlite3");
await fill();
const server = await serve({ path, listen: "127.0.0.1:0", accessToken: token });
const folder = newFolder("schemathesis");
const answers = join(folder, "answers");
process.exitCode = (await run()) || (await unanswered());
await server.close();

/** Entries, messages and dead letters, so that reads find some. */
async function fill() {
  const kv = await openKv(path, { durability: "normal", history: "1h" });
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
  await end(kv.queue("ended"));
  for (let number = 0; number < SCHEDULES; number++) {
    await kv.queue("mail").schedule(`s${number}`, { every: 86_400_000 }, number);
  }
  await kv.close();
}

/** Runs a message, whose progress and result stay. hooks.py has its number: it is the next one. */
async function end(queue) {
  const stop = new AbortController();
  const handler = async (_value, message) => {
    await message.progress({ percent: 50 });
    return "done";
  };
  const listening = queue.listen(handler, { signal: stop.signal });
  const { id } = await queue.enqueue(1, { keepResult: "1h" });
  assert.equal(Number(id), 3 * MESSAGES + 1);
  assert.equal((await queue.result(id, { wait: "30s" })).value, "done");
  stop.abort();
  await listening;
}

async function run() {
  const args = ["--config-file", join(here, "schemathesis.toml"), "run", ...process.argv.slice(2)];
  const child = spawn(join(programs, "st"), [...args, `${server.url}/openapi.json`], {
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
    child.on("close", (code, signal) => {
      if (signal !== null)
        console.error(`Schemathesis was ended after ${RUN_MS_MAX} ms by ${signal}`);
      resolve(code ?? 1);
    });
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
