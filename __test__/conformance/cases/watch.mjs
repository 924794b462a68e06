// Duty: watch: the first state, what makes news, raw, ends.

/** Reads until an item satisfies `wanted`; answers it. A watch may skip states, never the last. */
async function readUntil(t, reader, wanted) {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) t.fail("the watch ended");
    if (wanted(value)) return value;
  }
}

/** Counts the items that arrive, in the background. */
function counted(stream) {
  const seen = { items: [], ended: false };
  (async () => {
    for await (const item of stream) seen.items.push(item);
    seen.ended = true;
  })();
  return seen;
}

export default [
  {
    name: "is a ReadableStream",
    async run(t) {
      const stream = (await t.open()).watch([["a"]]);
      t.ok(stream instanceof ReadableStream);
      await stream.cancel();
    },
  },
  {
    name: "the first item is the state of all keys, missing ones as null",
    async run(t) {
      const kv = await t.open();
      const { versionstamp } = await kv.set(["b"], 2);
      const reader = kv.watch([["a"], ["b"], ["a"]]).getReader();
      const { value, done } = await reader.read();
      t.is(done, false);
      t.same(value, [
        { key: ["a"], value: null, versionstamp: null },
        { key: ["b"], value: 2, versionstamp },
        { key: ["a"], value: null, versionstamp: null },
      ]);
      t.same(Object.keys(value[1]), ["key", "value", "versionstamp"]);
      await reader.cancel();
    },
  },
  {
    name: "every change brings the state of all keys",
    async run(t) {
      const kv = await t.open();
      const reader = kv.watch([["a"], ["b"]]).getReader();
      await reader.read();
      await kv.set(["b"], 1);
      t.same(
        (await reader.read()).value.map((entry) => entry.value),
        [null, 1],
      );
      await kv.set(["a"], 2);
      t.same(
        (await reader.read()).value.map((entry) => entry.value),
        [2, 1],
      );
      await kv.delete(["b"]);
      const { value } = await reader.read();
      t.same(
        value.map((entry) => entry.versionstamp !== null),
        [true, false],
      );
      await reader.cancel();
    },
  },
  {
    name: "sums, atomic commits and versionstamped values are changes",
    async run(t) {
      const kv = await t.open();
      const reader = kv.watch([["n"], ["m"]]).getReader();
      await reader.read();
      await kv.atomic().sum(["n"], 5n).commit();
      t.is((await reader.read()).value[0].value.value, 5n);
      const { versionstamp } = await kv.atomic().max(["n"], 9n).set(["m"], 1).commit();
      const { value } = await reader.read();
      t.same(
        value.map((entry) => entry.versionstamp),
        [versionstamp, versionstamp],
      );
      await reader.cancel();
    },
  },
  {
    name: "the same value again is a change",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const reader = kv.watch([["a"]]).getReader();
      await reader.read();
      const { versionstamp } = await kv.set(["a"], 1);
      t.is((await reader.read()).value[0].versionstamp, versionstamp);
      await reader.cancel();
    },
  },
  {
    name: "what changes nothing is no item",
    async run(t) {
      const kv = await t.open();
      const seen = counted(kv.watch([["a"]]));
      await t.until(() => seen.items.length === 1, "the first item");
      await kv.delete(["a"]);
      await kv.atomic().set(["a"], 1).delete(["a"]).commit();
      await kv.set(["b"], 1);
      await kv.atomic().commit();
      await kv
        .atomic()
        .check({ key: ["b"], versionstamp: null })
        .set(["a"], 1)
        .commit();
      await t.sleep(150);
      t.is(seen.items.length, 1);
      await kv.set(["a"], "end");
      await t.until(() => seen.items.length === 2, "the second item");
      t.is(seen.items[1][0].value, "end");
    },
  },
  {
    name: "other keys make no items: neighbours, prefixes, extensions",
    async run(t) {
      const kv = await t.open();
      const seen = counted(kv.watch([["a", "b"]]));
      await t.until(() => seen.items.length === 1, "the first item");
      for (const key of [["a"], ["a", "b", "c"], ["a", "c"], ["b"]]) await kv.set(key, 1);
      await t.sleep(150);
      t.is(seen.items.length, 1);
    },
  },
  {
    name: "a slow reader ends on the newest state",
    async run(t) {
      const kv = await t.open();
      const reader = kv.watch([["a"]]).getReader();
      await reader.read();
      for (let i = 0; i < 50; i++) await kv.set(["a"], i);
      let items = 0;
      await readUntil(t, reader, ([entry]) => (items++, entry.value === 49));
      t.ok(items <= 50, "never more items than changes");
      await reader.cancel();
    },
  },
  {
    name: "a late reader begins with the newest state",
    denoDiffers: "Deno fetches one state ahead, which is old by the time it is read",
    async run(t) {
      const kv = await t.open();
      const reader = kv.watch([["a"]]).getReader();
      const other = kv.watch([["a"]]).getReader();
      await other.read();
      await t.sleep(100);
      for (let i = 0; i < 20; i++) await kv.set(["a"], i);
      t.is((await reader.read()).value[0].value, 19);
      await Promise.all([reader.cancel(), other.cancel()]);
    },
  },
  {
    name: "states never go back",
    async run(t) {
      const kv = await t.open();
      const reader = kv.watch([["a"], ["b"]]).getReader();
      const writing = (async () => {
        for (let i = 1; i <= 100; i++) await kv.atomic().set(["a"], i).set(["b"], i).commit();
      })();
      let last = 0;
      await readUntil(t, reader, ([a, b]) => {
        t.is(a.value, b.value, "one snapshot");
        t.ok((a.value ?? 0) >= last, "back in time");
        last = a.value ?? 0;
        return last === 100;
      });
      await writing;
      await reader.cancel();
    },
  },
  {
    name: "several watches of one key all see it",
    async run(t) {
      const kv = await t.open();
      const readers = Array.from({ length: 5 }, () => kv.watch([["a"]]).getReader());
      for (const reader of readers) await reader.read();
      await kv.set(["a"], "x");
      for (const reader of readers) t.is((await reader.read()).value[0].value, "x");
      for (const reader of readers) await reader.cancel();
    },
  },
  {
    name: "a watch sees the writes of another handle",
    on: "shared",
    async run(t) {
      const one = await t.open();
      const two = await t.another(one);
      const reader = one.watch([["a"]]).getReader();
      await reader.read();
      await two.set(["a"], "from two");
      t.is((await reader.read()).value[0].value, "from two");
      await reader.cancel();
    },
  },
  {
    name: "raw tells of every touch",
    async run(t) {
      const kv = await t.open();
      const reader = kv.watch([["a"]], { raw: true }).getReader();
      await reader.read();
      await kv.delete(["a"]);
      t.is((await reader.read()).value[0].versionstamp, null);
      await kv.set(["a"], 1);
      await readUntil(t, reader, ([entry]) => entry.value === 1);
      await reader.cancel();
    },
  },
  {
    name: "bytes in items own their whole buffer",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], new Uint8Array([1, 2]));
      const reader = kv.watch([["a"]]).getReader();
      const bytes = (await reader.read()).value[0].value;
      t.is(bytes.constructor, Uint8Array);
      t.is(bytes.buffer.byteLength, 2);
      await reader.cancel();
    },
  },
  {
    name: "watching nothing ends at once",
    async run(t) {
      const reader = (await t.open()).watch([]).getReader();
      t.is((await reader.read()).done, true);
    },
  },
  {
    name: "the empty key can be watched",
    async run(t) {
      const reader = (await t.open()).watch([[]]).getReader();
      t.same((await reader.read()).value, [{ key: [], value: null, versionstamp: null }]);
      await reader.cancel();
    },
  },
  {
    name: "cancel and break end a watch",
    async run(t) {
      const kv = await t.open();
      const stream = kv.watch([["a"]]);
      for await (const item of stream) {
        t.is(item.length, 1);
        break;
      }
      const reader = kv.watch([["a"]]).getReader();
      await reader.read();
      await reader.cancel();
      t.is((await reader.read()).done, true);
      await kv.set(["a"], 1);
    },
  },
  {
    name: "a watch that is not read disturbs nobody",
    async run(t) {
      const kv = await t.open();
      kv.watch([["a"]]);
      for (let i = 0; i < 20; i++) await kv.set(["a"], i);
      t.is(await t.value(kv, ["a"]), 19);
    },
  },
  {
    name: "close ends a watch that waits",
    async run(t) {
      const kv = await t.open();
      const reader = kv.watch([["a"]]).getReader();
      await reader.read();
      const waiting = reader.read();
      kv.close();
      const { done, value } = await waiting;
      t.same([done, value], [true, undefined]);
    },
  },
  {
    name: "options: null is a TypeError, none is fine",
    async run(t) {
      const kv = await t.open();
      t.throws(() => kv.watch([["a"]], null), TypeError);
      await kv.watch([["a"]], undefined).cancel();
      await kv.watch([["a"]], {}).cancel();
      await kv.watch([["a"]], { raw: undefined }).cancel();
    },
  },
  {
    name: "a misspelt option is a TypeError at the call",
    denoDiffers: "Deno ignores every option it does not know, and the slip goes unseen",
    async run(t) {
      const kv = await t.open();
      t.throws(() => kv.watch([["a"]], { row: true }), TypeError, "row");
    },
  },
  {
    name: "raw does not take a versionstamped key for its prefix",
    denoDiffers: "Deno announces such a key without its suffix",
    async run(t) {
      const kv = await t.open();
      const seen = counted(kv.watch([["log"]], { raw: true }));
      const later = counted(kv.watch([["later"]], { raw: true }));
      await t.until(() => seen.items.length >= 1 && later.items.length >= 1, "the first items");
      await t.sleep(150);
      const before = seen.items.length;
      await kv.set(["log", kv.commitVersionstamp()], 1);
      await kv.set(["later"], 1);
      await t.until(() => later.items.at(-1)[0].value === 1, "the commit behind it");
      await t.sleep(150);
      t.is(seen.items.length, before);
      await kv.set(["log"], "the key itself");
      await t.until(() => seen.items.at(-1)[0].value === "the key itself", "the news");
    },
  },
  {
    name: "a signal ends the stream",
    denoDiffers: "it takes no signals",
    async run(t) {
      const kv = await t.open();
      const controller = new AbortController();
      const reader = kv.watch([["a"]], { signal: controller.signal }).getReader();
      t.is((await reader.read()).done, false);
      const pending = reader.read();
      controller.abort();
      t.is((await Promise.race([pending, t.sleep(10_000)]))?.done, true);
      kv.close();
    },
  },
];
