// Duty: the options of list and their refusal.

async function ten(t) {
  const kv = await t.open();
  const op = kv.atomic();
  for (let i = 0; i < 10; i++) op.set(["n", i], i);
  await op.commit();
  return kv;
}

const n = { prefix: ["n"] };

/** Options as instances of a class, whose accessors are on its prototype. */
class Page {
  #limit = 2;
  get limit() {
    return this.#limit;
  }
  get reverse() {
    return true;
  }
}

export default [
  {
    name: "options that are instances of a class, or inherit from other options, count",
    async run(t) {
      const kv = await ten(t);
      t.same(await t.ends(kv.list(n, new Page())), [9, 8]);
      class Wide extends Page {
        get limit() {
          return 3;
        }
      }
      t.same(await t.ends(kv.list(n, new Wide())), [9, 8, 7]);
      t.same(await t.ends(kv.list(n, Object.create({ limit: 1 }))), [0]);
      t.same(await t.ends(kv.list(n, Object.create(null, { limit: { value: 4 } }))), [0, 1, 2, 3]);
    },
  },
  {
    name: "what a program has put on Object.prototype is no option",
    denoDiffers: "Deno reads it as an option of every call",
    alone: true,
    async run(t) {
      const kv = await ten(t);
      Object.prototype.limit = 1;
      try {
        t.is((await t.ends(kv.list(n))).length, 10);
        t.is((await t.ends(kv.list(n, {}))).length, 10);
        t.same(await t.ends(kv.list(n, new Page())), [9, 8]);
      } finally {
        delete Object.prototype.limit;
      }
    },
  },
  {
    name: "limit",
    async run(t) {
      const kv = await ten(t);
      t.same(await t.ends(kv.list(n, { limit: 3 })), [0, 1, 2]);
      t.same(await t.ends(kv.list(n, { limit: 3, reverse: true })), [9, 8, 7]);
      t.same(await t.ends(kv.list(n, { limit: 1 })), [0]);
      t.is((await t.ends(kv.list(n, { limit: 10 }))).length, 10);
      t.is((await t.ends(kv.list(n, { limit: 5000 }))).length, 10);
      t.is((await t.ends(kv.list(n, { limit: undefined }))).length, 10);
    },
  },
  {
    name: "limit with every batchSize",
    async run(t) {
      const kv = await ten(t);
      for (let batchSize = 1; batchSize <= 6; batchSize++) {
        t.same(await t.ends(kv.list(n, { limit: 5, batchSize })), [0, 1, 2, 3, 4]);
      }
    },
  },
  {
    name: "a limit that is no positive integer is an Error at the call",
    async run(t) {
      const kv = await t.open();
      for (const limit of [0, -1, 1.5, "2", NaN, Infinity, 1n, null]) {
        const words = t.refusal("Limit must be a positive integer", limit);
        t.throws(() => kv.list(n, { limit }), Error, words);
      }
    },
  },
  {
    name: "a batchSize that is no positive integer is an Error at the call",
    async run(t) {
      const kv = await t.open();
      for (const batchSize of [0, -1, 1.5, "2", NaN, Infinity, 1n]) {
        const words = t.refusal("batchSize must be a positive integer", batchSize);
        t.throws(() => kv.list(n, { batchSize }), Error, words);
      }
    },
  },
  {
    name: "batchSize null and undefined are none",
    async run(t) {
      const kv = await ten(t);
      t.is((await t.ends(kv.list(n, { batchSize: null }))).length, 10);
      t.is((await t.ends(kv.list(n, { batchSize: undefined }))).length, 10);
    },
  },
  {
    name: "batchSize up to 1000",
    async run(t) {
      const kv = await ten(t);
      for (const batchSize of [500, 501, 1000]) {
        t.is((await t.ends(kv.list(n, { batchSize }))).length, 10);
      }
    },
  },
  {
    name: "batchSize over 1000 rejects next()",
    async run(t) {
      const iterator = (await ten(t)).list(n, { batchSize: 1001 });
      await t.rejects(() => iterator.next(), TypeError, "Too many entries (max 1000)");
    },
  },
  {
    name: "true alone reverses",
    async run(t) {
      const kv = await ten(t);
      t.is((await t.ends(kv.list(n, { reverse: true })))[0], 9);
      for (const reverse of [false, null, undefined, 0, 1, "yes", {}]) {
        t.is((await t.ends(kv.list(n, { reverse })))[0], 0);
      }
    },
  },
  {
    name: "both consistency levels and none",
    async run(t) {
      const kv = await ten(t);
      for (const consistency of ["strong", "eventual", undefined, null]) {
        t.is((await t.ends(kv.list(n, { consistency }))).length, 10);
      }
    },
  },
  {
    name: "another consistency level rejects next()",
    async run(t) {
      const iterator = (await ten(t)).list(n, { consistency: "x" });
      const words = "unknown variant `x`, expected `strong` or `eventual`";
      await t.rejects(() => iterator.next(), TypeError, words);
    },
  },
  {
    name: "null options are a TypeError at the call",
    async run(t) {
      const kv = await t.open();
      t.throws(() => kv.list(n, null), TypeError);
      t.is((await t.all(kv.list(n, undefined))).length, 0);
    },
  },
  {
    name: "a misspelt option is a TypeError at the call",
    denoDiffers: "Deno ignores every option it does not know, and the slip goes unseen",
    async run(t) {
      const kv = await t.open();
      t.throws(() => kv.list(n, { batchsize: 5 }), TypeError, "batchsize");
    },
  },
  {
    name: "a filter of another store is a TypeError that says what to write",
    denoDiffers: "Deno ignores it, and the list has all entries",
    async run(t) {
      const kv = await t.open();
      for (const name of ["filter", "match"]) {
        const words = "write where: { field: value }";
        t.throws(() => kv.list(n, { [name]: { age: 5 } }), TypeError, words);
      }
    },
  },
  {
    name: "a list that is taken for an array says what to write",
    denoDiffers: "Deno's list has neither length nor elements, and an awaited one looks empty",
    async run(t) {
      const list = await (await ten(t)).list(n);
      const words = "no array but an asynchronous iterator: write for await";
      t.throws(() => list.length, TypeError, words);
      t.throws(() => [...list], TypeError, words);
      t.throws(() => Array.from(list), TypeError, words);
      t.throws(() => list.sort(), TypeError, words);
      t.is((await t.all(list)).length, 10);
    },
  },
  {
    name: "an option of another name altogether is ignored",
    async run(t) {
      const kv = await ten(t);
      t.is((await t.ends(kv.list(n, { signal: null }))).length, 10);
      await kv.get(["n"], { tracing: true });
      await kv.set(["n"], 1, { tracing: true });
    },
  },
];
