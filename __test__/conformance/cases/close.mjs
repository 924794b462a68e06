// Duty: close and dispose: what ends, what still answers, what is refused.

/** Every method of a handle that needs it open. */
const methods = {
  get: (kv) => kv.get(["a"]),
  getMany: (kv) => kv.getMany([["a"]]),
  "getMany of nothing": (kv) => kv.getMany([]),
  set: (kv) => kv.set(["a"], 1),
  delete: (kv) => kv.delete(["a"]),
  enqueue: (kv) => kv.enqueue(1),
  "atomic set": (kv) => kv.atomic().set(["a"], 1).commit(),
  "empty commit": (kv) => kv.atomic().commit(),
  "list next": (kv) => kv.list({ prefix: [] }).next(),
};

export default [
  {
    name: "a second close is a BadResource at the call",
    async run(t) {
      const kv = await t.open();
      kv.close();
      t.throws(() => kv.close(), "BadResource", "Bad resource ID");
    },
  },
  {
    name: "close returns a promise",
    denoDiffers: "Deno closes while the caller waits",
    async run(t) {
      const kv = await t.open();
      const closed = kv.close();
      t.ok(closed instanceof Promise);
      t.is(await closed, undefined);
    },
  },
  {
    name: "dispose closes, once or twice or after close",
    async run(t) {
      const [a, b] = [await t.open(), await t.open()];
      t.is(a[Symbol.dispose](), undefined);
      t.is(a[Symbol.dispose](), undefined);
      t.throws(() => a.close(), "BadResource");
      await t.rejects(() => a.get(["a"]), "BadResource");
      b.close();
      t.is(b[Symbol.dispose](), undefined);
    },
  },
  ...Object.entries(methods).map(([name, call]) => ({
    name: `${name} on a closed handle is a BadResource`,
    async run(t) {
      const kv = await t.open();
      kv.close();
      const error = await t.rejects(async () => call(kv), "BadResource", "Bad resource ID");
      t.ok(error instanceof Error);
      if (t.runtime === "deno") t.ok(error instanceof Deno.errors.BadResource, "Deno's own class");
    },
  })),
  {
    name: "the error of a closed handle has the code CLOSED",
    denoDiffers: "Deno's errors have no codes of this kind",
    async run(t) {
      const kv = await t.open();
      kv.close();
      t.is((await t.rejects(() => kv.get(["a"]), "BadResource")).code, "CLOSED");
    },
  },
  {
    name: "watch on a closed handle throws a BadResource at the call",
    async run(t) {
      const kv = await t.open();
      kv.close();
      t.throws(() => kv.watch([["a"]]), "BadResource", "Bad resource ID");
      t.throws(() => kv.watch([]), "BadResource", "Bad resource ID");
    },
  },
  {
    name: "list(), atomic() and commitVersionstamp() still answer",
    async run(t) {
      const kv = await t.open();
      kv.close();
      t.ok(kv.list({ prefix: [] }) instanceof t.KvListIterator);
      t.ok(kv.atomic().set(["a"], 1).sum(["b"], 1n) instanceof t.AtomicOperation);
      t.is(typeof kv.commitVersionstamp(), "symbol");
    },
  },
  {
    name: "a misuse is told before the closed handle",
    async run(t) {
      const kv = await t.open();
      kv.close();
      t.throws(() => kv.list({}), TypeError, "must specify");
      t.throws(() => kv.atomic().sum(["a"], "1"), TypeError, "must be a bigint");
    },
  },
  {
    name: "an iterator yields what it has read, then rejects",
    async run(t) {
      const kv = await t.open();
      for (const letter of "abcde") await kv.set([letter], letter);
      const iterator = kv.list({ prefix: [] }, { batchSize: 2 });
      t.is((await iterator.next()).value.value, "a");
      kv.close();
      t.is((await iterator.next()).value.value, "b");
      t.is(iterator.cursor, "AmIA");
      await t.rejects(() => iterator.next(), "BadResource");
      t.is(iterator.cursor, "AmIA");
    },
  },
  {
    name: "an operation begun before close cannot commit after it",
    async run(t) {
      const kv = await t.open();
      const op = kv.atomic().set(["a"], 1);
      kv.close();
      await t.rejects(() => op.commit(), "BadResource");
    },
  },
  {
    name: "writes in flight at close are completed",
    on: "shared",
    denoDiffers: "Deno rejects them, although some have happened",
    async run(t) {
      let kv = await t.open();
      const writes = Array.from({ length: 100 }, (_, i) => kv.set(["n", i], i));
      writes.push(kv.atomic().sum(["sum"], 5n).commit(), kv.enqueue("m"), kv.delete(["none"]));
      const settled = Promise.allSettled(writes);
      kv = await t.reopen(kv);
      t.same([...new Set((await settled).map((result) => result.status))], ["fulfilled"]);
      t.is((await t.all(kv.list({ prefix: ["n"] }))).length, 100);
      t.is((await t.value(kv, ["sum"])).value, 5n);
      let got;
      kv.listenQueue((message) => {
        got = message;
      });
      await t.until(() => got === "m", "the message");
    },
  },
  {
    name: "reads in flight at close settle",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const reads = [kv.get(["a"]), kv.getMany([["a"]]), kv.list({ prefix: [] }).next()];
      kv.close();
      for (const result of await Promise.allSettled(reads)) {
        if (result.status === "rejected") t.is(result.reason instanceof Error, true);
      }
    },
  },
  {
    name: "close does not wait for messages that are not yet due",
    async run(t) {
      const kv = await t.open();
      await kv.enqueue("later", { delay: 3_600_000 });
      const ended = kv.listenQueue(() => {});
      kv.close();
      await ended;
    },
  },
  {
    name: "close ends every watch and listener of the handle",
    async run(t) {
      const kv = await t.open();
      const readers = Array.from({ length: 5 }, () => kv.watch([["a"]]).getReader());
      for (const reader of readers) await reader.read();
      const ends = readers.map((reader) => reader.read());
      const listeners = [kv.listenQueue(() => {}), kv.listenQueue(() => {})];
      kv.close();
      t.ok((await Promise.all(ends)).every((end) => end.done));
      await Promise.all(listeners);
    },
  },
  {
    name: "closing one handle leaves the others' watches and listeners",
    on: "shared",
    async run(t) {
      const one = await t.open();
      const two = await t.another(one);
      const got = [];
      two.listenQueue((message) => {
        got.push(message);
      });
      const reader = two.watch([["a"]]).getReader();
      await reader.read();
      one.close();
      await two.set(["a"], 1);
      t.is((await reader.read()).value[0].value, 1);
      await two.enqueue("m");
      await t.until(() => got.length === 1, "the message");
    },
  },
  {
    name: "a memory database is gone when it closes",
    on: "memory",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      kv.close();
      t.is(await t.stamp(await t.open(), ["a"]), null);
    },
  },
];
