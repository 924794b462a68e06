// Duty: cursors: their bytes are Deno's, and a list goes on from them in either direction.

async function letters(t) {
  const kv = await t.open();
  const op = kv.atomic();
  for (const letter of "abcde") op.set(["a", letter], letter);
  await op.commit();
  return kv;
}

/** Reads `count` entries and answers the last one's value and the cursor. */
async function after(iterator, count) {
  let value;
  for (let i = 0; i < count; i++) ({ value } = await iterator.next());
  return [value.value, iterator.cursor];
}

/** A case: the cursor on an entry is these characters, and continues there. */
function golden(name, selector, options, [value, cursor], rest) {
  return {
    name,
    async run(t) {
      const kv = await letters(t);
      t.same(await after(kv.list(selector, options), 2), [value, cursor]);
      const onward = await t.ends(kv.list(selector, { ...options, cursor }));
      t.is(onward.join(""), rest);
    },
  };
}

const a = { prefix: ["a"] };
const range = { start: ["a", "b"], end: ["a", "z"] };

export default [
  golden("prefix", a, {}, ["b", "AmIA"], "cde"),
  golden("prefix, reverse", a, { reverse: true }, ["d", "AmQA"], "cba"),
  golden("start and end", range, {}, ["c", "YwA="], "de"),
  golden("start and end, reverse", range, { reverse: true }, ["d", "ZAA="], "cb"),
  golden("everything", { prefix: [] }, {}, ["b", "AmEAAmIA"], "cde"),
  golden("prefix and start", { prefix: ["a"], start: ["a", "b"] }, {}, ["c", "AmMA"], "de"),
  golden("prefix and end", { prefix: ["a"], end: ["a", "d"] }, {}, ["b", "AmIA"], "c"),
  {
    name: "start and end without a common beginning",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const iterator = kv.list({ start: ["a"], end: ["b"] });
      await iterator.next();
      t.is(iterator.cursor, "YQA=");
    },
  },
  {
    name: "a key that is the common beginning of start and end has a cursor too",
    denoDiffers: "its cursor is empty, and a list with an empty one begins again",
    async run(t) {
      const kv = await letters(t);
      await kv.set(["a"], "self");
      const range = { start: ["a"], end: ["a", "c"] };
      const iterator = kv.list(range);
      t.is((await iterator.next()).value.value, "self");
      const { cursor } = iterator;
      t.is(cursor, "AA==");
      t.is((await iterator.next()).value.value, "a");
      t.is(iterator.cursor, "AmEA");
      t.same(await t.ends(kv.list(range, { cursor })), ["a", "b"]);
      t.same(await t.ends(kv.list(range, { cursor, reverse: true })), []);
    },
  },
  {
    name: "the alphabet is the URL-safe one",
    async run(t) {
      const kv = await t.open();
      await kv.set([new Uint8Array([251, 255, 191])], 1);
      const iterator = kv.list({ prefix: [] });
      await iterator.next();
      t.is(iterator.cursor, "Afv_vwA=");
      const on = kv.list({ prefix: [] }, { cursor: iterator.cursor });
      t.is((await on.next()).done, true);
    },
  },
  {
    name: "before the first next() there is none",
    async run(t) {
      const iterator = (await letters(t)).list(a);
      t.throws(() => iterator.cursor, Error, "Cannot get cursor before first iteration");
    },
  },
  {
    name: "before the first next() it is the one given",
    async run(t) {
      t.is((await letters(t)).list(a, { cursor: "AmIA" }).cursor, "AmIA");
    },
  },
  {
    name: "after the end it is empty",
    async run(t) {
      const kv = await letters(t);
      for (const options of [{}, { reverse: true }, { batchSize: 2 }, { limit: 9 }]) {
        const iterator = kv.list(a, options);
        await t.all(iterator);
        t.is(iterator.cursor, "");
      }
    },
  },
  {
    name: "after the end of an empty list it is empty",
    async run(t) {
      const iterator = (await letters(t)).list({ prefix: ["none"] });
      await iterator.next();
      t.is(iterator.cursor, "");
    },
  },
  {
    name: "stopped by the limit it stays on the last entry",
    async run(t) {
      const kv = await letters(t);
      for (const options of [{ limit: 2 }, { limit: 2, batchSize: 1 }]) {
        const iterator = kv.list(a, options);
        await t.all(iterator);
        t.is(iterator.cursor, "AmIA");
        await iterator.next();
        t.is(iterator.cursor, "AmIA");
      }
    },
  },
  {
    name: "it follows the entry yielded, not the batch read",
    async run(t) {
      const iterator = (await letters(t)).list(a, { batchSize: 5 });
      const cursors = [];
      for (let i = 0; i < 5; i++) cursors.push((await after(iterator, 1))[1]);
      t.same(cursors, ["AmEA", "AmIA", "AmMA", "AmQA", "AmUA"]);
    },
  },
  {
    name: "pages of two by cursor are the whole list, both ways",
    async run(t) {
      const kv = await letters(t);
      for (const reverse of [false, true]) {
        let [cursor, text] = ["", ""];
        do {
          const iterator = kv.list(a, { limit: 2, cursor, reverse });
          const page = await t.ends(iterator);
          if (page.length === 0) break;
          text += page.join("");
          cursor = iterator.cursor;
        } while (cursor !== "");
        t.is(text, reverse ? "edcba" : "abcde");
      }
    },
  },
  {
    name: "falsy cursors are none",
    async run(t) {
      const kv = await letters(t);
      for (const cursor of ["", undefined, null, 0, false]) {
        t.is((await t.ends(kv.list(a, { cursor }))).length, 5);
      }
    },
  },
  {
    name: "a cursor whose entry is gone still marks its place",
    async run(t) {
      const kv = await letters(t);
      await kv.delete(["a", "b"]);
      t.is((await t.ends(kv.list(a, { cursor: "AmIA" }))).join(""), "cde");
      t.is((await t.ends(kv.list(a, { cursor: "AmIA", reverse: true }))).join(""), "a");
    },
  },
  {
    name: "a cursor past the end gives nothing",
    async run(t) {
      const kv = await letters(t);
      t.same(await t.ends(kv.list(a, { cursor: "AnoA" })), []);
      const until = { prefix: ["a"], end: ["a", "c"] };
      t.same(await t.ends(kv.list(until, { cursor: "AmQA" })), []);
    },
  },
  {
    name: "characters that are no cursor reject next()",
    async run(t) {
      const kv = await letters(t);
      for (const cursor of ["AmIA=", "AmI", "+++", "//==", "!!!!", "é", "AmI A", "A", "AmIA\n"]) {
        const iterator = kv.list(a, { cursor });
        await t.rejects(() => iterator.next(), TypeError, "invalid cursor");
      }
    },
  },
  {
    name: "a cursor of another type rejects next()",
    async run(t) {
      const kv = await letters(t);
      for (const cursor of [5, {}, ["AmIA"], "\u1234"]) {
        const iterator = kv.list(a, { cursor });
        await t.rejects(() => iterator.next(), TypeError);
      }
    },
  },
  {
    name: "a cursor outside the selector's bounds rejects next()",
    async run(t) {
      const kv = await letters(t);
      const cases = [
        [{ prefix: ["a"], start: ["a", "c"] }, { cursor: "AmIA" }],
        [
          { prefix: ["a"], end: ["a", "c"] },
          { cursor: "AmQA", reverse: true },
        ],
        [{ start: ["a", "b"], end: ["a", "d"] }, { cursor: "YQA=" }],
      ];
      for (const [selector, options] of cases) {
        const iterator = kv.list(selector, options);
        await t.rejects(() => iterator.next(), TypeError, "cursor out of bounds");
      }
    },
  },
  {
    name: "a cursor crosses handles, closing and opening",
    on: "shared",
    async run(t) {
      let kv = await letters(t);
      const [, cursor] = await after(kv.list(a), 2);
      kv = await t.reopen(kv);
      t.is((await t.ends(kv.list(a, { cursor }))).join(""), "cde");
    },
  },
];
