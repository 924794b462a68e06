// Duty: opening a database in an object store: what is refused, without a secret and without a change, what a
// cache is good for, and that the database is the same wherever it is opened.

import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openKv, restore, serve } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";
import { bucketUrl, newFolder } from "../kit/folder.mjs";
import { open } from "../kit/server.mjs";
import { HANG_MS, guard, until } from "../kit/time.mjs";

const folder = newFolder("bucket-opening");
let places = 0;

function fresh() {
  const path = join(folder, `bucket-${places++}`);
  return { path, url: bucketUrl(path) };
}

test("what is no place for a database is refused by name, without its secrets", async () => {
  for (const [url, options, words] of [
    ["s3://me:secret@bucket/x", {}, /no credentials: give them in the environment/],
    ["s3://bucket/x?AWS_SECRET_ACCESS_KEY=secret", {}, /unknown parameter/],
    ["s3://bucket/x?endpoint=http://192.0.2.1:9000", {}, /this machine only: use https/],
    ["s3://bucket/x?lease=1", {}, /a duration like 15s/],
    ["s3://bucket/x?linger=2s", {}, /a duration like 50ms or 1s, from 0ms to 1000 ms/],
    ["gs://bucket/x?region=secret", {}, /for s3:\/\/ only/],
    ["bucket+file://secret/x", {}, /absolute path/],
    ["s3:/secret/x", {}, /begins with s3: and is no URL: one begins with s3:\/\/; .*\.\/s3:/],
    ["bucket+file:/secret/x", {}, /one begins with bucket\+file:\/\/\/;/],
    ["https:secret", {}, /one begins with https:\/\//],
    ["s3://bucket/x", { lead: "secret-often" }, /lead must be "auto", "wait" or "never"/],
    ["s3://bucket/x", { cache: 7 }, /cache must be the path of a folder/],
    ["s3://bucket/x", { cache: ":memory:" }, /cache must be the path of a folder/],
    ["s3://bucket/x", { readonly: true, lead: "wait" }, /leave out readonly/],
    [
      "s3://bucket/x",
      { replica: ":memory:" },
      /'replica' is not for a database in an object store/,
    ],
    [":memory:", { cache: "x" }, /'cache' is not for this database/],
    ["file.sqlite3", { lead: "auto" }, /'lead' is not for this database/],
  ]) {
    await assert.rejects(openKv(url, options), (error) => {
      assert.equal(error.name, "TypeError", `${url}: ${error}`);
      assert.match(error.message, words);
      assert.ok(!/secret@|=secret|secret\//.test(error.message), error.message);
      return true;
    });
  }
});

test("a place with something else in it stays as it is", async () => {
  const { path, url } = fresh();
  await assert.rejects(openKv(url, { lead: "never" }), {
    code: "UNAVAILABLE",
    message: /no database/,
  });
  assert.ok(!existsSync(path));
  mkdirSync(path);
  await assert.rejects(openKv(url, { lead: "never" }), {
    code: "UNAVAILABLE",
    message: /no database/,
  });
  writeFileSync(join(path, "mine.txt"), "x");
  await assert.rejects(openKv(url), { name: "TypeError", message: /other objects.*mine\.txt/ });
  rmSync(join(path, "mine.txt"));
  writeFileSync(join(path, "openkv-archive.json"), "{}");
  await assert.rejects(openKv(url), { name: "TypeError", message: /an archive of openkv/ });
  rmSync(join(path, "openkv-archive.json"));
  assert.deepEqual(readdirSync(path), []);
  writeFileSync(join(path, "openkv.json"), JSON.stringify({ openkv: 9, database: "0".repeat(32) }));
  await assert.rejects(openKv(url), { code: "UNSUPPORTED", message: /format 9.*update openkv/ });
  writeFileSync(join(path, "openkv.json"), "{}");
  await assert.rejects(openKv(url), { code: "CORRUPT" });
  await assert.rejects(openKv(fresh().url, { encoding: "v8" }), { code: "UNSUPPORTED" });
  await assert.rejects(restore("backup.sqlite3", url), {
    code: "UNSUPPORTED",
    message: /object store/,
  });
  await assert.rejects(serve({ path: url, listen: "127.0.0.1:0" }), { code: "UNSUPPORTED" });
});

test("a database is the same from a cache, from its log, and through the command line", async () => {
  const { url, path } = fresh();
  const cache = join(folder, "kept");
  const kv = await open(url, { cache });
  for (let n = 0; n < 20; n++) await kv.set(["n", n], { n });
  const { versionstamp } = await kv.get(["n", 19]);
  await assert.rejects(openKv(url, { cache, lead: "never" }), {
    code: "UNAVAILABLE",
    message: /another handle of this process/,
  });
  await kv.close();
  const objects = () => readdirSync(join(path, "log")).length;
  const before = objects();
  for (const options of [{ cache }, {}, { lead: "never" }, { readonly: true }]) {
    const again = await open(url, options);
    assert.deepEqual((await again.get(["n", 19])).value, { n: 19 });
    assert.equal((await again.get(["n", 19])).versionstamp, versionstamp);
    await again.close();
  }
  // Each leader has put a fence; a reader writes nothing.
  assert.equal(objects(), before + 2);
  const listed = await openkv("list", "--db", url, "--json");
  assert.equal(listed.code, 0, listed.err);
  assert.equal(listed.out.trim().split("\n").length, 20);
});

test("openings at the same time share a database, and another choice of the leader does not", async () => {
  const { url } = fresh();
  const cache = join(folder, "shared");
  const [one, two] = await Promise.all([open(url, { cache }), open(`${url}/`, { cache })]);
  await one.set(["n"], 1);
  assert.equal((await two.get(["n"])).value, 1);
  await two.set(["n"], 2);
  assert.equal((await one.get(["n"])).value, 2);
  // Otherwise it would be open without the lead.
  await assert.rejects(openKv(url, { cache, lead: "wait" }), {
    code: "UNAVAILABLE",
    message: /another handle of this process with other options/,
  });
});

/** The option was refused, and nothing but the end of the process ended the wait. */
test("a signal ends the wait for the lead, of each opening by itself, and nothing is left", async () => {
  const { url, path } = fresh();
  const cache = join(folder, "given-up");
  const leader = await open(url);
  await leader.set(["n"], 1);
  const [one, two] = [new AbortController(), new AbortController()];
  const waits = (signal) => openKv(url, { cache, lead: "wait", signal });
  const [first, second] = [one, two].map(({ signal }) => isSettled(waits(signal)));
  await until(() => existsSync(join(cache, "openkv-cache.sqlite3")), "an opening waits");
  assert.ok(!first.done && !second.done);
  // Whichever has the turn.
  two.abort("second");
  await assert.rejects(guard(second.promise, HANG_MS, "the end"), (reason) => reason === "second");
  assert.ok(!first.done);
  one.abort("first");
  await assert.rejects(guard(first.promise, HANG_MS, "the end"), (reason) => reason === "first");
  await assert.rejects(waits(AbortSignal.abort("before")), (reason) => reason === "before");
  // The folder is free, and the lead is where it was.
  const lease = readFileSync(join(path, "lease.json"), "utf8");
  const reader = await open(url, { cache, lead: "never" });
  assert.equal((await reader.get(["n"])).value, 1);
  await reader.close();
  await leader.set(["n"], 2);
  assert.equal(JSON.parse(lease).id, JSON.parse(readFileSync(join(path, "lease.json"), "utf8")).id);
  // A handle that is open goes on.
  const late = new AbortController();
  const next = guard(openKv(url, { lead: "wait", signal: late.signal }), HANG_MS, "the lead");
  await leader.close();
  const kv = await next;
  late.abort();
  await kv.set(["n"], 3);
  await kv.close();
});

function isSettled(promise) {
  const seen = { promise, done: false };
  const end = () => (seen.done = true);
  promise.then(end, end);
  return seen;
}

/** The second handle had the times of the first, without a word. */
test("handles of a process have the same times", async () => {
  const { url } = fresh();
  const kv = await open(`${url}?lease=2s`);
  for (const times of ["", "?lease=3s", "?lease=2s&linger=1s"])
    await assert.rejects(openKv(url + times), {
      code: "UNAVAILABLE",
      message: /another lease or linger in its URL/,
    });
  const same = await open(`${url}/?lease=2000ms`);
  await same.close();
  await kv.close();
  await (await open(`${url}?lease=3s`)).set(["n"], 1);
});

test("a cache of another database or another past is replaced", async () => {
  const [one, other] = [fresh(), fresh()];
  const cache = join(folder, "mixed");
  const first = await open(one.url, { cache });
  await first.set(["of"], "one");
  await first.close();
  const second = await open(other.url, { cache });
  assert.equal((await second.get(["of"])).value, null);
  await second.set(["of"], "other");
  await second.set(["more"], 1);
  await second.close();
  // The bucket is set back, as from a copy of it, and goes on otherwise.
  const copy = join(folder, "copy");
  cpSync(other.path, copy, { recursive: true });
  const numbers = readdirSync(join(copy, "log")).toSorted();
  rmSync(join(copy, "log", numbers.at(-1)));
  const back = bucketUrl(copy);
  const elsewhere = await open(back);
  await elsewhere.set(["of"], "another past");
  await elsewhere.close();
  const third = await open(back, { cache });
  assert.equal((await third.get(["of"])).value, "another past");
  assert.equal((await third.get(["more"])).value, null);
  await third.close();
  writeFileSync(join(cache, "openkv-cache.sqlite3"), "no database");
  const fourth = await open(back, { cache });
  assert.equal((await fourth.get(["of"])).value, "another past");
});

test("a damaged object of the log is an error that names it", async () => {
  const { url, path } = fresh();
  const kv = await open(url);
  await kv.set(["a"], 1);
  await kv.close();
  const name = join(path, "log", readdirSync(join(path, "log")).toSorted().at(-1));
  const bytes = readFileSync(name);
  bytes[60] ^= 1;
  writeFileSync(name, bytes);
  await assert.rejects(openKv(url, { lead: "never" }), {
    code: "CORRUPT",
    message: /log\/0.*damaged/,
  });
});
