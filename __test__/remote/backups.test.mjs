// Duty: the backup of a database over a URL: it is that of the server, whatever the connection does.

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { newFolder } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { cutting } from "./cutting.mjs";

const accessToken = "an access token".replaceAll(" ", "-");
const readToken = "a token that reads".replaceAll(" ", "-");
const folder = newFolder("url-backups");
const path = (name) => join(folder, name);
const left = () => readdirSync(folder).filter((name) => /unfinished|download/.test(name));

/** A server of a database with some MiB. */
async function filled(name) {
  const server = await startServer({ path: path(name), accessToken, readToken });
  const kv = await open(server.url, { accessToken, limits: "wide" });
  for (let n = 0; n < 8; n++) await kv.set(["big", n], new Uint8Array(1_000_000).fill(n));
  await kv.queue("q").enqueue("waits");
  return { server, kv };
}

test("a backup over a URL is that of the server", async () => {
  const { kv } = await filled("a.sqlite3");
  const seen = [];
  const onProgress = ({ pagesDone, pages }) => void seen.push([pagesDone, pages]);
  const copy = await kv.backup(path("a-copy.sqlite3"), { onProgress });
  const local = await open(path("a.sqlite3"));
  const other = await local.backup(path("a-other.sqlite3"));
  assert.deepEqual({ ...copy, bytes: 0 }, { ...other, bytes: 0 });
  const copied = await open(path("a-copy.sqlite3"));
  assert.deepEqual(await copied.check(), { ok: true, findings: [] });
  assert.equal((await copied.queue("q").stats()).pending, 1);
  assert.ok(seen.every(([done, all]) => done <= all && all === Math.ceil(copy.bytes / 4096)));
  await assert.rejects(kv.backup(path("a-copy.sqlite3")), /exists already/);
  assert.deepEqual(left(), []);
});

test("a download that breaks off goes on where it was", async () => {
  const { server } = await filled("b.sqlite3");
  const link = await cutting(server.url, (turn) => (turn <= 2 ? 3_000_000 : Infinity));
  const kv = await open(link.url, { accessToken });
  const copy = await kv.backup(path("b-copy.sqlite3"));
  assert.equal(link.asked.length, 3);
  assert.deepEqual([link.asked[0].range, link.asked[0].tag], [undefined, undefined]);
  for (const { range, tag } of link.asked.slice(1)) {
    assert.match(range, /^bytes=[1-9]\d*-$/);
    assert.match(tag, /^"[0-9a-f]{64}"$/);
  }
  const copied = await open(path("b-copy.sqlite3"));
  assert.deepEqual(await copied.check(), { ok: true, findings: [] });
  assert.equal(await copied.count({ prefix: [] }), copy.entries);
});

test("bytes that are not those of the server are refused", async () => {
  const { server } = await filled("c.sqlite3");
  const link = await cutting(server.url, (_, answer) => {
    answer.prependOnceListener("data", (piece) => (piece[100] ^= 1));
    return Infinity;
  });
  const kv = await open(link.url, { accessToken });
  await assert.rejects(kv.backup(path("c-copy.sqlite3")), { code: "CORRUPT" });
  assert.equal(existsSync(path("c-copy.sqlite3")), false);
  assert.deepEqual(left(), []);
});

test("an aborted download leaves nothing behind", async () => {
  const { server } = await filled("d.sqlite3");
  const controller = new AbortController();
  const link = await cutting(server.url, (_, answer) => {
    answer.once("data", () => controller.abort(new Error("enough")));
    return Infinity;
  });
  const kv = await open(link.url, { accessToken });
  const backup = kv.backup(path("d-copy.sqlite3"), { signal: controller.signal });
  await assert.rejects(backup, /enough/);
  assert.equal(existsSync(path("d-copy.sqlite3")), false);
  assert.deepEqual(left(), []);
});

test("rights and older servers are refused by name", async () => {
  const { server } = await filled("e.sqlite3");
  const reading = await open(server.url, { accessToken: readToken });
  await assert.rejects(reading.backup(path("e-copy.sqlite3")), {
    code: "DENIED",
    message: /may only read/,
  });
  assert.deepEqual(left(), []);
});
