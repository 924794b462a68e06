// Duty: what is no key, for every method that takes one.

const kinds = "expected string, number, bigint, ArrayBufferView, boolean";

const noParts = {
  null: null,
  undefined,
  "a plain object": {},
  "a Date": new Date(0),
  "an ArrayBuffer": new ArrayBuffer(1),
  "an array": ["a"],
  "a boxed string": Object("a"),
  "a boxed number": Object(1),
  "a function": () => {},
  "a symbol": Symbol("a"),
  "a symbol that looks right": Symbol("KvCommitVersionstamp"),
};

const noKeys = {
  "a string": "abc",
  "a number": 5,
  "a Set": new Set(["a"]),
  "a Uint8Array": new Uint8Array([1]),
  "an array-like": { length: 1, 0: "a" },
};

/** Every way to hand over one key; all must refuse in the same words. */
const writes = {
  set: (kv, key) => kv.set(key, 1),
  delete: (kv, key) => kv.delete(key),
  "atomic set": (kv, key) => kv.atomic().set(key, 1).commit(),
  "atomic delete": (kv, key) => kv.atomic().delete(key).commit(),
  "atomic sum": (kv, key) => kv.atomic().sum(key, 1n).commit(),
  "mutate min": (kv, key, t) =>
    kv
      .atomic()
      .mutate({ type: "min", key, value: new t.KvU64(1n) })
      .commit(),
};
const reads = {
  get: (kv, key) => kv.get(key),
  getMany: (kv, key) => kv.getMany([["fine"], key]),
};
const check = { check: (kv, key) => kv.atomic().check({ key, versionstamp: null }).commit() };

async function refuses(t, ways, key, kind, words) {
  const kv = await t.open();
  for (const [name, way] of Object.entries(ways)) {
    try {
      await t.rejects(() => way(kv, key, t), kind, words);
    } catch (error) {
      t.fail(`${name}: ${error.message}`);
    }
  }
  t.same(await t.all(kv.list({ prefix: [] })), []);
}

export default [
  ...Object.entries(noParts).map(([name, part]) => ({
    name: `${name} is no key part`,
    async run(t) {
      await refuses(t, { ...reads, ...writes, ...check }, ["a", part], TypeError, kinds);
    },
  })),
  {
    name: "a KvU64 is no key part",
    async run(t) {
      const ways = { ...reads, ...writes, ...check };
      await refuses(t, ways, ["a", new t.KvU64(1n)], TypeError, kinds);
    },
  },
  {
    name: "a hole is no key part",
    async run(t) {
      await refuses(t, { ...reads, ...writes, ...check }, ["a", , "b"], TypeError, kinds);
    },
  },
  ...Object.entries(noKeys).map(([name, key]) => ({
    name: `${name} is no key`,
    async run(t) {
      await refuses(t, { ...reads, ...writes, ...check }, key, TypeError, "array");
    },
  })),
  {
    name: "null and undefined are no keys for writes",
    async run(t) {
      for (const key of [null, undefined]) await refuses(t, writes, key, TypeError, "");
    },
  },
  {
    name: "null and undefined are no keys for reads",
    async run(t) {
      for (const key of [null, undefined]) {
        await refuses(t, reads, key, TypeError, "Invalid range");
      }
    },
  },
  {
    name: "the empty key cannot be written or checked",
    async run(t) {
      await refuses(t, { ...writes, ...check }, [], TypeError, "key cannot be empty");
    },
  },
  {
    name: "a view over shared memory is no key part",
    async run(t) {
      const shared = new Uint8Array(new SharedArrayBuffer(2));
      await refuses(t, { ...reads, ...writes }, [shared], TypeError, "");
    },
  },
  {
    name: "a bigint of more than 255 bytes is no key part",
    async run(t) {
      const words = "BigUint requires more than 255 bytes to be represented";
      await refuses(t, { ...reads, ...writes }, [2n ** 2040n], TypeError, words);
      await refuses(t, { ...reads, ...writes }, [-(2n ** 2040n)], TypeError, words);
    },
  },
  {
    name: "list selectors refuse the same parts, from next()",
    async run(t) {
      const kv = await t.open();
      for (const part of [null, undefined, {}, Symbol("x")]) {
        const selectors = [
          { prefix: [part] },
          { prefix: [], start: [part] },
          { prefix: [], end: [part] },
          { start: ["a"], end: [part] },
        ];
        for (const selector of selectors) {
          const iterator = kv.list(selector);
          await t.rejects(() => iterator.next(), TypeError, kinds);
        }
      }
    },
  },
  {
    name: "watch refuses the same keys, at the call",
    async run(t) {
      const kv = await t.open();
      t.throws(() => kv.watch([["a", null]]), TypeError, kinds);
      t.throws(() => kv.watch([[{}]]), TypeError, kinds);
      t.throws(() => kv.watch(["a"]), TypeError, "array");
      t.throws(() => kv.watch([null]), TypeError);
      t.throws(() => kv.watch("a"), TypeError, "array");
      t.throws(() => kv.watch(null), TypeError, "array");
    },
  },
];
