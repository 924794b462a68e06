// Duty: the error classes: names, codes, how records of the addon become errors, whose stack shows.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { inspect } from "node:util";
import { BadResource, KvError, openKv } from "../../index.mjs";
import { open } from "./databases.mjs";

const require = createRequire(import.meta.url);
const { CODES } = require("../../build/model/error-codes.js");
const errors = require("../../build/model/errors.js");
const { errorOf, readFailure } = errors;

/** An error record, as js/native/contract.md lays it out. */
function record(kind, message) {
  const text = Buffer.from(message);
  const head = Buffer.alloc(5);
  head[0] = kind;
  head.writeUInt32LE(text.length, 1);
  return Buffer.concat([head, text, Buffer.from("what follows the record")]);
}

test("every kind of record becomes its class and code", () => {
  const { BadResource, KvError, KvFeedGapError, KvOutcomeUnknownError, KvUniqueError } = errors;
  const kinds = [
    [1, TypeError, "TypeError", "INVALID"],
    [2, RangeError, "RangeError", "RANGE"],
    [3, KvError, "KvError", "CONFLICT"],
    [4, KvError, "KvError", "UNAVAILABLE"],
    [5, KvOutcomeUnknownError, "KvOutcomeUnknownError", "OUTCOME_UNKNOWN"],
    [6, BadResource, "BadResource", "CLOSED"],
    [7, KvError, "KvError", "DENIED"],
    [8, KvError, "KvError", "CORRUPT"],
    [9, KvError, "KvError", "INTERNAL"],
    [10, KvError, "KvError", "UNSUPPORTED"],
    [11, KvFeedGapError, "KvFeedGapError", "FEED_GAP"],
    [12, TypeError, "TypeError", "TOO_LARGE"],
    [13, KvUniqueError, "KvUniqueError", "UNIQUE"],
    [250, KvError, "KvError", "INTERNAL"],
  ];
  for (const [kind, type, name, code] of kinds) {
    const closed =
      "Bad resource ID: this database handle is closed; open another one with openKv()";
    const words = kind === 6 ? closed : `kind ${kind} – ünïcode`;
    const error = errorOf(readFailure(record(kind, words)));
    assert.equal(error.constructor, type);
    assert.ok(error instanceof Error);
    assert.deepEqual([error.name, error.code, error.message], [name, code, words]);
    assert.ok(error.stack.startsWith(`${name}: ${words}`));
  }
});

test("a KvError shows its code, and its name is not a property of its own", () => {
  const error = errorOf({ kind: 4, message: "disk full" });
  assert.deepEqual(Object.keys(error), ["code"]);
  assert.ok(!Object.hasOwn(error, "name"));
  assert.match(inspect(error), /KvError: disk full[^]*code: 'UNAVAILABLE'/);
  assert.equal(String(error), "KvError: disk full");
});

const skip = globalThis.Deno && "under Deno a BadResource is Deno's own class";

test("a BadResource is a KvError outside Deno", { skip }, async () => {
  const kv = await openKv(":memory:");
  await kv.close();
  await assert.rejects(kv.get(["a"]), BadResource);
  await assert.rejects(kv.get(["a"]), KvError);
});

/** The stack of what `call` rejects with. */
async function stackOf(call) {
  try {
    await call();
  } catch (error) {
    return error.stack;
  }
  return assert.fail("resolved");
}

test("the caller's async stack shows, for errors that Rust found too", async () => {
  const kv = await open(":memory:");
  await kv.set(["text"], "not a number");
  const callers = {
    async wrongKey() {
      await kv.get("a");
    },
    async wrongValue() {
      await kv.set(["a"], () => 1);
    },
    async emptyKeySet() {
      await kv.set([], 1);
    },
    async emptyKeyDelete() {
      await kv.delete([]);
    },
    async mismatch() {
      await kv.atomic().sum(["text"], 1n).commit();
    },
    async tooManyChecks() {
      const checks = Array.from({ length: 101 }, (_, i) => ({ key: [i], versionstamp: null }));
      await kv
        .atomic()
        .check(...checks)
        .commit();
    },
    async badBound() {
      await kv.list({ start: ["b"], end: ["a"] }).next();
    },
    async noFile() {
      await openKv("/dev/null/not/a/folder/kv.sqlite3");
    },
  };
  for (const [name, call] of Object.entries(callers)) {
    assert.match(await stackOf(call), new RegExp(`at (async )?(Object|callers)?\\.?${name}`), name);
  }
});

test("every failed call of a batch has an error of its own", async () => {
  const kv = await open(":memory:");
  const outcomes = await Promise.allSettled([kv.set([], 1), kv.set([], 2), kv.delete([])]);
  const errors = outcomes.map(({ reason }) => reason);
  assert.equal(new Set(errors).size, 3);
  for (const error of errors) assert.equal(error.message, "key cannot be empty");
});

test("each kind of record has its code, and a later one is INTERNAL", () => {
  for (const [kind, code] of CODES.entries()) {
    if (kind > 0) assert.equal(errorOf({ kind, message: "" }).code, code);
  }
  assert.equal(errorOf({ kind: CODES.length, message: "" }).code, "INTERNAL");
});
