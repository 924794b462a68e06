// Duty: downloads of a backup over the HTTP API: what they hold, how they go on, what is left of them.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { open } from "../../kit/server.mjs";
import { until } from "../../kit/time.mjs";
import { accessToken, folder, freshPath } from "../serving.mjs";
import { readToken, serveApi } from "./calling.mjs";

const sha256 = (bytes) => createHash("sha256").update(bytes).digest();

/** A server of a database with some MiB. */
async function filled(path = freshPath()) {
  const { server, call } = await serveApi({ path });
  const kv = await open(server.url, { accessToken, limits: "wide" });
  for (let n = 0; n < 8; n++) await kv.set(["big", n], new Uint8Array(1_000_000).fill(n));
  await kv.enqueue("waits", { delay: 3_600_000 });
  return { server, call, kv, path };
}

const hashIn = (headers) => headers.get("repr-digest").match(/^sha-256=:(.*):$/)[1];

/** Files beside the database that a copy has left. */
const left = (path) =>
  readdirSync(dirname(path)).filter((name) => name.includes("openkv-download"));

test("a download is a verified copy of the database, and leaves nothing behind", async () => {
  const { call, kv, path } = await filled();
  const got = await call("GET", "/backup");
  assert.equal(got.status, 200, got.body);
  assert.equal(got.headers.get("content-type"), "application/vnd.sqlite3");
  assert.equal(Number(got.headers.get("content-length")), got.bytes.length);
  assert.equal(hashIn(got.headers), sha256(got.bytes).toString("base64"));
  assert.equal(got.headers.get("etag"), `"${sha256(got.bytes).toString("hex")}"`);
  const file = join(folder(), "downloaded.sqlite3");
  writeFileSync(file, got.bytes);
  const copy = await open(file);
  assert.deepEqual(await copy.check(), { ok: true, findings: [] });
  assert.equal(await copy.count({ prefix: [] }), Number(got.headers.get("openkv-entries")));
  assert.equal(await kv.count({ prefix: [] }), 8);
  const facts = await copy.backup(join(folder(), "again.sqlite3"));
  assert.equal(facts.sha256, got.headers.get("openkv-sha256"));
  assert.equal(facts.versionstamp, got.headers.get("openkv-versionstamp"));
  assert.deepEqual(left(path), []);
  assert.equal((await call("GET", "/backup", { token: readToken })).status, 403);
  assert.equal((await call("HEAD", "/backup")).status, 405);
});

/** Begins a download and reads `bytes` of it. */
async function begin(url, bytes) {
  const headers = { authorization: `Bearer ${accessToken}` };
  const answer = await new Promise((resolve, reject) => {
    request(`${url}/api/backup`, { headers }, resolve).on("error", reject).end();
  });
  const pieces = [];
  let length = 0;
  for await (const piece of answer.iterator({ destroyOnReturn: true })) {
    pieces.push(piece);
    length += piece.length;
    if (length >= bytes) break;
  }
  return { answer, part: Buffer.concat(pieces).subarray(0, bytes), etag: answer.headers.etag };
}

test("a download that broke off goes on with the same copy", async () => {
  const { server, call, kv } = await filled();
  const { part, etag } = await begin(server.url, 300_000);
  await kv.set(["later"], 1);
  const range = `bytes=${part.length}-`;
  const rest = await call("GET", "/backup", { headers: { range, "if-range": etag } });
  assert.equal(rest.status, 206);
  const whole = Buffer.concat([part, rest.bytes]);
  assert.equal(
    rest.headers.get("content-range"),
    `bytes 300000-${whole.length - 1}/${whole.length}`,
  );
  assert.equal(`"${sha256(whole).toString("hex")}"`, etag);
  assert.equal(rest.headers.get("etag"), etag);
  // It is complete, so the copy is gone: another one is made.
  const gone = async () =>
    (await call("GET", "/backup", { headers: { "if-match": etag } })).status === 412;
  await until(gone, "the copy is gone");
  const other = await call("GET", "/backup", { headers: { range, "if-range": etag } });
  assert.equal(other.status, 200);
  assert.notEqual(other.headers.get("etag"), etag);
  const alone = await call("GET", "/backup", { headers: { range } });
  assert.equal(alone.status, 200, "without If-Range nothing says which copy is meant");
});

test("parts and ranges beyond the file", async () => {
  const { server, call } = await filled();
  const { etag, part } = await begin(server.url, 1000);
  const ask = (range) => call("GET", "/backup", { headers: { range, "if-match": etag } });
  const first = await ask("bytes=0-999");
  assert.deepEqual([first.status, first.bytes], [206, part]);
  assert.equal((await ask("bytes=-16")).bytes.length, 16);
  assert.equal((await ask("bytes=99999999999-")).status, 416);
});

test("a database has few copies at one time", async () => {
  const { server, call } = await filled();
  const url = `${server.url}/api/backup`;
  const headers = { authorization: `Bearer ${accessToken}` };
  const held = [];
  for (let n = 0; n < 2; n++) {
    const answer = await new Promise((resolve, reject) => {
      request(url, { headers }, resolve).on("error", reject).end();
    });
    assert.equal(answer.statusCode, 200);
    held.push(answer);
  }
  const third = await call("GET", "/backup");
  assert.deepEqual([third.status, third.body.code], [429, "OVER_QUOTA"]);
  for (const answer of held) answer.on("error", () => {}).destroy();
  await until(async () => (await call("GET", "/backup")).status === 200, "room for a copy");
});

// A process that ended during a copy left it in the folder.
test("a copy that an ended process has left is removed when the server opens the database", async () => {
  const path = freshPath();
  const dead = `${path}.openkv-download.4194999-0.unfinished`;
  writeFileSync(dead, "left");
  writeFileSync(`${path}.openkv-download`, "left");
  const { call } = await serveApi({ path });
  assert.equal((await call("GET", "/keys")).status, 200);
  assert.deepEqual(left(path), []);
});
