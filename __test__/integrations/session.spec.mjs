// Duty: the store of express-session, by the documentation of its interface, and under the middleware.

import express from "express";
import session from "express-session";
import { OpenKvSessionStore } from "openkv/session";
import { openKv } from "openkv";
import { once } from "node:events";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { databases, end, newPath } from "./kit.mjs";

afterAll(end);

/** A session with a cookie that lives so long, or as long as the browser. */
function sessionOf(data, maxAge) {
  const cookie = new session.Cookie({ maxAge: maxAge ?? null });
  return { cookie, ...data };
}

/** The methods of a store as functions with promises. */
function promised(store) {
  const names = ["get", "set", "touch", "destroy", "all", "length", "clear"];
  return Object.fromEntries(names.map((name) => [name, promisify(store[name].bind(store))]));
}

/** An application that counts visits; `visit` answers the count, and `end` the session. */
async function serveApp(store) {
  const app = express();
  app.use(session({ secret: "s", resave: false, saveUninitialized: false, store }));
  app.get("/", (request, response) => {
    request.session.visits = (request.session.visits ?? 0) + 1;
    response.json(request.session.visits);
  });
  app.get("/renew", (request, response) => {
    request.session.regenerate(() => response.json(request.session.visits ?? null));
  });
  app.get("/end", (request, response) => request.session.destroy(() => response.json(null)));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  let cookie = "";
  const get = async (path) => {
    const url = `http://127.0.0.1:${server.address().port}${path}`;
    const response = await fetch(url, { headers: { cookie, connection: "close" } });
    cookie = response.headers.get("set-cookie")?.split(";")[0] ?? cookie;
    return await response.json();
  };
  const close = () => new Promise((resolve) => server.close(resolve));
  return { get, close, cookie: () => cookie, use: (given) => (cookie = given) };
}

for (const [place, newDatabase] of await databases()) {
  describe(place, () => {
    let store;
    let calls;
    let kv;
    let base;
    beforeEach(async () => {
      const { path, open, base: given = "session" } = newDatabase();
      base = given;
      kv = await openKv(path, open);
      store = new OpenKvSessionStore({ kv, base });
      calls = promised(store);
    });
    afterEach(() => kv.close());

    it("is a store of express-session", () => {
      expect(store).toBeInstanceOf(session.Store);
    });

    it("an absent session is none, and no error", async () => {
      expect(await calls.get("none")).toBeFalsy();
      await calls.destroy("none");
      await calls.touch("none", sessionOf({}, 1000));
      expect(await calls.get("none")).toBeFalsy();
    });

    it("a session comes back as its JSON", async () => {
      const given = sessionOf({ user: { name: "Ada" }, list: [1] }, 60_000);
      await calls.set("a", given);
      const read = await calls.get("a");
      expect(read).toMatchObject({ user: { name: "Ada" }, list: [1] });
      expect(read.cookie.originalMaxAge).toBe(given.cookie.originalMaxAge);
      expect(new Date(read.cookie.expires) - Date.now()).toBeGreaterThan(50_000);
    });

    it("a session expires with its cookie", async () => {
      await calls.set("short", sessionOf({}, 1));
      await calls.set("long", sessionOf({}, 60_000));
      await expect.poll(() => calls.get("short")).toBeFalsy();
      expect(Object.keys(await calls.all())).toEqual(["long"]);
      expect(await calls.length()).toBe(1);
    });

    it("a session whose cookie ends with the browser expires after the ttl of the store", async () => {
      const short = promised(new OpenKvSessionStore({ kv, base, ttl: 0.001 }));
      await short.set("short", sessionOf({}));
      await expect.poll(() => short.get("short")).toBeFalsy();
      await calls.set("a day", sessionOf({ a: 1 }));
      expect(await calls.get("a day")).toMatchObject({ a: 1, cookie: { expires: null } });
      const { expireAt } = await kv.ttl([base, "a day"]);
      expect(expireAt - Date.now()).toBeGreaterThan(86_000_000);
    });

    it("touch extends a session, without its data", async () => {
      await calls.set("a", sessionOf({ kept: true }, 60_000));
      const { versionstamp } = await kv.get([base, "a"]);
      await calls.touch("a", sessionOf({ kept: false }, 600_000));
      const read = await calls.get("a");
      expect(read.kept).toBe(true);
      expect(new Date(read.cookie.expires) - Date.now()).toBeGreaterThan(500_000);
      expect((await kv.get([base, "a"])).versionstamp).toBe(versionstamp);
    });

    it("all, length, destroy and clear", async () => {
      await kv.set(["of the application"], 1);
      for (const id of ["a", "b", "c"]) await calls.set(id, sessionOf({ id }));
      expect(await calls.length()).toBe(3);
      await calls.destroy("b");
      const all = await calls.all();
      expect(Object.entries(all).map(([id, data]) => [id, data.id])).toEqual([
        ["a", "a"],
        ["c", "c"],
      ]);
      await calls.clear();
      expect(await calls.length()).toBe(0);
      expect((await kv.get(["of the application"])).value).toBe(1);
    });

    it("a ttl that is none is refused", () => {
      for (const ttl of [0, -1, "60", Number.NaN, Number.POSITIVE_INFINITY])
        expect(() => new OpenKvSessionStore({ kv, ttl })).toThrow(/ttl must be seconds/);
    });

    it("an error is handed to the callback", async () => {
      const closed = await openKv(":memory:");
      await closed.close();
      const broken = promised(new OpenKvSessionStore({ kv: closed }));
      await expect(broken.get("a")).rejects.toThrow(/closed/);
      await expect(broken.set("a", sessionOf({}))).rejects.toThrow(/closed/);
    });

    it("the middleware counts, renews and ends sessions", async () => {
      const app = await serveApp(store);
      expect(await app.get("/")).toBe(1);
      expect(await app.get("/")).toBe(2);
      const before = app.cookie();
      expect(await app.get("/renew")).toBe(null);
      expect(app.cookie()).not.toBe(before);
      expect(await app.get("/")).toBe(1);
      await app.get("/end");
      expect(await app.get("/")).toBe(1);
      expect(await calls.length()).toBe(1);
      await app.close();
    });
  });
}

describe("on a file", () => {
  it("sessions survive a restart of the application", async () => {
    const path = newPath();
    const first = new OpenKvSessionStore({ path });
    let app = await serveApp(first);
    await app.get("/");
    expect(await app.get("/")).toBe(2);
    const cookie = app.cookie();
    await app.close();
    await first.close();

    const second = new OpenKvSessionStore({ path });
    app = await serveApp(second);
    app.use(cookie);
    expect(await app.get("/")).toBe(3);
    await app.close();
    await second.close();
  });
});
