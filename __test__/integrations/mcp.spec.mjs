// Duty: `openkv mcp` as a process, with the client of the official SDK: on the standard streams and over HTTP.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { openKv, serve } from "openkv";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { bun } from "../runtime/binaries.mjs";
import { end, newPath } from "./kit.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const command = join(here, "node_modules/openkv/dist/cli/openkv.js");
const READING = ["get", "list", "count", "search", "explain", "history", "stats"];
const conformance = join(here, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
/** A hang guard. */
const CONFORMANCE_MS_MAX = 60_000;
/** Entries of a result, at most. */
const ENTRIES_MAX = 100;

const ending = [];
afterEach(async () => {
  for (const close of ending.splice(0).reverse()) await close();
});
afterAll(end);

/** A client of `openkv mcp ARGS` on the standard streams. */
async function onStreams(...args) {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [command, ...args],
  });
  await client.connect(transport);
  ending.push(() => client.close());
  return client;
}

/** A process that serves HTTP, its URL, and what it has printed. */
async function serving(...args) {
  const listen = ["--listen", "127.0.0.1:0"];
  const child = spawn(process.execPath, [command, "mcp", ...listen, ...args]);
  ending.push(async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "close");
  });
  let out = "";
  while (!out.includes("\n")) out += (await once(child.stdout, "data"))[0];
  return new URL(out.trim());
}

async function overHttp(url, headers = {}) {
  const client = new Client({ name: "test", version: "1" });
  const options = { requestInit: { headers } };
  await client.connect(new StreamableHTTPClientTransport(url, options));
  ending.push(() => client.close());
  return client;
}

/** The document that a tool answers; an error is thrown. */
async function call(client, name, given = {}) {
  const { content, isError } = await client.callTool({ name, arguments: given });
  expect(content.length).toBe(1);
  if (isError) throw new Error(content[0].text);
  return JSON.parse(content[0].text);
}

/** A new database in each place, as the options that open it. */
const places = {
  "on a file": async () => ({ path: newPath() }),
  "over a URL": async () => {
    const accessToken = "the-token-of-this-suite";
    const server = await serve({ path: newPath(), listen: "127.0.0.1:0", accessToken });
    ending.push(() => server.close());
    return { path: server.url, open: { accessToken } };
  },
};

/** A database with some entries; its path or URL and the arguments that open it. */
async function filled(database) {
  const { path, open } = await database();
  const kv = await openKv(path, open);
  const users = [];
  for (let n = 0; n < 150; n++) users.push([["users", n], { name: `User ${n}`, age: n }]);
  for (let at = 0; at < users.length; at += 50) {
    const operation = kv.atomic();
    for (const [key, value] of users.slice(at, at + 50)) operation.set(key, value);
    await operation.commit();
  }
  await kv.set(["odd", 5n, new Uint8Array([1, 2])], new Map([["a", new Date(0)]]));
  await kv.set(["large"], "x".repeat(60_000));
  const { progress } = await kv.createIndex({ prefix: ["users"], fields: ["name"] });
  for await (const { done } of progress) if (done) break;
  await kv.close();
  return [path, ...(open?.accessToken === undefined ? [] : ["--token", open.accessToken])];
}

for (const [place, database] of Object.entries(places)) {
  describe(place, () => {
    it("has tools that read, with their schemas", async () => {
      const client = await onStreams("mcp", ...(await filled(database)));
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(READING);
      for (const { annotations, inputSchema } of tools) {
        expect(annotations.readOnlyHint).toBe(true);
        expect(inputSchema.type).toBe("object");
      }
      expect(client.getServerVersion().name).toBe("openkv");
    });

    it("gets, lists, counts, filters and searches", async () => {
      const client = await onStreams("mcp", ...(await filled(database)));
      const got = await call(client, "get", { key: ["users", 7] });
      expect(got).toMatchObject({ key: ["users", 7], value: { name: "User 7", age: 7 } });
      expect(await call(client, "get", { key: ["none"] })).toEqual({ found: false });
      const odd = (await call(client, "list", { prefix: ["odd"] })).entries[0];
      expect(odd.value).toEqual({ a: "1970-01-01T00:00:00.000Z" });
      expect((await call(client, "get", { key: odd.key })).versionstamp).toBe(odd.versionstamp);
      expect(await call(client, "count", { prefix: ["users"] })).toEqual({ count: 150 });
      const where = { age: { $gte: 148 } };
      expect(await call(client, "count", { prefix: ["users"], where })).toEqual({ count: 2 });
      const old = await call(client, "list", { prefix: ["users"], where, reverse: true });
      expect(old.entries.map(({ value }) => value.age)).toEqual([149, 148]);
      const found = await call(client, "search", { prefix: ["users"], query: "42" });
      expect(found.entries.map(({ key }) => key)).toEqual([["users", 42]]);
      const { stats, indexes } = await call(client, "stats");
      expect(stats.entries).toBe(152);
      expect(indexes[0].prefix).toEqual(["users"]);
    });

    it("bounds results, and a cursor goes on", async () => {
      const client = await onStreams("mcp", ...(await filled(database)));
      const keys = [];
      let cursor;
      do {
        const given = { prefix: ["users"], limit: ENTRIES_MAX, keysOnly: true };
        const page = await call(client, "list", { ...given, ...(cursor && { cursor }) });
        expect(page.entries.length).toBeLessThanOrEqual(ENTRIES_MAX);
        for (const entry of page.entries) {
          expect(entry).not.toHaveProperty("value");
          keys.push(entry.key[1]);
        }
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect(keys).toEqual(Array.from({ length: 150 }, (_, n) => n));
      await expect(call(client, "list", { prefix: [], limit: ENTRIES_MAX + 1 })).rejects.toThrow(
        "limit must be an integer from 1 to 100",
      );
      const large = await call(client, "get", { key: ["large"] });
      expect(large).not.toHaveProperty("value");
      expect(large.note).toContain("60002 characters");
      expect(large.beginning.length).toBe(16_384);
    });

    it("refuses bad calls in words", async () => {
      const client = await onStreams("mcp", ...(await filled(database)));
      await expect(call(client, "get", {})).rejects.toThrow("key must be a key");
      await expect(call(client, "get", { key: [{}] })).rejects.toThrow("part of a key");
      await expect(call(client, "get", { key: ["a"], deep: 1 })).rejects.toThrow("known are key");
      await expect(call(client, "drop")).rejects.toThrow("There is no tool drop");
      await expect(call(client, "set", { key: ["a"], value: 1 })).rejects.toThrow("no tool set");
      await expect(
        call(client, "list", { prefix: [], where: { a: { $near: 1 } } }),
      ).rejects.toThrow("$near");
    });

    it("writes only with --write, under the versionstamp of a read", async () => {
      const args = await filled(database);
      const client = await onStreams("mcp", "--write", ...args);
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual([...READING, "set", "delete"]);
      const set = { key: ["note"], value: { text: "a" }, versionstamp: null };
      const made = await call(client, "set", set);
      expect(made.ok).toBe(true);
      expect((await call(client, "set", set)).ok).toBe(false);
      const got = await call(client, "get", { key: ["note"] });
      expect(got).toMatchObject({ value: { text: "a" }, versionstamp: made.versionstamp });
      const { versionstamp } = got;
      expect((await call(client, "delete", { key: ["note"], versionstamp })).ok).toBe(true);
      expect(await call(client, "get", { key: ["note"] })).toEqual({ found: false });
      await expect(call(client, "set", { key: ["note"] })).rejects.toThrow("value is missing");
    });
  });
}

describe("on a file, beyond", () => {
  it("names the unique index that refuses a write", async () => {
    const path = newPath();
    const kv = await openKv(path);
    await (await kv.createIndex({ type: "value", prefix: ["u"], on: "m", unique: true })).ready();
    await kv.set(["u", 1], { m: "ada" });
    await kv.close();
    const client = await onStreams("mcp", "--write", path);
    for (const versionstamp of [undefined, null]) {
      const set = { key: ["u", 2], value: { m: "ada" }, versionstamp };
      await expect(call(client, "set", set)).rejects.toThrow(/the unique index .* by m' has/);
    }
  });

  it("shows the history of an entry", async () => {
    const path = newPath();
    const kv = await openKv(path, { history: 60_000 });
    await kv.set(["a"], 1);
    await kv.set(["a"], 2);
    await kv.delete(["a"]);
    await kv.close();
    const client = await onStreams("mcp", path);
    const { versions } = await call(client, "history", { key: ["a"], limit: 2 });
    expect(versions.map(({ type, value }) => [type, value])).toEqual([
      ["delete", null],
      ["set", 2],
    ]);
  });

  it("serves HTTP on this machine, and refuses pages of other sites", async () => {
    const url = await serving(...(await filled(places["on a file"])));
    const client = await overHttp(url);
    expect(await call(client, "count", { prefix: ["users"] })).toEqual({ count: 150 });
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const type = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const post = (headers, given = body) =>
      fetch(url, { method: "POST", headers: { ...type, ...headers }, body: given });
    expect((await post({})).status).toBe(200);
    expect((await post({ origin: "https://evil.example" })).status).toBe(403);
    expect((await post({ origin: "http://localhost:3000" })).status).toBe(200);
    expect((await post({}, "no JSON")).status).toBe(400);
    expect((await post({}, `"${"x".repeat(1024 * 1024)}"`)).status).toBe(413);
    expect((await fetch(url)).status).toBe(405);
    expect((await fetch(new URL("/", url))).status).toBe(404);
  });

  it("serves HTTP with a token to those that have it", async () => {
    const args = await filled(places["on a file"]);
    const url = await serving("--mcp-token", "a-token", ...args);
    await expect(overHttp(url)).rejects.toThrow("Bearer TOKEN");
    await expect(overHttp(url, { authorization: "Bearer b-token" })).rejects.toThrow(
      "Bearer TOKEN",
    );
    const client = await overHttp(url, { authorization: "Bearer a-token" });
    expect(await call(client, "count", { prefix: [] })).toEqual({ count: 152 });
  });

  // The other scenarios call tools that a server has for them alone.
  const scenarios = [
    ...["server-initialize", "ping", "tools-list", "tools-call-error", "dns-rebinding-protection"],
  ];
  it("passes the conformance suite of the protocol", { timeout: CONFORMANCE_MS_MAX }, async () => {
    const url = await serving(...(await filled(places["on a file"])));
    // It needs fs.globSync, which Node.js 20 lacks.
    const runtime = bun();
    for (const scenario of scenarios) {
      const args = [conformance, "server", "--url", url.href, "--scenario", scenario];
      const child = spawn(runtime, args, { cwd: dirname(newPath()) });
      let out = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (out += data));
      const [code] = await once(child, "close");
      expect({ code, out }).toMatchObject({ code: 0 });
      expect(out, scenario).toMatch(/Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings/);
    }
  });

  it("says what is missing: the database, a token", async () => {
    const run = async (...args) => {
      const child = spawn(process.execPath, [command, "mcp", ...args]);
      child.stdin.end();
      let err = "";
      child.stderr.on("data", (data) => (err += data));
      const [code] = await once(child, "close");
      return { code, err };
    };
    const absent = await run(newPath());
    expect(absent.code).toBe(1);
    expect(absent.err).toContain("does not exist");
    const open = await run("--listen", "0.0.0.0:0", ":memory:");
    expect(open.code).toBe(2);
    expect(open.err).toContain("--mcp-token");
  });
});
