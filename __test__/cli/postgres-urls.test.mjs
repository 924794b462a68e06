// Duty: commands with the URL of PostgreSQL in the place of a path: refusals before anything connects,
// in which no password is printed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openkv } from "./running.mjs";

const SECRET = "hunter2";
const url = `postgres://ada:${SECRET}@localhost/shop?pool=5`;

for (const [args, words] of [
  [["--db", url, "list"], /unknown parameter pool/],
  [["--db", url, "stats"], /unknown parameter pool/],
  [["--db", url, "backup", "copy.db"], /unknown parameter pool/],
  [["copy", ":memory:", url], /unknown parameter pool/],
  [["copy", url, url.replace("ada", "bob")], /the same database/],
  [["serve", "--path", url], /serve: not for a database on PostgreSQL/],
  [["restore", "a.db", url], /restore: not for a database on PostgreSQL/],
]) {
  test(args.map((arg) => arg.replace(SECRET, "…")).join(" "), async () => {
    const { code, out, err } = await openkv(...args);
    assert.notEqual(code, 0);
    assert.match(err, words);
    assert.ok(!(out + err).includes(SECRET), "a password is printed");
  });
}

test("OPENKV_URL names the database of a command", async () => {
  const { code, err } = await openkv("list", { env: { OPENKV_URL: url } });
  assert.notEqual(code, 0);
  assert.match(err, /unknown parameter pool/);
  assert.ok(!err.includes(SECRET), "a password is printed");
});
