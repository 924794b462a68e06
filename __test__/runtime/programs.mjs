// Duty: small programs, each a process of its own in Node.js, Bun or Deno: how a process ends with
// a database open, and threads that share one. A program ends with its code and says its words.
//
// In a program: `openKv`, `path` (a fresh file), `sleep`, `thread(body)`: a worker thread that runs
// the body of a function with the same names, and `parentPort`; `sqlite()`: a class of the
// runtime's own SQLite library, or nothing where there is none.

const happy = (name, program, more) => ({ name, program, code: 0, said: "", ...more });
const says = (name, program) => happy(name, program, { said: "DONE\n" });

export const programs = [
  happy("ends with an open handle", `const kv = await openKv(path); await kv.set(["a"], 1);`),
  happy("ends with an unread watch", `(await openKv(path)).watch([["a"]]);`),
  happy(
    "ends with a watch and a feed of a collection that are not read",
    `
    const kv = await openKv(path);
    const users = kv.collection(["users"], { schema: (user) => user, id: "id" });
    await users.insert({ id: 1 });
    users.changes();
    await users.watch(1).getReader().read();`,
  ),
  happy(
    "ends although a handler reads its signal after its time",
    `
    const kv = await openKv(path);
    const queue = kv.queue("q");
    await queue.enqueue(1, { backoffSchedule: [] });
    const stop = new AbortController();
    const options = { timeout: 20, onError() {}, signal: stop.signal };
    let ended;
    const late = new Promise((resolve) => (ended = resolve));
    const listening = queue.listen(async (_, message) => {
      await sleep(100);
      message.signal.aborted;
      ended();
    }, options);
    await late;
    stop.abort();
    await listening;`,
  ),
  says(
    "a pending set is completed before the end",
    `
    const kv = await openKv(path);
    for (let i = 0; i < 300; i++) kv.set(["n", i], i);
    kv.set(["last"], 1).then(() => console.log("DONE"));`,
  ),
  happy(
    "a pending listenQueue keeps the process",
    `
    const kv = await openKv(path);
    kv.listenQueue(() => {});
    // A timer that does not count: it can only fire if something else keeps the process.
    setTimeout(() => process.exit(9), 700).unref();`,
    { code: 9 },
  ),
  happy(
    "a pending watch read keeps the process",
    `
    const kv = await openKv(path);
    const reader = kv.watch([["a"]]).getReader();
    await reader.read();
    reader.read();
    setTimeout(() => process.exit(9), 700).unref();`,
    { code: 9 },
  ),
  happy(
    "process.exit in the tick of a set",
    `const kv = await openKv(path); kv.set(["a"], 1); kv.get(["a"]); process.exit(7);`,
    { code: 7 },
  ),
  happy(
    "process.exit during commits, lists, watches and deliveries",
    `
    const kv = await openKv(path);
    for (let i = 0; i < 500; i++) kv.set(["n", i], "x".repeat(1000));
    for (let i = 0; i < 100; i++) kv.enqueue(i);
    kv.listenQueue(() => sleep(5));
    kv.watch([["n", 499]]).getReader().read();
    kv.list({ prefix: ["n"] }).next();
    setTimeout(() => process.exit(7), 15);`,
    { code: 7 },
  ),
  says(
    "a thread has the addon to itself and the file in common",
    `
    const kv = await openKv(path);
    await kv.set(["from main"], 1);
    const worker = thread(async ({ openKv, path, parentPort }) => {
      const kv = await openKv(path);
      const { value } = await kv.get(["from main"]);
      await kv.set(["from thread"], value + 1);
      parentPort.postMessage("set");
      await kv.close();
    });
    await new Promise((resolve) => worker.once("message", resolve));
    const { value } = await kv.get(["from thread"]);
    if (value !== 2) throw new Error("read " + value);
    await worker.terminate();
    console.log("DONE");`,
  ),
  says(
    "another SQLite library of the process writes beside, and neither loses anything",
    `
    const Sqlite = await sqlite();
    if (Sqlite === undefined) return console.log("DONE"); // Node.js 20 has none.
    let kv = await openKv(path);
    let other = new Sqlite(path);
    other.exec("PRAGMA busy_timeout = 10000; CREATE TABLE theirs (n INTEGER PRIMARY KEY)");
    let [ours, theirs] = [0, 0];
    for (let round = 0; round < 20; round++) {
      const sets = [];
      for (let i = 0; i < 10; i++) {
        sets.push(kv.atomic().sum(["n"], 1n).set(["k", ours++], round).commit());
        other.exec("INSERT INTO theirs VALUES (" + theirs++ + ")");
        if (i % 5 === 0) await sets[0];
      }
      await Promise.all(sets);
      if (round % 4 === 1) {
        // It drops the locks of the process, which are not ours.
        other.close();
        await kv.set(["between"], round);
        other = new Sqlite(path);
        other.exec("PRAGMA busy_timeout = 10000");
      }
      if (round % 4 === 3) {
        // Ours must not drop those of its transaction.
        other.exec("BEGIN IMMEDIATE; INSERT INTO theirs VALUES (" + theirs++ + ")");
        await kv.close();
        await sleep(50);
        kv = await openKv(path, { busyTimeout: 10000 });
        const set = kv.set(["late"], round);
        await sleep(50);
        other.exec("INSERT INTO theirs VALUES (" + theirs++ + "); COMMIT");
        await set;
      }
    }
    const { value: sum } = await kv.get(["n"]);
    const count = await kv.count({ prefix: ["k"] });
    if (sum.value !== BigInt(ours) || count !== ours) throw new Error(count + " of " + ours);
    const rows = other.prepare("SELECT count(*) AS n FROM theirs").get().n;
    if (rows !== theirs) throw new Error(rows + " of " + theirs + " rows");
    const { findings } = await kv.check();
    if (findings.length > 0) throw new Error(findings.join());
    other.close();
    kv.close();
    console.log("DONE");`,
  ),
  says(
    "sums of 4 threads and the main one are exact",
    `
    const kv = await openKv(path);
    const workers = Array.from({ length: 4 }, () => thread(async ({ openKv, path, parentPort }) => {
      const kv = await openKv(path);
      for (let i = 0; i < 25; i++) {
        await Promise.all([1, 2, 3, 4].map(() => kv.atomic().sum(["n"], 1n).commit()));
      }
      await kv.close();
      parentPort.postMessage("done");
    }));
    const done = workers.map((worker) => new Promise((resolve) => worker.once("message", resolve)));
    for (let i = 0; i < 100; i++) await kv.atomic().sum(["n"], 1n).commit();
    await Promise.all(done);
    const { value } = await kv.get(["n"]);
    if (value.value !== 500n) throw new Error("sum is " + value.value);
    for (const worker of workers) await worker.terminate();
    console.log("DONE");`,
  ),
  says(
    "a watch and a listener hear another thread",
    `
    const kv = await openKv(path);
    const reader = kv.watch([["a"]]).getReader();
    await reader.read();
    const message = new Promise((resolve) => kv.listenQueue(resolve));
    const worker = thread(async ({ openKv, path }) => {
      const kv = await openKv(path);
      await kv.set(["a"], "set in a thread");
      await kv.enqueue("sent in a thread");
    });
    const { value: [entry] } = await reader.read();
    if (entry.value !== "set in a thread") throw new Error(entry.value);
    if ((await message) !== "sent in a thread") throw new Error(await message);
    await worker.terminate();
    kv.close();
    console.log("DONE");`,
  ),
  says(
    "terminating threads in the middle of their work harms nobody",
    `
    const kv = await openKv(path);
    for (let round = 0; round < 6; round++) {
      const worker = thread(async ({ openKv, path, parentPort }) => {
        const kv = await openKv(path);
        kv.listenQueue(() => new Promise(() => {}));
        kv.watch([["a"]]).getReader().read();
        parentPort.postMessage("working");
        for (;;) {
          await Promise.all([kv.set(["t"], "x".repeat(5000)), kv.get(["t"]), kv.enqueue("m")]);
          for await (const entry of kv.list({ prefix: [] })) entry.value;
        }
      });
      await new Promise((resolve) => worker.once("message", resolve));
      await sleep(10 + round * 7);
      await worker.terminate();
      await kv.set(["a"], round);
      if ((await kv.get(["a"])).value !== round) throw new Error("round " + round);
    }
    kv.close();
    console.log("DONE");`,
  ),
  happy(
    "process.exit while threads work",
    `
    const kv = await openKv(path);
    const workers = [1, 2].map(() => thread(async ({ openKv, path, parentPort }) => {
      const kv = await openKv(path);
      parentPort.postMessage("working");
      for (;;) await Promise.all([kv.set(["t"], 1), kv.get(["t"])]);
    }));
    await Promise.all(workers.map((w) => new Promise((resolve) => w.once("message", resolve))));
    for (let i = 0; i < 100; i++) kv.set(["n", i], i);
    process.exit(7);`,
    { code: 7 },
  ),
  says(
    "thirty threads one after the other",
    `
    for (let i = 0; i < 30; i++) {
      const worker = thread(async ({ openKv, path, parentPort }) => {
        const kv = await openKv(path);
        await kv.atomic().sum(["n"], 1n).commit();
        parentPort.postMessage("done");
      });
      await new Promise((resolve) => worker.once("message", resolve));
      await worker.terminate();
    }
    const kv = await openKv(path);
    const { value } = await kv.get(["n"]);
    if (value.value !== 30n) throw new Error("sum is " + value.value);
    console.log("DONE");`,
  ),
];

const index = new URL("../../index.mjs", import.meta.url).href;

/** The program as a module that can be run as it is. */
export function moduleOf({ program, module }, path) {
  if (module !== undefined) return module(path);
  const names = `
    import process from "node:process";
    import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
    import { openKv } from ${JSON.stringify(index)};
    const path = ${JSON.stringify(path)};
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const sqlite = async () => {
      process.removeAllListeners("warning"); // Node.js says that its own is experimental.
      if (globalThis.Bun) return (await import("bun" + ":sqlite")).Database;
      return process.getBuiltinModule?.("node:sqlite")?.DatabaseSync;
    };
    const thread = (body) =>
      new Worker(new URL(import.meta.url), { workerData: body.toString() });`;
  return `${names}
    if (isMainThread) {
      await main();
    } else {
      const body = new Function("return " + workerData)();
      await body({ openKv, path, sleep, parentPort });
    }
    async function main() {${program}
    }\n`;
}
