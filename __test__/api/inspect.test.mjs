// Duty: how things print.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { KvU64 } from "../../index.mjs";
import { open } from "./databases.mjs";

const kv = await open(":memory:");

test("a handle and a list show nothing of their inside", () => {
  assert.equal(inspect(kv), "Kv {}");
  assert.equal(inspect(kv.list({ prefix: [] })), "KvListIterator {}");
});

test("an empty operation", () => {
  assert.equal(inspect(kv.atomic()), "AtomicOperation (empty)");
});

test("an operation shows its checks, then its mutations, then its messages", () => {
  const operation = kv
    .atomic()
    .enqueue({ m: 1 }, { delay: 5, keysIfUndelivered: [["a"]], backoffSchedule: [1] })
    .set(["a", 1n, new Uint8Array([1])], { x: 1 }, { expireIn: 5 })
    .check({ key: ["a"], versionstamp: null })
    .sum(["a"], 1n)
    .delete(["b"])
    .enqueue(5)
    .set(["x", kv.commitVersionstamp()], "text")
    .check({ key: ["b"], versionstamp: "00000000000000010000" })
    .min(["a"], 2n)
    .max(["a"], 3n)
    .mutate({ type: "sum", key: ["a"], value: 5 });
  assert.equal(
    inspect(operation),
    [
      "AtomicOperation",
      "  check({ key: [ 'a' ], versionstamp: null })",
      "  check({ key: [ 'b' ], versionstamp: '00000000000000010000' })",
      "  set([ 'a', 1n, Uint8Array(1) [ 1 ] ], { x: 1 }, { expireIn: 5 })",
      "  sum([ 'a' ], [Deno.KvU64: 1n])",
      "  delete([ 'b' ])",
      "  set([ 'x', Symbol(KvCommitVersionstamp) ], 'text')",
      "  min([ 'a' ], [Deno.KvU64: 2n])",
      "  max([ 'a' ], [Deno.KvU64: 3n])",
      "  sum([ 'a' ], 5)",
      "  enqueue({ m: 1 }, { delay: 5, keysIfUndelivered: [ [ 'a' ] ], backoffSchedule: [ 1 ] })",
      "  enqueue(5)",
    ].join("\n"),
  );
});

test("what is printed is what would be written, whatever the arguments are now", () => {
  const key = ["a", new Uint8Array([1])];
  const value = { x: 1 };
  const operation = kv.atomic().set(key, value);
  key[1][0] = 9;
  key.push("more");
  value.x = 9;
  assert.match(inspect(operation), /set\(\[ 'a', Uint8Array\(1\) \[ 1 \] \], \{ x: 1 \}\)/);
});

test("an operation with a Blob or a bad key prints too", async () => {
  const operation = kv
    .atomic()
    .set(["a"], new Blob(["text"]))
    .set("bad", 1);
  assert.match(inspect(operation), /set\(\[ 'a' \], \[value with a Blob\]\)/);
  await assert.rejects(operation.commit(), TypeError);
});

test("a KvU64", () => {
  assert.equal(inspect(new KvU64(5n)), "[Deno.KvU64: 5n]");
});
