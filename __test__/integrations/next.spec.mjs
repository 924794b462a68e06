// Duty: the cache handlers of Next.js by themselves. __test__/next runs an application with them.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openKv } from "openkv";
import { createIsrCacheHandler, createUseCacheHandler } from "openkv/next";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { databases, end, newPath } from "./kit.mjs";

afterAll(end);

const bytes = new Uint8Array([0, 255, 1]);
const entry = (fields) => ({
  value: new Response(bytes).body,
  tags: [],
  stale: 30,
  timestamp: Date.now(),
  expire: 3600,
  revalidate: 900,
  ...fields,
});
const page = (fields) => ({
  kind: "APP_PAGE",
  html: "<p>",
  rscData: Buffer.from(bytes),
  status: 200,
  postponed: undefined,
  headers: { "x-next-cache-tags": "a,_N_T_/page" },
  segmentData: new Map([["/_tree", Buffer.from(bytes)]]),
  ...fields,
});
const bodyOf = async ({ value }) => new Uint8Array(await new Response(value).arrayBuffer());

/** The folder of a server of a build with this id. */
function build(id) {
  const folder = newPath();
  mkdirSync(folder);
  writeFileSync(join(folder, "BUILD_ID"), id);
  return join(folder, "server");
}

for (const [place, database] of await databases()) {
  describe(place, () => {
    let kv;
    let options;
    let cache;
    let pages;
    beforeEach(async () => {
      const { path, open, base } = database();
      kv = await openKv(path, { limits: "wide", ...open });
      options = { kv, base };
      cache = createUseCacheHandler(options);
      const Handler = createIsrCacheHandler(options);
      pages = (id) => new Handler({ serverDistDir: build(id), revalidatedTags: [] });
    });
    afterEach(async () => {
      vi.unstubAllEnvs();
      vi.restoreAllMocks();
      await kv.close();
    });

    it("an entry of use cache comes back in another process, as often as it is asked for", async () => {
      expect(await cache.get("k", [])).toBe(undefined);
      const key = `["build","id",${"x".repeat(5000)}]`;
      await cache.set(key, Promise.resolve(entry({ tags: ["a"] })));
      const other = createUseCacheHandler(options);
      for (let time = 0; time < 2; time++) {
        const found = await other.get(key, []);
        expect(found).toMatchObject({ tags: ["a"], stale: 30, expire: 3600, revalidate: 900 });
        expect(await bodyOf(found)).toEqual(bytes);
      }
      expect(await other.get(`${key} `, [])).toBe(undefined);
      expect(await cache.getExpiration(["a"])).toBe(Infinity);
    });

    it("an entry goes at its end, and one without a life is not stored", async () => {
      await cache.set("gone", Promise.resolve(entry({ timestamp: Date.now() - 3_600_001 })));
      await cache.set("dynamic", Promise.resolve(entry({ expire: 0 })));
      expect(await cache.get("gone", [])).toBe(undefined);
      expect(await cache.get("dynamic", [])).toBe(undefined);
    });

    it("a get waits for a set of its key, and a broken stream is not stored", async () => {
      let resolve;
      const setting = cache.set("k", new Promise((done) => (resolve = done)));
      const getting = cache.get("k", []);
      resolve(entry());
      expect(await bodyOf(await getting)).toEqual(bytes);
      await setting;
      const logged = vi.spyOn(console, "error").mockImplementation(() => {});
      const value = new ReadableStream({
        start: (controller) => controller.error(new Error("a test")),
      });
      await cache.set("broken", Promise.resolve(entry({ value })));
      expect(await cache.get("broken", [])).toBe(undefined);
      expect(logged).toHaveBeenCalledOnce();
    });

    it("revalidated tags and soft tags count for older entries only, in all processes", async () => {
      const other = createUseCacheHandler(options);
      const old = { timestamp: Date.now() - 1000, tags: ["a"] };
      await cache.set("old", Promise.resolve(entry(old)));
      await cache.set("of b", Promise.resolve(entry({ ...old, tags: ["b"] })));
      await other.updateTags(["a"]);
      expect(await cache.get("old", [])).toBe(undefined);
      expect(await cache.get("of b", [])).not.toBe(undefined);
      expect(await cache.get("of b", ["a"])).toBe(undefined);
      await cache.set("old", Promise.resolve(entry({ ...old, timestamp: Date.now() + 1000 })));
      expect(await other.get("old", [])).not.toBe(undefined);
    });

    it("a tag with a profile makes entries stale, and absent at its end", async () => {
      const old = { timestamp: Date.now() - 1000, tags: ["a"] };
      await cache.set("k", Promise.resolve(entry(old)));
      await cache.updateTags(["a"], { expire: 60 });
      expect((await cache.get("k", [])).revalidate).toBe(-1);
      await cache.updateTags(["a"], { expire: 0 });
      expect(await cache.get("k", [])).toBe(undefined);
    });

    it("a page comes back with its Buffers, to its build alone", async () => {
      const now = pages("one");
      expect(await now.get("/page", { kind: "APP_PAGE", isFallback: false })).toBe(null);
      const cacheControl = { revalidate: 60, expire: 3600 };
      await now.set("/page", page(), { cacheControl });
      await now.set("/none", null, { cacheControl });
      const found = await pages("one").get("/page", { kind: "APP_PAGE", isFallback: false });
      expect(found.value).toEqual(page());
      expect(Buffer.isBuffer(found.value.rscData)).toBe(true);
      expect(Buffer.isBuffer(found.value.segmentData.get("/_tree"))).toBe(true);
      expect(found.cacheControl).toEqual(cacheControl);
      expect(Math.abs(found.lastModified - Date.now()) < 60_000).toBe(true);
      expect((await now.get("/none", { kind: "APP_PAGE", isFallback: false })).value).toBe(null);
      expect(await pages("two").get("/page", { kind: "APP_PAGE", isFallback: false })).toBe(null);
    });

    it("a page goes with a tag of its header, a fetch with one of its call", async () => {
      const now = pages("one");
      const asked = { kind: "APP_PAGE", isFallback: false };
      const fetched = { kind: "FETCH", data: { headers: {}, body: "", url: "" }, revalidate: 60 };
      await now.set("/page", page(), {});
      await now.set("of fetch", fetched, { fetchCache: true, tags: ["a"] });
      await now.revalidateTag("b");
      expect(await now.get("/page", asked)).not.toBe(null);
      expect((await now.get("of fetch", { kind: "FETCH", tags: ["c"] })).value).toEqual(fetched);
      await pages("one").revalidateTag(["_N_T_/page", "d"]);
      expect(await now.get("/page", asked)).toBe(null);
      const softTags = ["d"];
      expect(await now.get("of fetch", { kind: "FETCH", tags: ["a"], softTags })).toBe(null);
      expect(await now.get("of fetch", { kind: "FETCH", tags: ["a"] })).not.toBe(null);
      // The tags of a fetch of use cache are the same ones.
      await cache.updateTags(["a"]);
      expect(await now.get("of fetch", { kind: "FETCH", tags: ["a"] })).toBe(null);
    });

    it("a database that fails is a cache that misses, but a revalidation rejects", async () => {
      const logged = vi.spyOn(console, "error").mockImplementation(() => {});
      const closed = await openKv(":memory:");
      await closed.close();
      const failing = createUseCacheHandler({ kv: closed });
      const now = new (createIsrCacheHandler({ kv: closed }))({});
      await failing.set("k", Promise.resolve(entry()));
      expect(await failing.get("k", [])).toBe(undefined);
      await now.set("/page", page(), {});
      expect(await now.get("/page", { kind: "APP_PAGE", isFallback: false })).toBe(null);
      expect(logged).toHaveBeenCalledTimes(4);
      await expect(failing.updateTags(["a"])).rejects.toThrow();
      await expect(now.revalidateTag("a")).rejects.toThrow();
    });

    it("a build uses no database", async () => {
      vi.stubEnv("NEXT_PHASE", "phase-production-build");
      await cache.set("k", Promise.resolve(entry()));
      await pages("one").set("/page", page(), {});
      expect(await cache.get("k", [])).toBe(undefined);
      expect((await kv.list({ prefix: [options.base ?? "next"] }).toArray()).length).toBe(0);
    });
  });
}
