// Duty: the store of keyv under keyv's own suite, which is for keyv 5, with its cases for iterators; under
// keyv 6; and under cache-manager.

import * as vitest from "vitest";
import suite, { keyvIteratorTests } from "@keyv/test-suite";
import { createCache } from "cache-manager";
import Keyv from "keyv";
import Keyv6 from "keyv-6";
import { openKv } from "openkv";
import { OpenKvStore } from "openkv/keyv";
import { databases, end } from "./kit.mjs";

const { afterAll, beforeEach, describe, expect, it } = vitest;
afterAll(end);

for (const [place, newDatabase] of await databases()) {
  describe(place, async () => {
    const { path, open, base } = newDatabase();
    const kv = await openKv(path, open);
    afterAll(() => kv.close());

    const store = () => new OpenKvStore({ kv, base });
    describe("its own suite", () => suite(vitest, Keyv, store));
    describe("its own suite of iterators", () => keyvIteratorTests(vitest, Keyv, store));

    for (const [version, Class] of Object.entries({ "keyv 5": Keyv, "keyv 6": Keyv6 })) {
      describe(version, () => {
        const prefix = ["of", version];
        const newStore = () => new OpenKvStore({ kv, base: prefix });
        const newKeyv = (options) => new Class({ store: newStore(), ...options });
        beforeEach(() => kv.deleteMany({ prefix }));

        it("many values are written, read, asked for and deleted at once", async () => {
          const keyv = newKeyv({ namespace: "many" });
          const entries = Array.from({ length: 20 }, (_, at) => ({ key: `k${at}`, value: { at } }));
          await keyv.setMany(entries);
          const keys = entries.map(({ key }) => key);
          expect(await keyv.getMany([...keys, "none"])).toEqual([
            ...entries.map(({ value }) => value),
            undefined,
          ]);
          expect(await keyv.hasMany(["k1", "none"])).toEqual([true, false]);
          expect([await keyv.deleteMany(keys)].flat()).not.toContain(false);
          expect(await keyv.get("k1")).toBe(undefined);
          expect([await keyv.deleteMany(["k1"])].flat()).toEqual([false]);
        });

        it("an entry expires in the database, after its own time", async () => {
          const keyv = newKeyv();
          await keyv.set("short", 1, 1);
          await keyv.set("long", 1, 60_000);
          await keyv.set("kept", 1);
          await keyv.setMany([{ key: "short too", value: 1, ttl: 1 }]);
          const left = async () => {
            const entries = await kv.list({ prefix }, { withExpiry: true }).toArray();
            // keyv 5 has a namespace without being told one.
            return entries.map(({ key, expireAt }) => [key.at(-1).split(":").at(-1), expireAt]);
          };
          await expect.poll(async () => (await left()).length).toBe(2);
          const [[kept, never], [long, then]] = await left();
          expect([kept, never, long]).toEqual(["kept", null, "long"]);
          expect(then - Date.now()).toBeGreaterThan(50_000);
          expect(then - Date.now()).toBeLessThan(60_001);
        });

        it("namespaces are apart, also where one is the beginning of another", async () => {
          const [a, b] = ["name", "names"].map((namespace) => newKeyv({ namespace }));
          await a.set("s", "of a");
          await b.set("s", "of b");
          await b.set("t", "of b");
          const found = [];
          for await (const entry of a.iterator()) found.push(entry);
          expect(found).toEqual([["s", "of a"]]);
          await b.clear();
          expect(await a.get("s")).toBe("of a");
          expect(await b.has("s")).toBe(false);
        });

        it("a time to live that ends at no date is none", async () => {
          const keyv = newKeyv();
          keyv.on("error", () => {});
          const lives = [Number.POSITIVE_INFINITY, Number.NaN, 1e17];
          for (const ttl of lives) expect(await keyv.set(`${ttl}`, 1, ttl)).toBe(true);
          const many = lives.map((ttl) => ({ key: `many ${ttl}`, value: 2, ttl }));
          expect(await keyv.setMany(many)).toEqual([true, true, true]);
          const keys = [...lives.map(String), ...many.map(({ key }) => key)];
          expect(await keyv.getMany(keys)).toEqual([1, 1, 1, 2, 2, 2]);
          const stored = await kv.list({ prefix }, { withExpiry: true }).toArray();
          expect(stored.map(({ expireAt }) => expireAt)).toEqual(Array(6).fill(null));
        });

        it("setMany answers for each entry", async () => {
          const keyv = newKeyv();
          const errors = [];
          keyv.on("error", (error) => errors.push(error));
          const entries = [
            { key: "a", value: 1 },
            { key: "x".repeat(5000), value: 2 }, // longer than a key
            { key: "b", value: 3 },
          ];
          expect(await keyv.setMany(entries)).toEqual([true, false, true]);
          expect(await keyv.getMany(["a", "b"])).toEqual([1, 3]);
          expect(await keyv.setMany([entries[1]])).toEqual([false]);
          expect(errors.length).toBe(2);
        });

        it("without keys that keyv prefixes, namespaces are apart too", async () => {
          const [a, b] = ["one", "two"].map((namespace) =>
            newKeyv({ namespace, useKeyPrefix: false }),
          );
          await a.set("s", 1);
          await b.set("s", 2);
          // In keyv 5 this looks like a key that keyv has prefixed.
          await b.set("two:s", 3);
          expect(await a.get("s")).toBe(1);
          expect(await b.getMany(["s", "two:s"])).toEqual([2, 3]);
          const found = [];
          for await (const entry of b.iterator()) found.push(entry);
          expect(found).toEqual([
            ["s", 2],
            ["two:s", 3],
          ]);
          await b.clear();
          expect([await b.has("s"), await b.has("two:s"), await a.has("s")]).toEqual([
            false,
            false,
            true,
          ]);
        });

        it("an iterator has what is there, in the order of the keys", async () => {
          const keyv = newKeyv({ namespace: "list" });
          for (const key of ["b", "a", "c"]) await keyv.set(key, { key });
          const found = [];
          for await (const [key, value] of keyv.iterator()) found.push([key, value.key]);
          expect(found).toEqual([
            ["a", "a"],
            ["b", "b"],
            ["c", "c"],
          ]);
        });

        it("disconnect closes only what the store has opened", async () => {
          const keyv = newKeyv();
          await keyv.disconnect();
          await keyv.set("a", 1);
          expect(await keyv.get("a")).toBe(1);
          const own = new Class({ store: new OpenKvStore({ path: ":memory:" }) });
          await own.set("a", 1);
          await own.disconnect();
          expect(await own.get("a")).toBe(undefined);
          await own.disconnect();
        });
      });
    }

    it("with keyv 5 the stored key has the namespace that keyv puts before it", async () => {
      const prefix = ["of the usual form"];
      const keyv = new Keyv({ store: new OpenKvStore({ kv, base: prefix }), namespace: "n" });
      await keyv.set("k", 1);
      const [{ key }] = await kv.list({ prefix }).toArray();
      expect(key).toEqual([...prefix, "n:k"]);
    });

    it("cache-manager reads, wraps, expires and clears", async () => {
      const cache = createCache({ stores: [new Keyv({ store: store(), namespace: "cache" })] });
      await cache.set("a", { n: 1 }, 60_000);
      expect(await cache.get("a")).toEqual({ n: 1 });
      expect(await cache.ttl("a")).toBeGreaterThan(Date.now());
      let made = 0;
      const make = async () => ({ made: ++made });
      expect(await cache.wrap("w", make, 60_000)).toEqual({ made: 1 });
      expect(await cache.wrap("w", make, 60_000)).toEqual({ made: 1 });
      await cache.mset([
        { key: "b", value: 2 },
        { key: "c", value: 3, ttl: 1 },
      ]);
      await expect.poll(() => cache.mget(["b", "c"])).toEqual([2, undefined]);
      await cache.mdel(["b"]);
      expect(await cache.get("b")).toBe(undefined);
      await cache.clear();
      expect(await cache.mget(["a", "w"])).toEqual([undefined, undefined]);
    });
  });
}
