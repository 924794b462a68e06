// Duty: messages that Deno has too keep its essential words, and go on with the argument, the value
// that was given, and what to write. Values are cut, and their control characters escaped.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { onEveryKind } from "./databases.mjs";

const nothing = () => {};
const ARRAY = "invalid type; expected: array, got: ";
const PART = "expected string, number, bigint, ArrayBufferView, boolean: ";
const CLONED = "could not be cloned. It is at ";

/** Calls, and parts that their messages have in this order. */
const messages = [
  [(kv) => kv.get("users"), [ARRAY, "string", 'the key is "users"', 'write ["users"]']],
  [(kv) => kv.get(5), [ARRAY, "Number", "the key is 5", "write [5]"]],
  [(kv) => kv.get({ a: 1 }), [ARRAY, "the key is {…}", 'write ["users", 1]']],
  [(kv) => kv.get(), ["Invalid range", "the key is undefined", 'write ["users", 1]']],
  [(kv) => kv.getMany(), [ARRAY, "undefined", "kv.getMany: keys are undefined", '[["users", 1]]']],
  [(kv) => kv.getMany("ab"), [ARRAY, 'keys are "ab"']],
  [(kv) => kv.getMany(["ab"]), [ARRAY, 'the key is "ab"', 'write ["ab"]']],
  [(kv) => kv.transaction((tx) => tx.getMany("ab")), [ARRAY, "tx.getMany: keys are"]],
  [(kv) => kv.list(), ["Cannot convert undefined or null to object", "kv.list({ prefix: [] })"]],
  [
    (kv) => kv.list(["a"]),
    ["Selector must specify either", 'kv.list was given ["a"]', 'write { prefix: ["a"] }'],
  ],
  [(kv) => kv.list("a"), ["Selector must specify either", '"a"', 'write { prefix: ["a"] }']],
  [(kv) => kv.list({ start: ["a"] }), ["Selector must specify either", "kv.list was given start"]],
  [
    (kv) => kv.list({ prefix: [], start: [], end: [] }),
    ["can not specify both", "without a prefix"],
  ],
  [(kv) => kv.watch("a"), [ARRAY, 'kv.watch: keys are "a"']],
  [(kv) => kv.set("a", 1), [ARRAY, 'the key is "a"', 'write ["a"]']],
  [
    (kv) => kv.set(null, 1),
    ["Cannot read properties of null (reading 'length')", "the key is null"],
  ],
  [(kv) => kv.delete(undefined), ["Cannot read properties of undefined", "the key is undefined"]],
  [
    (kv) => kv.atomic().check(["a"]).commit(),
    [ARRAY, "undefined", 'check was given ["a"]', 'check({ key: ["a"], versionstamp: null })'],
  ],
  [(kv) => kv.atomic().check("a").commit(), [ARRAY, 'check was given "a"']],
  [
    (kv) => kv.atomic().check({ key: "a", versionstamp: null }).commit(),
    [ARRAY, 'the key is "a"', 'write ["a"]'],
  ],
  [
    (kv) =>
      kv
        .atomic()
        .check({ key: ["a"], versionstamp: 5 })
        .commit(),
    ["expected: string, got: number", "is 5", "null for none"],
  ],
  // "Invalid check" did not tell which one of many.
  [
    (kv) =>
      kv
        .atomic()
        .check({ key: ["a"], versionstamp: null }, { key: ["b"], versionstamp: null })
        .set(["c"], 1)
        .check({ key: ["users", 2], versionstamp: "0" })
        .commit(),
    ["Invalid check", "20 hexadecimal digits", 'the string "0"', 'checks[2], key ["users",2]'],
  ],
  [
    (kv) =>
      kv
        .atomic()
        .check({ key: ["a"], versionstamp: null }, { key: [] })
        .commit(),
    ["key cannot be empty", "checks[1]"],
  ],
  [
    (kv) =>
      kv
        .atomic()
        .check({ key: ["a"], versionstamp: null }, { versionstamp: null })
        .commit(),
    [ARRAY, "checks[1]"],
  ],
  [
    async (kv) => kv.atomic().mutate({ type: "delete", key: ["a"] }, { type: "add", key: ["b"] }),
    ["Invalid mutation type", "mutations[1]", 'the string "add"'],
  ],
  [
    (kv) => kv.enqueue(1, { backoffSchedule: [1, 3_600_001] }),
    ["interval at index 1 is invalid", "3600000 ms", "received 3600001"],
  ],
  [(kv) => kv.get(["a"], { consistency: "weak" }), ["unknown variant `weak`", "consistency"]],
  [
    (kv) => kv.createIndex({ type: "value", prefix: ["p".repeat(300)], on: "a" }),
    ["name must have 1 to 256 bytes: 309 given", "without a name", "give a short one"],
  ],
  [(kv) => kv.list({ prefix: [] }, { cursor: "?" }).next(), ["invalid cursor", '"?"']],
  [
    (kv) => kv.list({ start: ["b"], end: ["a"] }).next(),
    ["Start key is greater than end key", 'start ["b"]', 'end ["a"]'],
  ],
  [(kv) => kv.get(["a", { x: 1 }, 2]), [PART, 'part 1 of the key ["a",{…},2] is Object']],
  [
    (kv) => kv.get(["a", new Date(0)]),
    [PART, "part 1", "is Date; use its toISOString() or getTime()"],
  ],
  [(kv) => kv.set([["a", "b"]], 1), [PART, "part 0", "is Array; spread its items into the key"]],
  [
    (kv) => kv.set(["a", undefined], 1),
    [PART, 'part 1 of the key ["a",undefined]', "give it a value"],
  ],
  [
    (kv) => kv.get(["a", kv.commitVersionstamp()]),
    [PART, "part 1", "commitVersionstamp() goes only to the end"],
  ],
  [
    (kv) => kv.set([1, 2n ** 2040n], 1),
    ["BigUint requires more than 255 bytes to be represented: part 1"],
  ],
  [
    (kv) => kv.set(["a"], { b: [1, { c: nothing }] }),
    ["() => {} ", `${CLONED}.b[1].c: leave it out`],
  ],
  [(kv) => kv.set(["a"], [0, nothing]), [`${CLONED}[1]:`]],
  [(kv) => kv.set(["a"], { "a b": Symbol("s") }), ["Symbol(s) ", `${CLONED}["a b"]:`]],
  [(kv) => kv.set(["a"], new Map([["k", { f: nothing }]])), [`${CLONED}.get("k").f:`]],
  [(kv) => kv.set(["a"], { s: new Set([1, nothing]) }), [`${CLONED}.s.values[1]:`]],
  [(kv) => kv.set(["a"], { e: new Error("m", { cause: nothing }) }), [`${CLONED}.e.cause:`]],
  [(kv) => kv.set(["a"], { p: new Proxy({}, {}) }), ["#<Object> ", `${CLONED}.p:`]],
  [(kv) => kv.set(["a"], { w: [new WeakMap()] }), ["#<WeakMap> ", `${CLONED}.w[0]:`]],
  [(kv) => kv.enqueue({ then: { f: nothing } }), [`${CLONED}.then.f:`]],
  [
    (kv) => kv.count({ prefix: [] }, { where: { a: nothing } }),
    ["kv.count: where: ", `${CLONED}.a:`],
  ],
  [(kv) => kv.enqueue(1, { delay: "5" }), ["expected: integer, got: string", 'delay is "5"']],
  [(kv) => kv.enqueue(1, { keysIfUndelivered: "a" }), [ARRAY, 'keysIfUndelivered are "a"']],
  [
    (kv) => kv.enqueue(1, { backoffSchedule: [1, "5"] }),
    ["expected: integer", 'backoffSchedule[1] is "5"'],
  ],
  [
    (kv) => kv.listenQueue(5),
    ["expected: function, got: number", "kv.listenQueue needs a handler"],
  ],
  [
    (kv) => kv.get(["a"], { consistency: 5 }),
    ["expected: enum, got: number", '"strong" or "eventual"'],
  ],
  [() => openKv(5), ["Filename cannot be empty", "received 5", ":memory:"]],
  [() => openKv(""), ["Filename cannot be empty", "leave it out"]],
  [(kv) => kv.get("\u001b[2J\u009b\u007f"), ['the key is "\\u001b[2J\\u009b\\u007f"']],
  [(kv) => kv.get(["a", {}, "\u001b\u0085"]), ['["a",{…},"\\u001b\\u0085"]']],
];

/** Values of every kind, and how a refusal shows them. */
const SHOWN = [
  ["5000", 'the string "5000"'],
  ["\u001b", 'the string "\\u001b"'],
  [-5000n, "the bigint -5000n"],
  [-1.5, "-1.5"],
  [Number.NaN, "NaN"],
  [Symbol("s"), "the symbol Symbol(s)"],
  [nothing, "a function"],
  [["a", 1n], 'the array ["a",1n]'],
  [{}, "an object"],
  [Object.create(null), "an object"],
  [new Map(), "a Map"],
  [new Int8Array(1), "an Int8Array"],
  [new Date(Number.NaN), "an invalid Date"],
  [
    new Proxy(
      {},
      {
        get() {
          throw new Error("read");
        },
      },
    ),
    "an object",
  ],
];

const NO_NUMBER = [null, true, false];

/** Options that take none of these values, and others that each refuses. */
const OPTIONS = [
  [(kv, expireIn) => kv.set(["a"], 1, { expireIn }), NO_NUMBER],
  [(kv, expireIn) => kv.atomic().set(["a"], 1, { expireIn }), NO_NUMBER],
  [(kv, limit) => kv.list({ prefix: [] }, { limit }), NO_NUMBER],
  [(kv, batchSize) => kv.list({ prefix: [] }, { batchSize }), [true, false]],
  [(kv, depth) => kv.list({ prefix: [] }, { depth }), NO_NUMBER],
  [(kv, keysOnly) => kv.list({ prefix: [] }, { keysOnly }), [null, 1]],
  [(kv, withExpiry) => kv.get(["a"], { withExpiry }), [null, 1]],
  [(kv, limit) => kv.deleteMany({ prefix: [] }, { limit }), NO_NUMBER],
  [(kv, atomic) => kv.deleteMany({ prefix: [] }, { atomic }), [1]],
  [(kv, initial) => kv.watch({ prefix: [] }, { initial }), [null, 1]],
  [(kv, maxRetries) => kv.transaction(nothing, { maxRetries }), NO_NUMBER],
  [(kv, values) => kv.atomic().commit({ values }), [null, 1]],
  [(kv, priority) => kv.queue("q").enqueue(1, { priority }), [true, false]],
  [(kv, format) => kv.metrics({ format }), NO_NUMBER],
  [(_, busyTimeout) => openKv(":memory:", { busyTimeout }), NO_NUMBER],
  [(_, durability) => openKv(":memory:", { durability }), NO_NUMBER],
  [(_, readonly) => openKv(":memory:", { readonly }), [null, 1]],
];

const BOUND = 600;

onEveryKind("messages", (fresh) => {
  test("Deno's words, the argument, the value, the remedy", async () => {
    const kv = await fresh();
    for (const [call, parts] of messages) {
      await assert.rejects(
        async () => await call(kv),
        (error) => {
          assert.equal(error.constructor, TypeError, String(call));
          let at = 0;
          for (const part of parts) {
            const found = error.message.indexOf(part, at);
            assert.ok(found >= 0, `${call}: ${part} is not in: ${error.message}`);
            at = found + part.length;
          }
          return true;
        },
        String(call),
      );
    }
    assert.equal(await kv.count({ prefix: [] }), 0);
  });

  test("a refusal shows what was given with its type", async () => {
    const kv = await fresh();
    for (const [call, others] of OPTIONS) {
      for (const [given, text] of [...SHOWN, ...others.map((other) => [other, String(other)])]) {
        await assert.rejects(
          async () => await call(kv, given),
          (error) => {
            const words = error.message.replace(/; a text has a unit .*$/, "");
            assert.ok(words.endsWith(`received ${text}`), `${call}: ${error.message}`);
            return true;
          },
          `${call} ${text}`,
        );
      }
    }
  });

  test("what is long is cut", async () => {
    const kv = await fresh();
    const long = "x".repeat(100_000);
    let deep = nothing;
    for (let i = 0; i < 500; i++) deep = { [`name${i}`]: deep };
    const calls = [
      () => kv.get(long),
      () => kv.get(Object.assign([], { length: 5000 })),
      () => kv.get([long, {}]),
      () => kv.list({ prefix: long }),
      () => kv.list({ prefix: [], [long]: 1 }),
      () => kv.count({ prefix: [] }, { [long]: 1 }),
      () => kv.set(["a"], deep),
      () => kv.atomic().check([long]).commit(),
      () => openKv(Object(long)),
    ];
    for (const call of calls) {
      await assert.rejects(
        async () => await call(),
        (error) => {
          assert.ok(error.message.length < BOUND, `${call}: ${error.message.length}`);
          return true;
        },
      );
    }
  });

  test("a part behind a getter is refused without its place, and the getter runs once", async () => {
    const kv = await fresh();
    let runs = 0;
    const value = {
      get f() {
        runs++;
        return nothing;
      },
    };
    await assert.rejects(kv.set(["a"], value), { message: "() => {} could not be cloned." });
    assert.equal(runs, 1);
  });

  test("a closed handle", async () => {
    const kv = await fresh();
    kv.close();
    const message =
      "Bad resource ID: this database handle is closed; open another one with openKv()";
    await assert.rejects(kv.get(["a"]), { name: "BadResource", code: "CLOSED", message });
    assert.throws(() => kv.close(), { message });
  });
});
