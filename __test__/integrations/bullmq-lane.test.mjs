// Duty: batches of openkv/bullmq that are decided while the one before them is committed: they build on it, answer after
// their own commit, and are decided again with it if it fails, so that each operation has its effect once.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { Connection } from "../../dist/drivers/bullmq-connection.js";
import { Lane } from "../../dist/drivers/bullmq-lane.js";
import { openKv } from "../../index.mjs";

const BASE = ["base"];
const ENTRY = [...BASE, "q", "number", "n"];
const folder = mkdtempSync(join(tmpdir(), "openkv-bullmq-lane-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const newPath = () => join(folder, `${Math.random()}.sqlite3`);
const deaf = { offered() {}, changed() {} };

/** Adds one to a number that all operations share; answers what it has become. */
const count = async (queues) => {
  const view = await queues("q");
  const number = ((await view.get("number", "n")) ?? 0) + 1;
  view.set(number, "number", "n");
  return number;
};

/** A handle whose commits wait until they are let through, and the lane on it. */
async function heldLane(path = ":memory:") {
  const kv = await openKv(path);
  const held = [];
  const holding = {
    get: (...args) => kv.get(...args),
    list: (...args) => kv.list(...args),
    atomic() {
      const atomic = kv.atomic();
      const { commit } = atomic;
      atomic.commit = () =>
        new Promise((resolve) => {
          held.push(() => resolve(commit.call(atomic)));
        });
      return atomic;
    },
  };
  const ends = [];
  const lane = new Lane(holding, BASE, deaf);
  /** Lets the next commit through, once it has come. */
  const pass = async () => {
    while (held.length === 0) await turn();
    held.shift()();
  };
  /** Lets all commits through until these operations have ended; answers what each answers, or its code. */
  const passAll = async (notes) => {
    let isOver = false;
    const ended = Promise.allSettled(notes.map(({ answer }) => answer));
    void ended.then(() => (isOver = true));
    for (; !isOver; await turn()) held.shift()?.();
    return (await ended).map(({ value, reason }) => value ?? reason.code);
  };
  const write = (name, run = count) => {
    const note = { decided: 0 };
    const noted = async (queues) => {
      note.decided += 1;
      return await run(queues);
    };
    note.answer = lane.write(noted).finally(() => ends.push(name));
    return note;
  };
  return { kv, lane, held, pass, passAll, write, ends };
}

/** Waits until an operation has been decided so many times. */
async function isDecided(note, times) {
  while (note.decided < times) await turn();
}

test("a batch is decided on what the commit under way will leave, and answers after its own commit", async () => {
  const { kv, held, pass, write, ends } = await heldLane();
  const first = write("first");
  await isDecided(first, 1);
  while (held.length === 0) await turn();
  const second = write("second");
  const third = write("third");
  await isDecided(third, 1);
  assert.equal(held.length, 1);
  assert.equal((await kv.get(ENTRY)).value, null);
  assert.deepEqual(ends, []);
  await pass();
  assert.equal(await first.answer, 1);
  while (held.length === 0) await turn();
  assert.deepEqual(ends, ["first"]);
  await pass();
  assert.deepEqual(await Promise.all([second.answer, third.answer]), [2, 3]);
  assert.deepEqual(
    [first, second, third].map(({ decided }) => decided),
    [1, 1, 1],
  );
  assert.equal((await kv.get(ENTRY)).value, 3);
  await kv.close();
});

test("if another process writes in between, the batch and the one behind it are decided again, in order", async () => {
  const path = newPath();
  const { kv, held, pass, passAll, write, ends } = await heldLane(path);
  const other = await openKv(path);
  const first = write("first");
  await isDecided(first, 1);
  while (held.length === 0) await turn();
  const second = write("second");
  await isDecided(second, 1);
  assert.equal(await new Lane(other, BASE, deaf).write(count), 1);
  await pass();
  await isDecided(first, 2);
  assert.deepEqual(ends, []);
  assert.deepEqual(await passAll([first, second]), [2, 3]);
  assert.deepEqual(ends, ["first", "second"]);
  assert.equal((await kv.get(ENTRY)).value, 3);
  await Promise.all([kv.close(), other.close()]);
});

test("an operation that cannot be committed is refused alone, and those behind it do not build on it", async () => {
  const { kv, held, passAll, write } = await heldLane();
  const first = write("first");
  const large = write("large", async (queues) => {
    await count(queues);
    (await queues("q")).set("x".repeat(100_000), "number", "large");
  });
  await isDecided(large, 1);
  while (held.length === 0) await turn();
  const behind = write("behind");
  await isDecided(behind, 1);
  assert.deepEqual(await passAll([first, large, behind]), [1, "TOO_LARGE", 2]);
  assert.equal((await kv.get(ENTRY)).value, 2);
  await kv.close();
});

test("an operation that fails takes nothing back of those before it, whose commit is under way", async () => {
  const { kv, held, pass, write } = await heldLane();
  const first = write("first");
  await isDecided(first, 1);
  while (held.length === 0) await turn();
  const failing = write("failing", async (queues) => {
    await count(queues);
    throw new RangeError("no");
  });
  const last = write("last");
  await isDecided(last, 1);
  await pass();
  await pass();
  await assert.rejects(failing.answer, RangeError);
  assert.deepEqual(await Promise.all([first.answer, last.answer]), [1, 2]);
  assert.equal((await kv.get(ENTRY)).value, 2);
  await kv.close();
});

test("an operation that is alone waits for the commit under way, and no other joins it", async () => {
  const { kv, lane, held, pass, write } = await heldLane();
  const first = write("first");
  await isDecided(first, 1);
  while (held.length === 0) await turn();
  let seen;
  const alone = lane.write(async () => {
    seen = (await kv.get(ENTRY)).value;
  }, "alone");
  const last = write("last");
  for (let n = 0; n < 10; n++) await turn();
  assert.deepEqual([seen, last.decided], [undefined, 0]);
  await pass();
  await alone;
  assert.equal(seen, 1);
  await pass();
  assert.equal(await last.answer, 2);
  await kv.close();
});

test("one who asks takes the job that its batch adds later, and is answered after the one who adds it", async () => {
  const kv = await openKv(":memory:");
  const lane = new Lane(kv, BASE, deaf);
  const ends = [];
  const take = async (queues) => {
    const view = await queues("q");
    view.batch.seeks = true;
    const next = await view.first("wait");
    if (next === undefined) return null;
    const job = await view.job(next.value);
    view.place(job, "active", [view.next()]);
    return job.id;
  };
  const asked = [0, 1].map((n) => lane.write(take, "asks").finally(() => ends.push(`ask ${n}`)));
  const added = lane
    .write(async (queues) => {
      const view = await queues("q");
      view.place({ id: "a", data: "{}", state: null, order: [] }, "wait", [0, view.next()]);
      view.mark();
    })
    .finally(() => ends.push("add"));
  assert.deepEqual(await Promise.all([...asked, added]), ["a", null, undefined]);
  assert.ok(ends.indexOf("add") < ends.indexOf("ask 0"));
  await kv.close();
});

test("what a handle that is closed has answered is in the file, and nothing else", async () => {
  const path = newPath();
  for (let turns = 0; turns < 12; turns++) {
    const kv = await openKv(path);
    const lane = new Lane(kv, BASE, deaf);
    const before = (await kv.get(ENTRY)).value ?? 0;
    let answered = 0;
    const writers = Array.from({ length: 40 }, async () => {
      for (;;) {
        await lane.write(count);
        answered += 1;
      }
    });
    const ends = Promise.allSettled(writers);
    while (answered < 40) await turn();
    for (let n = 0; n < turns; n++) await turn();
    await kv.close();
    const reasons = (await ends).map(({ reason }) => reason?.name);
    assert.deepEqual([...new Set(reasons)], ["BadResource"]);
    const again = await openKv(path);
    assert.equal((await again.get(ENTRY)).value, before + answered);
    await again.close();
  }
});

test("operations of two threads on one queue have their effects once, each in the order of its calls", async () => {
  const path = newPath();
  const EACH = 400;
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    (async () => {
      const { Lane } = require(workerData.lane);
      const { openKv } = require(workerData.openkv);
      const kv = await openKv(workerData.path);
      const lane = new Lane(kv, ["base"], { offered() {}, changed() {} });
      const answers = [];
      let left = ${EACH};
      const count = async (queues) => {
        const view = await queues("q");
        const number = ((await view.get("number", "n")) ?? 0) + 1;
        view.set(number, "number", "n");
        return number;
      };
      await Promise.all(Array.from({ length: 30 }, async () => {
        while (left-- > 0) answers.push(await lane.write(count));
      }));
      await kv.close();
      parentPort.postMessage(answers);
    })();
  `;
  const workerData = {
    path,
    lane: new URL("../../dist/drivers/bullmq-lane.js", import.meta.url).pathname,
    openkv: new URL("../../index.cjs", import.meta.url).pathname,
  };
  const run = async () => {
    const worker = new Worker(program, { eval: true, workerData });
    const [answers] = await once(worker, "message");
    return answers;
  };
  const [a, b] = await Promise.all([run(), run()]);
  assert.deepEqual(
    a,
    a.toSorted((x, y) => x - y),
  );
  assert.deepEqual(
    b,
    b.toSorted((x, y) => x - y),
  );
  const all = [...a, ...b].toSorted((x, y) => x - y);
  assert.deepEqual(
    all,
    Array.from({ length: 2 * EACH }, (_, n) => n + 1),
  );
});

test("a worker that waits for a job gets the error of the database", async () => {
  const lane = {
    hasJob: () => false,
    read: async () => Promise.reject(new Error("disk I/O error")),
  };
  const waiting = { use: () => () => {}, listen: () => () => {} };
  const place = { use() {}, release: async () => {}, open: async () => ({ waiting, lane }) };
  const connection = new Connection(place, "mail", undefined, null);
  await assert.rejects(connection.waitForJob(10), /disk I\/O error/);
});
