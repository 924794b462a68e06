// Duty: the sizes of prefixes over the HTTP API: entries and bytes, part by part of a range.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sizeOf } from "../../../index.mjs";
import { connect } from "../serving.mjs";
import { readToken, serveApi } from "./calling.mjs";

/** The sum of all parts of a range, and how many there are. */
async function measured(call, query = "") {
  const found = new Map();
  let parts = 0;
  let cursor = "";
  do {
    const path = `/sizes?cursor=${encodeURIComponent(cursor)}${query}`;
    const { status, body } = await call("GET", path, { token: readToken });
    assert.equal(status, 200, JSON.stringify(body));
    for (const { prefix, entries, bytes } of body.prefixes) {
      const known = found.get(prefix) ?? { entries: 0, bytes: 0 };
      found.set(prefix, { entries: known.entries + entries, bytes: known.bytes + bytes });
    }
    parts++;
    cursor = body.cursor;
  } while (cursor !== null);
  return { parts, found: Object.fromEntries(found) };
}

const bytesOf = (entries) =>
  entries.reduce((sum, [key, value]) => sum + sizeOf.key(key) + sizeOf(value), 0);

test("each prefix has the entries and bytes below it", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const users = [
    [["users"], "all of them"],
    [["users", 1n, "a"], 1],
    [["users", 1n, "b"], "x".repeat(50_000)],
    [["users", new Uint8Array([0, 255])], { a: 1 }],
  ];
  const all = [...users, [["logo"], new Uint8Array(70)]];
  for (const [key, value] of all) await kv.set(key, value);
  const size = (entries) => ({ entries: entries.length, bytes: bytesOf(entries) });
  const whole = await measured(call);
  assert.deepEqual(whole, {
    parts: 1,
    found: { '["logo"]': size(all.slice(4)), '["users"]': size(users) },
  });
  const below = await measured(call, `&prefix=${encodeURIComponent('["users"]')}`);
  assert.deepEqual(below.found, {
    '["users",u8"00ff"]': size([users[3]]),
    '["users",1n]': size(users.slice(1, 3)),
  });
  const deep = await measured(call, `&prefix=users&depth=2`);
  assert.deepEqual(Object.keys(deep.found), [
    '["users",u8"00ff"]',
    '["users",1n,"a"]',
    '["users",1n,"b"]',
  ]);
  assert.deepEqual(await measured(call, "&prefix=none"), { parts: 1, found: {} });
});

test("a large range comes in parts, which add up", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const COUNT = 2600;
  for (let at = 0; at < COUNT; at += 650) {
    const adding = kv.atomic();
    for (let n = at; n < at + 650; n++) adding.set(["n", n], n);
    await adding.commit();
  }
  const entries = Array.from({ length: COUNT }, (_, n) => [["n", n], n]);
  // Of prefixes so many are in one part that there are several.
  const each = await measured(call, "&depth=2");
  assert.ok(each.parts > 1, `${each.parts} parts`);
  assert.equal(Object.keys(each.found).length, COUNT);
  const together = await measured(call);
  assert.deepEqual(together.found, { '["n"]': { entries: COUNT, bytes: bytesOf(entries) } });
});

test("what is wrong is refused by name", async () => {
  const { call } = await serveApi();
  const refused = async (query, status, detail) => {
    const found = await call("GET", `/sizes?${query}`);
    assert.equal(found.status, status);
    assert.match(found.body.detail, detail);
  };
  await refused("depth=0", 400, /depth must be at least 1/);
  await refused("cursor=%25", 400, /cursor/);
  await refused("limit=5", 400, /limit/);
  assert.equal((await call("GET", "/sizes", { token: "another-token" })).status, 401);
});
