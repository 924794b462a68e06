#!/usr/bin/env node
// Several processes do everything at once to the same files: no error reaches a caller, all sums are
// exact, every watch ends on the last value, every message is handled once, and the files are whole
// afterwards.
//
//   node mixed.mjs [--seconds 10] [--processes 8] [--seed text] [--loads sum,list,...] [--files 1] [--max-open 4]
//
// Of several files each process keeps some open. Half of the processes watch each of the first twelve and listen to its
// queue; the others park it.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { newFolder } from "../kit/folder.mjs";
import { guard, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import {
  ACCOUNTS,
  BALANCE,
  CHAIN,
  COUNTERS,
  FINAL,
  WATCHES,
  isWatched,
  prepare,
  setTogether,
} from "./mixed/state.mjs";
import { openProbe } from "./probe.mjs";
import { openKv } from "./target.mjs";

const WORKER = new URL("mixed/worker.mjs", import.meta.url);
/** Far more than any of the waits takes with one file, and more for each of the others; catches hangs. */
const HANG_MS = 60_000;
const HANG_MS_FILE = 1000;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "10" },
    processes: { type: "string", default: "8" },
    seed: { type: "string", default: String(Date.now()) },
    loads: { type: "string" },
    files: { type: "string", default: "1" },
    "max-open": { type: "string", default: "4" },
  },
});
const hangMs = HANG_MS + HANG_MS_FILE * Number(values.files);
const directory = newFolder("mixed");
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
const count = Number(values.files);
const paths = Array.from({ length: count }, (_, n) => join(directory, `kv${n}.sqlite3`));
const options = count > 1 ? { maxOpen: Number(values["max-open"]) } : undefined;
console.log(
  `${count} files, ${values.processes} processes, ${values.seconds} s, seed ${values.seed}`,
);

const faults = [];
const probe = openProbe();
const handles = await Promise.all(paths.map((path) => openKv(path, options)));
for (const kv of handles) await prepare(kv);
const workers = Array.from({ length: Number(values.processes) }, (_, id) => startWorker(id));
try {
  await run();
} catch (error) {
  faults.push(error.stack);
}
for (const path of paths)
  for (const what of await probe.damage(path)) faults.push(`damaged: ${what}`);
probe.close();
if (faults.length > 0) {
  for (const what of faults) console.error(`- ${what}`);
  process.exit(1);
}
console.log(
  "no error, sums exact, watches at the last value, every message handled once, files whole",
);

async function run() {
  await all("are ready", (worker) => worker.ready);
  await sleep(Number(values.seconds) * 1000);

  workers.forEach(({ child }) => child.say("stop"));
  const reports = await all("stop", (worker) => worker.stopped);
  const watched = handles.filter((_, file) => isWatched({ file }));
  for (const kv of watched) for (const keys of WATCHES) await setTogether(kv, keys, FINAL);
  await all("see the last value of all watches", (worker) => worker.watched);
  const done = handles.map((_, n) => addUp(reports.map((report) => report[n])));
  const handled = watched.map((kv, n) => allHandled(kv, done[n].enqueued));
  await guard(Promise.all(handled), hangMs, "all messages are handled");

  workers.forEach(({ child }) => child.say("close"));
  await all("close", (worker) => worker.closed);
  for (const { id, child } of workers) {
    const { code, signal } = await guard(child.ended, hangMs, `process ${id} ends by itself`);
    if (code !== 0 || signal !== null)
      faults.push(`process ${id} ended with code ${code}, signal ${signal}`);
    if (child.stderr !== "") faults.push(`process ${id} said on stderr: ${child.stderr}`);
  }
  for (const [n, kv] of handles.entries()) {
    await compare(kv, done[n]);
    await kv.close();
  }
  console.log(
    Object.entries(addUp(done))
      .map(([name, count]) => `${String(count).padStart(9)} ${name}`)
      .join("\n"),
  );
}

function startWorker(id) {
  const words = {};
  const heard = (word) => new Promise((resolve) => (words[word] = resolve));
  const onLine = (line) => {
    const [word, ...rest] = line.split(" ");
    if (word === "FAULT") faults.push(rest.join(" "));
    else words[word]?.(rest.length > 0 ? JSON.parse(rest.join(" ")) : undefined);
  };
  const worker = {
    id,
    ready: heard("READY"),
    stopped: heard("STOPPED"),
    watched: heard("WATCHED"),
    closed: heard("CLOSED"),
  };
  worker.child = startChild(
    WORKER,
    { paths, options, id, seed: values.seed, loads: values.loads?.split(",") },
    { onLine },
  );
  return worker;
}

/** The answers of all workers; a worker that ends instead is an error. */
function all(what, answer) {
  const each = workers.map((worker) => {
    const gone = worker.child.ended.then(({ code, signal }) => {
      throw new Error(`process ${worker.id} ended (${code ?? signal}): ${worker.child.stderr}`);
    });
    gone.catch(() => {});
    return Promise.race([answer(worker), gone]);
  });
  return guard(Promise.all(each), hangMs, `all processes ${what}`);
}

function addUp(reports) {
  const total = {};
  for (const report of reports) {
    for (const [name, count] of Object.entries(report)) {
      const slowest = name.startsWith("slowest");
      total[name] = slowest ? Math.max(total[name] ?? 0, count) : (total[name] ?? 0) + count;
    }
  }
  return total;
}

async function allHandled(kv, enqueued) {
  for (;;) {
    let handled = 0;
    for await (const _ of kv.list({ prefix: ["done"] }, { batchSize: 500 })) handled++;
    if (handled === enqueued) return;
    if (handled > enqueued) throw new Error(`${handled} messages handled, ${enqueued} enqueued`);
    await sleep(50);
  }
}

async function compare(kv, done) {
  for (const [at, key] of COUNTERS.entries()) {
    const { value } = await kv.get(key);
    const expected = BigInt(done[`added ${at}`] ?? 0);
    if (value.value !== expected)
      faults.push(`counter ${at} is ${value.value}, all sums make ${expected}`);
  }
  const accounts = await kv.getMany(ACCOUNTS);
  const total = accounts.reduce((sum, { value }) => sum + value, 0);
  if (total !== ACCOUNTS.length * BALANCE) faults.push(`all accounts have ${total}`);
  const { value: advanced } = await kv.get(CHAIN);
  if (advanced !== (done.advance ?? 0))
    faults.push(`the chain is at ${advanced}, ${done.advance} steps were made`);
}
