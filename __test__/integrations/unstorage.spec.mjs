// Duty: the driver of unstorage under `createStorage`. unstorage keeps its own suite, `testDriver`, out of
// its package, so these cases are written from the documentation of its interface.

import { createStorage, prefixStorage, restoreSnapshot, snapshot } from "unstorage";
import { openKv, serve } from "openkv";
import { unstorageDriver } from "openkv/unstorage";
import process from "node:process";
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { databases, end, newPath } from "./kit.mjs";

afterAll(end);

for (const [place, newDatabase] of await databases()) {
  describe(place, () => {
    let options;
    let storage;
    beforeEach(() => {
      options = newDatabase();
      storage = createStorage({ driver: unstorageDriver(options) });
    });
    afterEach(() => storage.dispose());

    it("an absent item is null", async () => {
      expect(await storage.hasItem("a:b")).toBe(false);
      expect(await storage.getItem("a:b")).toBe(null);
      expect(await storage.getItemRaw("a:b")).toBe(null);
      expect(await storage.getKeys()).toEqual([]);
    });

    it("items of every type of JSON come back", async () => {
      const items = {
        text: "a",
        zero: 0,
        no: false,
        nothing: null,
        list: [1, "2"],
        deep: { a: { b: 1 } },
      };
      for (const [key, value] of Object.entries(items)) await storage.setItem(`v:${key}`, value);
      for (const [key, value] of Object.entries(items)) {
        expect(await storage.getItem(`v:${key}`)).toEqual(value);
        expect(await storage.hasItem(`v:${key}`)).toBe(true);
      }
    });

    it("separators of all kinds name the same item", async () => {
      await storage.setItem("a/b\\c:d", 1);
      expect(await storage.getItem("a:b:c:d")).toBe(1);
      expect(await storage.getKeys()).toEqual(["a:b:c:d"]);
    });

    it("an item and items below it are apart", async () => {
      await storage.setItem("a", 1);
      await storage.setItem("a:b", 2);
      expect(await storage.getItem("a")).toBe(1);
      await storage.removeItem("a");
      expect(await storage.getKeys()).toEqual(["a:b"]);
    });

    it("raw items keep their type and bytes", async () => {
      await storage.setItemRaw("bytes", new Uint8Array([0, 255, 1]));
      expect(Array.from(await storage.getItemRaw("bytes"))).toEqual([0, 255, 1]);
      await storage.setItemRaw("text", new TextEncoder().encode("grün"));
      expect(await storage.getItem("text")).toBe("grün");
      await storage.setItemRaw("map", new Map([["n", 1n]]));
      expect(await storage.getItemRaw("map")).toEqual(new Map([["n", 1n]]));
    });

    it("items are read and written many at a time", async () => {
      const items = Array.from({ length: 30 }, (_, at) => ({ key: `m:${at}`, value: at }));
      await storage.setItems(items);
      const read = await storage.getItems([...items.map(({ key }) => key), "m:none"]);
      expect(read).toEqual([...items, { key: "m:none", value: null }]);
    });

    it("keys are listed by base and depth", async () => {
      for (const key of ["top", "a:one", "a:two", "a:b:three", "ab:four"])
        await storage.setItem(key, 1);
      expect((await storage.getKeys()).sort()).toEqual([
        "a:b:three",
        "a:one",
        "a:two",
        "ab:four",
        "top",
      ]);
      expect((await storage.getKeys("a")).sort()).toEqual(["a:b:three", "a:one", "a:two"]);
      expect(await storage.getKeys("none")).toEqual([]);
      expect(await storage.getKeys("", { maxDepth: 0 })).toEqual(["top"]);
      expect((await storage.getKeys("a", { maxDepth: 1 })).sort()).toEqual(["a:one", "a:two"]);
      expect(await storage.getKeys("a:b", { maxDepth: 1 })).toEqual([]);
    });

    it("clear removes what is below its base, and nothing of others", async () => {
      const kv = await storage.getMount().driver.getInstance();
      await kv.set(["of the application"], 1);
      for (const key of ["a:one", "a:b:two", "c"]) await storage.setItem(key, 1);
      // `storage.clear(base)` is about mounts at the base; the driver's takes any base.
      await storage.getMount().driver.clear("a:", {});
      expect(await storage.getKeys()).toEqual(["c"]);
      await storage.clear();
      expect(await storage.getKeys()).toEqual([]);
      expect((await kv.get(["of the application"])).value).toBe(1);
    });

    it("an item expires by its ttl or by that of the driver, and getMeta has the rest", async () => {
      await storage.setItem("kept", 1);
      await storage.setItem("short", 1, { ttl: 0.001 });
      await storage.setItem("long", 1, { ttl: 60 });
      await expect.poll(() => storage.hasItem("short")).toBe(false);
      expect(await storage.getKeys()).toEqual(["kept", "long"]);
      expect((await storage.getMeta("kept")).ttl).toBe(undefined);
      const { ttl } = await storage.getMeta("long");
      expect(ttl > 50 && ttl <= 60).toBe(true);
      expect(await storage.getMeta("none")).toEqual({});
      const kv = await storage.getMount().driver.getInstance();
      const short = createStorage({ driver: unstorageDriver({ kv, base: "short", ttl: 0.001 }) });
      await short.setItems([
        { key: "a", value: 1 },
        { key: "b", value: 1, options: { ttl: 60 } },
      ]);
      await expect.poll(() => short.getKeys()).toEqual(["b"]);
    });

    it("metadata of the application is kept beside the item", async () => {
      await storage.setItem("a", 1);
      await storage.setMeta("a", { owner: "ada" });
      expect(await storage.getMeta("a")).toMatchObject({ owner: "ada" });
      await storage.removeItem("a", { removeMeta: true });
      expect(await storage.getKeys()).toEqual([]);
    });

    it("watch tells updates and removals, of other handles too, until unwatch", async () => {
      const told = [];
      const unwatch = await storage.watch((event, key) => told.push(`${event} ${key}`));
      await storage.setItem("a:b", 1);
      await expect.poll(() => told).toEqual(["update a:b"]);
      const kv = await storage.getMount().driver.getInstance();
      const other = createStorage({ driver: unstorageDriver({ kv, base: options.base }) });
      await other.removeItem("a:b");
      await expect.poll(() => told).toEqual(["update a:b", "remove a:b"]);
      await unwatch();
      await storage.setItem("a:b", 2);
      expect(told.length).toBe(2);
    });

    it("a listener that throws is a warning, and is told of the next change", async () => {
      const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      onTestFinished(() => warned.mockRestore());
      const told = [];
      await storage.watch((event, key) => {
        told.push(`${event} ${key}`);
        if (told.length === 1) throw new Error("a test");
      });
      await storage.setItem("a", 1);
      await expect
        .poll(() => warned.mock.calls.flat())
        .toEqual(["openkv/unstorage: a listener has failed: Error: a test"]);
      await storage.setItem("b", 1);
      await expect.poll(() => told).toEqual(["update a", "update b"]);
    });

    it("storages, mounts and prefixes share a database without meeting", async () => {
      const kv = await storage.getMount().driver.getInstance();
      storage.mount("cache", unstorageDriver({ kv, base: ["mounted", 1] }));
      await storage.setItem("cache:a", 1);
      await prefixStorage(storage, "deep").setItem("a", 2);
      expect((await storage.getKeys()).sort()).toEqual(["cache:a", "deep:a"]);
      expect(await kv.get(["mounted", 1, "a"])).toMatchObject({ value: "1" });
      await storage.unmount("cache");
      expect(await storage.getKeys()).toEqual(["deep:a"]);
      expect((await kv.get(["mounted", 1, "a"])).versionstamp).not.toBe(null);
    });

    it("a snapshot is restored", async () => {
      await restoreSnapshot(storage, { a: "works", b: "too" });
      expect(await snapshot(storage, "")).toEqual({ a: "works", b: "too" });
    });
  });
}

describe("on a file", () => {
  it("items stay after dispose", async () => {
    const path = newPath();
    const first = createStorage({ driver: unstorageDriver({ path }) });
    await first.setItem("a", 1);
    await first.dispose();
    const second = createStorage({ driver: unstorageDriver({ path }) });
    expect(await second.getItem("a")).toBe(1);
    await second.dispose();
  });

  it("a handle that was given stays open after dispose", async () => {
    const kv = await openKv(newPath());
    const storage = createStorage({ driver: unstorageDriver({ kv }) });
    await storage.setItem("a", 1);
    await storage.dispose();
    expect((await kv.get(["unstorage", "a"])).value).toBe("1");
    await kv.close();
  });

  it("options that are none are refused, with what to give", async () => {
    for (const [options, message] of [
      [{ path: "a", kv: {} }, /openkv\/unstorage: give either kv/],
      [{ kv: "a" }, /kv must be a handle of openKv/],
      [{ base: [] }, /base must be a string, or a key of at least one part/],
      [{ base: 1 }, /base must be/],
      [{ ttl: "60" }, /ttl must be seconds, a number of at least 0: received 60/],
    ]) {
      expect(() => unstorageDriver(options)).toThrow(message);
    }
    const storage = createStorage({ driver: unstorageDriver({ path: ":memory:" }) });
    await expect(storage.setItem("a", 1, { ttl: -1 })).rejects.toThrow(/ttl must be seconds/);
    expect(await storage.hasItem("a")).toBe(false);
    await storage.dispose();
  });
});

describe("over a URL", () => {
  it("an opening that failed is tried again by the next call", async () => {
    const path = newPath();
    const accessToken = "a-token-of-this-test";
    const first = await serve({ path, listen: "127.0.0.1:0", accessToken });
    await first.close();
    const storage = createStorage({
      driver: unstorageDriver({ path: first.url, open: { accessToken } }),
    });
    await expect(storage.getItem("a")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const second = await serve({ path, listen: `127.0.0.1:${first.port}`, accessToken });
    await storage.setItem("a", 1);
    expect(await storage.getItem("a")).toBe(1);
    await storage.dispose();
    await second.close();
  });
});
