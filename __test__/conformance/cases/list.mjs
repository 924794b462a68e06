// Duty: list: selectors and their ranges, order, batches, the iterator.

/** a database with a/a … a/e, and neighbours that no selector of "a" may touch. */
async function letters(t) {
  const kv = await t.open();
  const op = kv.atomic();
  for (const letter of "abcde") op.set(["a", letter], letter);
  await op.set(["a"], "self").set(["A", "x"], 0).set(["aa"], 0).set(["b", "a"], 0).commit();
  return kv;
}

const texts = async (t, iterator) => (await t.ends(iterator)).join("");

/** A case: this selector gives these letters, and reversed when listed backwards. */
function range(name, selector, expected) {
  return {
    name,
    async run(t) {
      const kv = await letters(t);
      t.is(await texts(t, kv.list(selector)), expected);
      const backwards = await texts(t, kv.list(selector, { reverse: true }));
      t.is(backwards, [...expected].reverse().join(""), "reverse");
      for (const batchSize of [1, 2, 3]) {
        t.is(await texts(t, kv.list(selector, { batchSize })), expected, `batches of ${batchSize}`);
      }
    },
  };
}

export default [
  range("prefix, without the key that equals it", { prefix: ["a"] }, "abcde"),
  range("prefix and start", { prefix: ["a"], start: ["a", "c"] }, "cde"),
  range("prefix and start between keys", { prefix: ["a"], start: ["a", "bb"] }, "cde"),
  range("prefix and end, which is left out", { prefix: ["a"], end: ["a", "c"] }, "ab"),
  range("start and end", { start: ["a", "b"], end: ["a", "d"] }, "bc"),
  range("start equal to end is empty", { start: ["a", "b"], end: ["a", "b"] }, ""),
  range("start and end of other kinds", { start: ["a", 0n], end: ["a", true] }, ""),
  range("a prefix without keys", { prefix: ["none"] }, ""),
  range("undefined bounds are none", { prefix: ["a"], start: undefined, end: undefined }, "abcde"),
  range(
    "an undefined prefix is none",
    { prefix: undefined, start: ["a", "a"], end: ["a", "c"] },
    "ab",
  ),
  {
    name: "an empty prefix is everything",
    async run(t) {
      const kv = await letters(t);
      const keys = (await t.all(kv.list({ prefix: [] }))).map((entry) => entry.key.join("/"));
      t.same(keys, ["A/x", "a", "a/a", "a/b", "a/c", "a/d", "a/e", "aa", "b/a"]);
    },
  },
  {
    name: "start may be the empty key",
    async run(t) {
      const kv = await letters(t);
      t.is((await t.all(kv.list({ start: [], end: ["a", "b"] }))).length, 3);
    },
  },
  {
    name: "entries are whole, plain and unfrozen",
    async run(t) {
      const kv = await t.open();
      const { versionstamp } = await kv.set(["a", 1], { v: 1 });
      const { done, value } = await kv.list({ prefix: ["a"] }).next();
      t.is(done, false);
      t.same(value, { key: ["a", 1], value: { v: 1 }, versionstamp });
      t.same(Object.keys(value), ["key", "value", "versionstamp"]);
      t.ok(!Object.isFrozen(value));
    },
  },
  {
    name: "bytes in entries own their whole buffer",
    async run(t) {
      const kv = await t.open();
      for (let i = 0; i < 5; i++) await kv.set([i], new Uint8Array([i, i]));
      for (const { value } of await t.all(kv.list({ prefix: [] }))) {
        t.is(value.constructor, Uint8Array);
        t.same([value.byteOffset, value.buffer.byteLength], [0, 2]);
      }
    },
  },
  {
    name: "a bound that is no array is a TypeError at the call",
    denoDiffers: "Deno takes a string for its letters, and whatever has a slice for a key",
    async run(t) {
      const kv = await letters(t);
      t.throws(() => kv.list({ prefix: "ab" }), TypeError, 'write prefix: ["ab"]');
      for (const bound of ["a", 5, new Uint8Array(1), { 0: "a", length: 1 }]) {
        t.throws(() => kv.list({ prefix: bound }), TypeError, "expected: array");
        t.throws(() => kv.list({ prefix: ["a"], start: bound }), TypeError, "expected: array");
        t.throws(() => kv.list({ start: ["a"], end: bound }), TypeError, "expected: array");
      }
    },
  },
  {
    name: "a property that no selector has is a TypeError that says where it belongs",
    denoDiffers: "Deno ignores it, and the list has entries that were not meant",
    async run(t) {
      const kv = await letters(t);
      const words = "limit belongs into the second argument: kv.list({ prefix }, { limit })";
      t.throws(() => kv.list({ prefix: [], limit: 1 }), TypeError, words);
      t.throws(() => kv.list({ prefix: [], keys: [] }), TypeError, "unknown property 'keys'");
      t.throws(() => kv.list({ perfix: [] }), TypeError, "did you mean 'prefix'");
    },
  },
  {
    name: "selectors that are not enough are TypeErrors at the call",
    async run(t) {
      const kv = await t.open();
      const words = "must specify either 'prefix' or both 'start' and 'end'";
      for (const selector of [{}, { start: ["a"] }, { end: ["a"] }, { prefix: undefined }]) {
        t.throws(() => kv.list(selector), TypeError, words);
      }
    },
  },
  {
    name: "prefix, start and end together are a TypeError at the call",
    async run(t) {
      const kv = await t.open();
      const selector = { prefix: ["a"], start: ["a", "a"], end: ["a", "b"] };
      const words = "can not specify both 'start' and 'end' key when specifying 'prefix'";
      t.throws(() => kv.list(selector), TypeError, words);
    },
  },
  {
    name: "a selector that is no object is a TypeError at the call",
    async run(t) {
      const kv = await t.open();
      for (const selector of [null, undefined, { prefix: null }]) {
        t.throws(() => kv.list(selector), TypeError);
      }
    },
  },
  {
    name: "bounds count only when they are the selector's own",
    async run(t) {
      const kv = await t.open();
      t.throws(() => kv.list(Object.create({ prefix: ["a"] })), TypeError, "must specify");
    },
  },
  {
    name: "a start or end outside the prefix rejects next()",
    async run(t) {
      const kv = await letters(t);
      for (const start of [["b"], ["a"], ["A"], ["aa"]]) {
        const iterator = kv.list({ prefix: ["a"], start });
        const words = "Start key is not in the keyspace defined by prefix";
        await t.rejects(() => iterator.next(), TypeError, words);
      }
      for (const end of [["b"], ["a"], ["A"], ["aa"]]) {
        const iterator = kv.list({ prefix: ["a"], end });
        const words = "End key is not in the keyspace defined by prefix";
        await t.rejects(() => iterator.next(), TypeError, words);
      }
    },
  },
  {
    name: "a start after the end rejects next()",
    async run(t) {
      const iterator = (await t.open()).list({ start: ["b"], end: ["a"] });
      await t.rejects(() => iterator.next(), TypeError, "Start key is greater than end key");
    },
  },
  {
    name: "after the end next() goes on saying so",
    async run(t) {
      const kv = await letters(t);
      const iterator = kv.list({ prefix: ["a"] });
      await t.all(iterator);
      for (let i = 0; i < 3; i++) t.same(await iterator.next(), { done: true, value: undefined });
    },
  },
  {
    name: "break leaves the iterator where it is",
    async run(t) {
      const kv = await letters(t);
      const iterator = kv.list({ prefix: ["a"] });
      for await (const entry of iterator) if (entry.value === "b") break;
      t.is((await iterator.next()).value.value, "c");
      t.is(await texts(t, iterator), "de");
    },
  },
  {
    name: "next() by hand and for await are one iteration",
    async run(t) {
      const kv = await letters(t);
      const iterator = kv.list({ prefix: ["a"] });
      await iterator.next();
      t.is(await texts(t, iterator), "bcde");
    },
  },
  {
    name: "next() calls that are not awaited answer different entries in order",
    denoDiffers: "in Deno they race, and each may answer the first entry",
    async run(t) {
      const kv = await letters(t);
      for (const batchSize of [1, 2, 100]) {
        const iterator = kv.list({ prefix: ["a"] }, { batchSize });
        const answers = await Promise.all(Array.from({ length: 7 }, () => iterator.next()));
        t.is(answers.map((a) => a.value?.value ?? ".").join(""), "abcde..");
      }
    },
  },
  {
    name: "lists of more than one batch, both ways",
    async run(t) {
      const kv = await t.open();
      const numbers = Array.from({ length: 1500 }, (_, i) => i);
      for (let from = 0; from < 1500; from += 500) {
        const op = kv.atomic();
        for (const i of numbers.slice(from, from + 500)) op.set(["n", i], i);
        await op.commit();
      }
      t.same(await t.ends(kv.list({ prefix: ["n"] })), numbers);
      const backwards = await t.ends(kv.list({ prefix: ["n"] }, { reverse: true }));
      t.same(backwards, [...numbers].reverse());
      t.same(await t.ends(kv.list({ prefix: ["n"] }, { limit: 700 })), numbers.slice(0, 700));
      t.same(await t.ends(kv.list({ prefix: ["n"] }, { batchSize: 499 })), numbers);
    },
  },
  {
    name: "large entries of a list all arrive",
    async run(t) {
      const kv = await t.open();
      for (let i = 0; i < 120; i++) await kv.set(["n", i], new Uint8Array(60_000).fill(i));
      const entries = await t.all(kv.list({ prefix: ["n"] }));
      t.is(entries.length, 120);
      for (const [i, { value }] of entries.entries()) {
        t.ok(value.length === 60_000 && value[0] === i && value[59_999] === i, `entry ${i}`);
      }
    },
  },
  {
    name: "keys removed after their batch was read are still yielded, later ones are not",
    async run(t) {
      const kv = await letters(t);
      const iterator = kv.list({ prefix: ["a"] }, { batchSize: 2 });
      t.is((await iterator.next()).value.value, "a");
      await kv.delete(["a", "b"]);
      await kv.delete(["a", "d"]);
      t.is(await texts(t, iterator), "bce");
    },
  },
  {
    name: "a batch is one snapshot",
    async run(t) {
      const kv = await t.open();
      let writing = true;
      const writer = (async () => {
        for (let i = 0; i < 150; i++) {
          await kv.atomic().set(["s", 1], i).set(["s", 2], i).set(["s", 3], i).commit();
        }
        writing = false;
      })();
      while (writing) {
        const values = (await t.all(kv.list({ prefix: ["s"] }))).map((entry) => entry.value);
        t.is(new Set(values).size <= 1, true, `snapshot ${values}`);
        await t.sleep(0);
      }
      await writer;
    },
  },
  {
    name: "several iterators at once do not disturb each other",
    async run(t) {
      const kv = await letters(t);
      const iterators = [1, 2, 3].map((batchSize) => kv.list({ prefix: ["a"] }, { batchSize }));
      const found = ["", "", ""];
      for (let i = 0; i < 5; i++) {
        for (const [j, iterator] of iterators.entries()) {
          found[j] += (await iterator.next()).value.value;
        }
      }
      t.same(found, ["abcde", "abcde", "abcde"]);
    },
  },
  {
    name: "a list sees the write before it",
    async run(t) {
      const kv = await t.open();
      for (let i = 0; i < 30; i++) {
        await kv.set(["n", i], i);
        t.is((await t.all(kv.list({ prefix: ["n"] }))).length, i + 1);
      }
    },
  },
];
