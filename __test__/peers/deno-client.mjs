// Duty: what Deno's built-in client does with our server: its URL in SERVER_URL, its token where
// Deno looks for it.

import assert from "node:assert/strict";

const kv = await Deno.openKv(Deno.env.get("SERVER_URL"));
const values = {
  null: null,
  undefined,
  true: true,
  number: -0.5,
  negativeZero: -0,
  nan: NaN,
  bigint: -(2n ** 80n),
  string: "text",
  wide: "日本語 😀",
  date: new Date(5),
  regexp: /a+/gi,
  array: [1, , 3],
  map: new Map([["a", { b: 1 }]]),
  set: new Set([1, "2"]),
  bytes: new Uint8Array([1, 2, 3]),
  buffer: new Uint8Array([9, 8]).buffer,
  floats: new Float64Array([0.5, -1]),
  error: new RangeError("gone"),
  object: { from: "deno" },
  u64: new Deno.KvU64(7n),
};
const cyclic = { name: "cyclic" };
cyclic.self = cyclic;
for (const [name, value] of Object.entries({ ...values, cyclic })) {
  await kv.set(["deno", name], value);
}
for (const [name, value] of Object.entries(values)) {
  assert.deepEqual((await kv.get(["deno", name])).value, value, name);
}
const back = (await kv.get(["deno", "cyclic"])).value;
assert.equal(back.self, back);

const many = await kv.getMany(
  Object.keys(values)
    .slice(0, 10)
    .map((name) => ["deno", name]),
);
assert.equal(many.length, 10);
const commit = await kv
  .atomic()
  .check({ key: ["deno", "new"], versionstamp: null })
  .set(["deno", "new"], 1, { expireIn: 60_000 })
  .sum(["deno", "sum"], 1n)
  .max(["deno", "max"], 9n)
  .min(["deno", "min"], 2n)
  .set(["deno", "stamped", kv.commitVersionstamp()], "stamped")
  .commit();
assert.equal(commit.ok, true);
const stamped = await Array.fromAsync(kv.list({ prefix: ["deno", "stamped"] }));
assert.deepEqual(stamped[0].key, ["deno", "stamped", commit.versionstamp]);
// More checks than Deno's own server takes: Deno's client allows a hundred.
let checks = kv.atomic();
for (let n = 0; n < 100; n++) checks = checks.check({ key: ["none", n], versionstamp: null });
assert.equal((await checks.commit()).ok, true);

for (let n = 0; n < 300; n++) await kv.set(["page", n], n);
const page = kv.list({ prefix: ["page"] }, { limit: 200, reverse: true, batchSize: 50 });
assert.equal((await Array.fromAsync(page))[199].value, 100);
await assert.rejects(() =>
  kv
    .atomic()
    .mutate({ type: "sum", key: ["deno", "object"], value: new Deno.KvU64(1n) })
    .commit(),
);

const reader = kv
  .watch([
    ["deno", "watched"],
    ["deno", "object"],
  ])
  .getReader();
const [first, second] = (await reader.read()).value;
assert.equal(first.versionstamp, null);
assert.deepEqual(second.value, { from: "deno" });
await kv.set(["deno", "watched"], "news");
assert.equal((await reader.read()).value[0].value, "news");
await reader.cancel();
await kv.close();
console.log("deno client: ok");
Deno.exit(0);
