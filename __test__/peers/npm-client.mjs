// Duty: what the npm client @deno/kv does with our server: its URL and token in the environment.

import assert from "node:assert/strict";
import { openKv } from "@deno/kv";

const { SERVER_URL, SERVER_TOKEN } = process.env;
const kv = await openKv(SERVER_URL, { accessToken: SERVER_TOKEN });

const { versionstamp } = await kv.set(["npm", 1], { a: [1, "two", null], n: 5n });
const entry = await kv.get(["npm", 1]);
assert.deepEqual(entry.value, { a: [1, "two", null], n: 5n });
assert.equal(entry.versionstamp, versionstamp);
assert.deepEqual((await kv.get(["deno", "object"])).value, { from: "deno" });

const lost = await kv
  .atomic()
  .check({ key: ["npm", 1], versionstamp: null })
  .set(["x"], 1)
  .commit();
assert.equal(lost.ok, false);
const done = await kv.atomic().check(entry).sum(["npm", "n"], 3n).delete(["npm", 1]).commit();
assert.equal(done.ok, true);
assert.equal((await kv.get(["npm", "n"])).value.value, 3n);

for (let n = 0; n < 250; n++) await kv.set(["npm", "list", n], n);
const found = [];
for await (const { value } of kv.list({ prefix: ["npm", "list"] }, { batchSize: 100 }))
  found.push(value);
assert.deepEqual(
  found,
  Array.from({ length: 250 }, (_, n) => n),
);

// It has no listener for a remote database, but sends messages.
assert.equal((await kv.enqueue({ from: "npm" })).ok, true);

const reader = kv.watch([["npm", "watched"]]).getReader();
// This client does not tell of a first state without any entry.
const first = reader.read();
await kv.set(["npm", "watched"], "news");
assert.equal((await first).value[0].value, "news");
await kv.set(["npm", "watched"], "more");
assert.equal((await reader.read()).value[0].value, "more");
await reader.cancel();
await assert.rejects(
  openKv(SERVER_URL, { accessToken: "not the token" }).then((kv) => kv.get(["a"])),
);
await kv.close();
console.log("npm client: ok");
process.exit();
