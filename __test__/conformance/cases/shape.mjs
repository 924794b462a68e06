// Duty: classes, prototypes, names and what inspect prints.

import { inspect } from "node:util";

export default [
  {
    name: "Kv cannot be constructed",
    run(t) {
      t.throws(() => new t.Kv(), TypeError, "can not be constructed");
    },
  },
  {
    name: "Kv shows nothing of its inside",
    async run(t) {
      const kv = await t.open();
      t.same(Object.keys(kv), []);
      t.same(Object.getOwnPropertyNames(kv), []);
      t.is(inspect(kv), "Kv {}");
      t.is(Object.prototype.toString.call(kv), "[object Object]");
    },
  },
  {
    name: "Kv has Deno's methods",
    run(t) {
      const names =
        "atomic close commitVersionstamp delete enqueue get getMany list listenQueue set watch";
      for (const name of names.split(" ")) t.is(typeof t.Kv.prototype[name], "function", name);
      t.is(typeof t.Kv.prototype[Symbol.dispose], "function");
    },
  },
  {
    name: "Kv can be disposed of asynchronously",
    denoDiffers: "Deno's Kv has Symbol.dispose only",
    async run(t) {
      const kv = await t.open();
      t.ok(kv[Symbol.asyncDispose]() instanceof Promise);
      await t.rejects(() => kv.get(["a"]), "BadResource");
    },
  },
  {
    name: "atomic() answers an AtomicOperation",
    async run(t) {
      const kv = await t.open();
      t.ok(kv.atomic() instanceof t.AtomicOperation);
      for (const name of "check commit delete enqueue max min mutate set sum".split(" ")) {
        t.is(typeof t.AtomicOperation.prototype[name], "function", name);
      }
    },
  },
  {
    name: "list() answers a KvListIterator with next, cursor and itself as async iterator",
    async run(t) {
      const kv = await t.open();
      const iterator = kv.list({ prefix: [] });
      t.ok(iterator instanceof t.KvListIterator);
      t.is(iterator[Symbol.asyncIterator](), iterator);
      t.is(iterator.return, undefined, "return");
      t.is(iterator.throw, undefined, "throw");
    },
  },
  {
    name: "a KvListIterator cannot be constructed",
    run(t) {
      t.throws(() => new t.KvListIterator(), TypeError);
    },
  },
  {
    name: "an AtomicOperation cannot be constructed",
    denoDiffers: "Deno lets one be made that belongs to no database",
    run(t) {
      t.throws(() => new t.AtomicOperation(), TypeError, "can not be constructed");
    },
  },
  {
    name: "inspect of an empty atomic operation",
    async run(t) {
      t.is(inspect((await t.open()).atomic()), "AtomicOperation (empty)");
    },
  },
  {
    name: "inspect of an atomic operation lists checks, mutations and enqueues",
    async run(t) {
      const kv = await t.open();
      const op = kv
        .atomic()
        .enqueue("m", { delay: 5, keysIfUndelivered: [["x"]], backoffSchedule: [1] })
        .set(["a"], "v", { expireIn: 5 })
        .delete(["b"])
        .sum(["c"], 1n)
        .check({ key: ["a"], versionstamp: null })
        .min(["x"], 2n)
        .set(["z"], { a: 1 })
        .enqueue("n");
      const quoted = inspect(op).replaceAll("'", '"');
      t.is(
        quoted,
        [
          "AtomicOperation",
          '  check({ key: [ "a" ], versionstamp: null })',
          '  set([ "a" ], "v", { expireIn: 5 })',
          '  delete([ "b" ])',
          '  sum([ "c" ], [Deno.KvU64: 1n])',
          '  min([ "x" ], [Deno.KvU64: 2n])',
          '  set([ "z" ], { a: 1 })',
          '  enqueue("m", { delay: 5, keysIfUndelivered: [ [ "x" ] ], backoffSchedule: [ 1 ] })',
          '  enqueue("n")',
        ].join("\n"),
      );
    },
  },
  {
    name: "commitVersionstamp() is one symbol for all handles",
    async run(t) {
      const [a, b] = [await t.open(), await t.open()];
      t.is(typeof a.commitVersionstamp(), "symbol");
      t.is(a.commitVersionstamp(), b.commitVersionstamp());
      t.is(a.commitVersionstamp().toString(), "Symbol(KvCommitVersionstamp)");
    },
  },
];
