// Duty: every limit, on both sides.

/** A bytes part that makes a key of this many encoded bytes. */
const key = (size, first = 1) => [new Uint8Array(size - 2).fill(first)];

/** A key of exactly 2000 bytes that differs by number: 9 bytes of number, 1991 of bytes. */
const numbered = (i, size) => [i, new Uint8Array(size - 11).fill(1)];

export default [
  {
    name: "an error that input can cause has a code",
    denoDiffers: "Deno's errors have no codes of this kind",
    async run(t) {
      const kv = await t.open();
      const code = async (call) => (await t.rejects(call, TypeError)).code;
      t.is(await code(() => kv.get("user")), "INVALID");
      t.is(await code(() => kv.list({ prefix: [] }, { cursor: "?" }).next()), "INVALID");
      t.is(await code(() => kv.set(key(2049), 1)), "TOO_LARGE");
      t.is(await code(() => kv.set(["a"], "x".repeat(70_000))), "TOO_LARGE");
      t.is(await code(() => kv.set(["a"], () => 1)), undefined);
    },
  },
  {
    name: "a key of 2048 bytes can be written, read, listed, checked, watched and deleted",
    async run(t) {
      const kv = await t.open();
      const long = key(2048);
      await kv.set(long, 1);
      const entry = await kv.get(long);
      t.is(entry.value, 1);
      t.same(entry.key, long);
      t.is((await kv.getMany([long]))[0].value, 1);
      t.is((await t.all(kv.list({ prefix: [] }))).length, 1);
      const reader = kv.watch([long]).getReader();
      t.is((await reader.read()).value[0].value, 1);
      await reader.cancel();
      t.is((await kv.atomic().check(entry).delete(long).commit()).ok, true);
      t.is(await t.stamp(kv, long), null);
    },
  },
  {
    name: "a key of 2049 bytes cannot be written, deleted, summed or checked",
    async run(t) {
      const kv = await t.open();
      const words = "Key too large for write (max 2048 bytes)";
      const long = key(2049);
      await t.rejects(() => kv.set(long, 1), TypeError, words);
      await t.rejects(() => kv.delete(long), TypeError, words);
      await t.rejects(async () => kv.atomic().set(long, 1).commit(), TypeError, words);
      await t.rejects(async () => kv.atomic().sum(long, 1n).commit(), TypeError, words);
      const check = { key: long, versionstamp: null };
      await t.rejects(async () => kv.atomic().check(check).commit(), TypeError, words);
    },
  },
  {
    name: "a key of 2049 bytes cannot be read or listed, one of 2050 not be watched",
    async run(t) {
      const kv = await t.open();
      const words = "Key too large for read (max 2049 bytes)";
      await t.rejects(() => kv.get(key(2049)), TypeError, words);
      await t.rejects(() => kv.getMany([["a"], key(2049)]), TypeError, words);
      t.throws(() => kv.watch([key(2050)]), TypeError, words);
      const iterator = kv.list({ prefix: key(2049) });
      await t.rejects(() => iterator.next(), TypeError, words);
    },
  },
  {
    name: "zeroes count twice in the size of a key",
    async run(t) {
      const kv = await t.open();
      await kv.set([new Uint8Array(1023)], 1);
      await t.rejects(() => kv.set([new Uint8Array(1024)], 1), TypeError, "Key too large");
    },
  },
  {
    name: "a key far beyond the limit is refused alike",
    async run(t) {
      const kv = await t.open();
      const huge = ["x".repeat(5_000_000)];
      await t.rejects(() => kv.set(huge, 1), TypeError, "Key too large for write");
      await t.rejects(() => kv.get(huge), TypeError, "Key too large for read");
      const parts = Array.from({ length: 100_000 }, (_, i) => i);
      await t.rejects(() => kv.set(parts, 1), TypeError, "Key too large for write");
    },
  },
  {
    name: "a value of 65536 bytes and not one more",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], new Uint8Array(65536).fill(5));
      const back = await t.value(kv, ["a"]);
      t.ok(back.length === 65536 && back.every((byte) => byte === 5));
      const words = "Value too large (max 65536 bytes)";
      await t.rejects(() => kv.set(["a"], new Uint8Array(65537)), TypeError, words);
      for (const large of [new Uint8Array(65537), [new Uint8Array(65537)], "x".repeat(65537)]) {
        const op = kv.atomic().set(["b"], 1).set(["c"], large).set(["d"], 1);
        await t.rejects(() => op.commit(), TypeError, words);
        await t.rejects(() => op.commit(), TypeError, words);
      }
      t.same(await t.ends(kv.list({ prefix: [] })), ["a"]);
    },
  },
  {
    name: "a message of 65536 bytes is too large with its envelope, a smaller one is not",
    async run(t) {
      const kv = await t.open();
      await kv.enqueue(new Uint8Array(65000), { delay: 60_000 });
      const words = "enqueue payload too large (max 65536 bytes)";
      await t.rejects(() => kv.enqueue(new Uint8Array(65536)), TypeError, words);
      const op = kv.atomic().enqueue("x".repeat(65537));
      await t.rejects(() => op.commit(), TypeError, words);
    },
  },
  {
    name: "100 checks and not 101",
    async run(t) {
      const kv = await t.open();
      const checks = Array.from({ length: 101 }, (_, i) => ({ key: ["k", i], versionstamp: null }));
      t.is(
        (
          await kv
            .atomic()
            .check(...checks.slice(1))
            .commit()
        ).ok,
        true,
      );
      const op = async () =>
        kv
          .atomic()
          .check(...checks)
          .commit();
      await t.rejects(op, TypeError, "Too many checks (max 100)");
    },
  },
  {
    name: "1000 mutations and messages together and not 1001",
    async run(t) {
      const kv = await t.open();
      const fill = (op, count) => {
        for (let i = 0; i < count; i++) op.set(["n", i], i);
        return op;
      };
      const words = "Too many mutations (max 1000)";
      await fill(kv.atomic(), 1000).commit();
      await t.rejects(async () => fill(kv.atomic(), 1001).commit(), TypeError, words);
      const later = { delay: 60_000 };
      await fill(kv.atomic(), 999).enqueue(1, later).commit();
      const mixed = async () => fill(kv.atomic(), 999).enqueue(1, later).enqueue(2, later).commit();
      await t.rejects(mixed, TypeError, words);
    },
  },
  {
    name: "819200 bytes of mutations and not one more",
    async run(t) {
      const kv = await t.open();
      // Each set counts its key twice and its value: 13 keys of 4 bytes, twice.
      const fill = (total) => {
        const op = kv.atomic();
        let left = total - 13 * 8;
        for (let i = 0; i < 13; i++) {
          const size = Math.min(left, 65536);
          op.set([`${i % 10}${"abc"[Math.floor(i / 10)]}`], new Uint8Array(size));
          left -= size;
        }
        return op.commit();
      };
      t.is((await fill(819200)).ok, true);
      const words = "Total mutation size too large (max 819200 bytes)";
      await t.rejects(() => fill(819201), TypeError, words);
    },
  },
  {
    name: "checks, deletes, messages and backoffs count into those bytes",
    async run(t) {
      const kv = await t.open();
      // 12 sets of 65536 bytes under keys of 4 bytes: 786528; what is left is 32672.
      const filled = () => {
        const op = kv.atomic();
        for (let i = 0; i < 12; i++) op.set([`${"ab"[i % 2]}${i % 10}`], new Uint8Array(65536));
        return op;
      };
      const words = "Total mutation size too large";
      const versionstamp = null;
      const most = filled();
      for (let i = 0; i < 15; i++) most.check({ key: numbered(i, 2000), versionstamp });
      t.is((await most.commit()).ok, true);
      const checks = filled();
      for (let i = 0; i < 17; i++) checks.check({ key: numbered(i, 2000), versionstamp });
      await t.rejects(async () => checks.commit(), TypeError, words);
      const deletes = filled();
      for (let i = 0; i < 17; i++) deletes.delete(numbered(i, 2000));
      await t.rejects(async () => deletes.commit(), TypeError, words);
      const message = async () => filled().enqueue("x".repeat(33_000)).commit();
      await t.rejects(message, TypeError, words);
    },
  },
  {
    name: "81920 bytes of keys with values and not more",
    async run(t) {
      const kv = await t.open();
      const fill = (count, size, last) => {
        const op = kv.atomic();
        for (let i = 0; i < count; i++) op.set(numbered(i, size), 1);
        if (last) op.set(numbered(-1, last), 1);
        return op.commit();
      };
      t.is((await fill(40, 2048)).ok, true);
      const words = "Total key size too large (max 81920 bytes)";
      await t.rejects(async () => fill(40, 2048, 12), TypeError, words);
    },
  },
  {
    name: "keys of deletes and checks do not count into those",
    async run(t) {
      const kv = await t.open();
      const op = kv.atomic();
      for (let i = 0; i < 60; i++) {
        op.delete(numbered(i, 2048)).check({ key: numbered(i, 2048), versionstamp: null });
      }
      t.is((await op.commit()).ok, true);
    },
  },
  {
    name: "a commit over a limit changes nothing",
    async run(t) {
      const kv = await t.open();
      const op = kv.atomic().set(["a"], 1).set(key(2049), 1);
      await t.rejects(async () => op.commit(), TypeError, "Key too large");
      t.same(await t.all(kv.list({ prefix: [] })), []);
    },
  },
  {
    name: "10 watched keys and not 11",
    async run(t) {
      const kv = await t.open();
      const keys = Array.from({ length: 11 }, (_, i) => ["k", i]);
      const reader = kv.watch(keys.slice(1)).getReader();
      t.is((await reader.read()).value.length, 10);
      await reader.cancel();
      t.throws(() => kv.watch(keys), TypeError, "Too many keys (max 10)");
    },
  },
  {
    name: "no values are lost among many large ones",
    async run(t) {
      const kv = await t.open();
      const value = (i) => ({ i, text: `${i}`.padEnd(20_000, "x"), bytes: new Uint8Array(9000) });
      await Promise.all(Array.from({ length: 60 }, (_, i) => kv.set(["big", i], value(i))));
      for (let i = 0; i < 60; i++) t.same(await t.value(kv, ["big", i]), value(i));
    },
  },
];
