// Duty: openkv bucket status and verify look at a database in an object store, and copies go there and back.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openKv, serve } from "../../index.mjs";
import { admin } from "../kit/cluster.mjs";
import { bucketUrl } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { contents, ended, folderOfTests, linesOf, openkv, start } from "./running.mjs";

const inFolder = folderOfTests();

test("status and verify tell what the objects say, and change none of them", async () => {
  const folder = inFolder("shop");
  // Long, so that the leader has nothing to renew meanwhile.
  const kv = await openKv(`${bucketUrl(folder)}?lease=60s`);
  const { versionstamp } = await kv.set(["a"], 1);
  const names = () => readdirSync(folder, { recursive: true }).sort();
  const before = names();
  const status = await openkv("bucket", "status", bucketUrl(folder), "--json");
  assert.equal(status.code, 0, status.err);
  const { leader, released, snapshot, logObjects, openingObjects } = JSON.parse(status.out);
  assert.match(leader, new RegExp(`process ${process.pid}`));
  // The beginning of the lead, and the commit.
  assert.deepEqual([released, snapshot, logObjects, openingObjects], [false, null, 2, 2]);
  const whole = await openkv("bucket", "verify", bucketUrl(folder), "--json");
  assert.equal(whole.code, 0, whole.err);
  const verified = JSON.parse(whole.out);
  assert.deepEqual(
    [verified.ok, verified.versionstamp, verified.findings],
    [true, versionstamp, []],
  );
  assert.deepEqual(names(), before);
  await kv.close();
  assert.match((await openkv("bucket", "status", bucketUrl(folder))).out, /released +true/);

  const object = join(folder, "log", "0".repeat(15) + "1");
  const bytes = readFileSync(object);
  bytes[bytes.length - 1] ^= 1;
  writeFileSync(object, bytes);
  const damaged = await openkv("bucket", "verify", bucketUrl(folder));
  assert.equal(damaged.code, 1);
  assert.match(damaged.out, /log\/0+1: .*damaged/);
});

test("a place without a database is refused, and stays empty", async () => {
  for (const [url, message] of [
    [bucketUrl(inFolder("none")), /no database here; a command that writes creates one/],
    ["s3://user:secret@bucket/shop", /no credentials/],
    ["shop.db", /object store is like s3:/],
  ]) {
    const { code, err } = await openkv("bucket", "verify", url);
    assert.notEqual(code, 0);
    assert.match(err, message);
    assert.doesNotMatch(err, /secret/);
  }
  assert.ok(!readdirSync(inFolder(".")).includes("none"));
});

test("the databases of servers are printed with their leaders", async () => {
  const engine = bucketUrl(inFolder("servers"));
  const port = await freePort();
  const advertise = `http://127.0.0.1:${port}`;
  const adminToken = "the-admin-token-of-all";
  const missing = await openkv("serve", "--engine", engine, "--admin-token", adminToken);
  assert.equal(missing.code, 2);
  assert.match(missing.err, /--?advertise is missing/);
  const none = await openkv("cluster", "status", "--engine", engine);
  assert.match(none.err, /there is no database here|no server has used this place/);
  const server = await serve({ engine, advertise, adminToken, listen: `127.0.0.1:${port}` });
  const { token: accessToken } = await admin(server, "POST", "", { name: "shop" });
  await admin(server, "POST", "", { name: "idle" });
  const kv = await openKv(`${server.url}/shop`, { accessToken });
  await kv.set(["a"], 1);
  const printed = await openkv("cluster", "status", "--engine", engine);
  assert.equal(printed.code, 0, printed.err);
  assert.match(printed.out, new RegExp(`shop +kv=[0-9a-f-]{36} +led by ${advertise}, unless`));
  assert.match(printed.out, /idle +kv=[0-9a-f-]{36} +led by nobody/);
  await kv.close();
  await server.close();
});

test("a file is copied into an object store and back", async () => {
  const [file, back, backup] = ["from.db", "back.db", "backup.db"].map(inFolder);
  const url = bucketUrl(inFolder("copied"));
  const kv = await openKv(file);
  for (let n = 0; n < 700; n++) await kv.set(["n", n], { n });
  await kv.close();
  for (const args of [
    ["copy", file, url],
    ["copy", url, back],
    ["backup", url, backup],
  ]) {
    const { code, err } = await openkv(...args);
    assert.equal(code, 0, err);
  }
  for (const copy of [back, backup]) assert.deepEqual(await contents(copy), await contents(file));
});

// They took the lead, wrote its beginning into the log each time, and kept the application from leading.
test("commands that only read leave the objects as they are, and the lead to the application", async () => {
  const folder = inFolder("read");
  const url = bucketUrl(folder);
  const db = ["--db", url];
  const app = await openKv(url);
  await app.set(["a"], "one");
  await app.queue("mail").enqueue({ to: "ada" });
  await app.close();
  const objects = () => readdirSync(folder, { recursive: true }).sort();
  const before = [objects(), readFileSync(join(folder, "lease.json"), "utf8")];
  for (const [args, printed] of [
    [["get", "a", ...db], /one/],
    [["list", ...db], /one/],
    [["list", "--explain", ...db], /./],
    [["count", ...db], /^1$/m],
    [["export", "-", ...db], /one/],
    [["index", "list", ...db], /^$/],
    [["stats", ...db], /./],
    [["check", ...db], /^$/],
    [["ttl", "a", ...db], /./],
    [["queue", "list", ...db], /mail/],
    [["queue", "peek", "mail", ...db], /ada/],
    [["queue", "stats", "mail", ...db], /./],
    [["queue", "schedules", "mail", ...db], /^$/],
    [["queue", "limits", "mail", ...db], /./],
    [["queue", "groups", "mail", ...db], /^$/],
    [["dead", "list", "mail", ...db], /^$/],
    [["backup", url, inFolder("read-backup.db")], /./],
    [["copy", url, inFolder("read-copy.db")], /^$/],
  ]) {
    const { code, out, err } = await openkv(...args);
    assert.equal(code, 0, `${args[0]} ${args[1]}: ${err}`);
    assert.match(out, printed, args.join(" "));
    const after = [objects(), readFileSync(join(folder, "lease.json"), "utf8")];
    assert.deepEqual(after, before, args.join(" "));
  }

  const watch = start(["watch", "a", "--json", ...db]);
  const seen = linesOf(watch, 2);
  const feed = start(["watch", "--prefix", "[]", "--initial", "--json", ...db]);
  await Promise.all([linesOf(watch, 1), linesOf(feed, 1)]);
  const again = await openKv(url);
  await again.set(["a"], "two");
  // What the application has stored is there for a command that begins then.
  assert.match((await openkv("get", "a", ...db)).out, /two/);
  assert.match((await seen).at(-1), /two/);
  await Promise.all([ended(watch, "SIGINT"), ended(feed, "SIGINT")]);
  await again.close();

  const { code, err } = await openkv("list", "--db", bucketUrl(inFolder("mistyped")));
  assert.equal(code, 1);
  assert.match(err, /no database/);
  assert.ok(!readdirSync(inFolder(".")).includes("mistyped"));
});
