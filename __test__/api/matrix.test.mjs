// Duty: the argument matrix: every method × closed handle, wrong type, over the limit, misspelt
// option. What is refused leaves nothing behind. (Mid-iteration: list.test.mjs; every method there
// is: methods.test.mjs.)

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { all, onEveryKind, open } from "./databases.mjs";

const CLOSED = { name: "BadResource", code: "CLOSED", message: /^Bad resource ID: / };
const PART = /expected string, number, bigint, ArrayBufferView, boolean/;

/** A key of so many encoded bytes: tag and terminator are two of them. */
const keyOf = (bytes) => ["k".repeat(bytes - 2)];
/** Keys, more than any call takes. */
const keys = (count) => Array.from({ length: count }, (_, i) => ["key", i]);
const absent = (key) => ({ key, versionstamp: null });

/** Calls that answer a promise: each must reject, and never throw at the call. */
const rejecting = {
  "get: a key of the wrong type": [
    [(kv) => kv.get(null), /Invalid range/],
    [(kv) => kv.get(), /Invalid range/],
    [(kv) => kv.get("a"), /expected: array/],
    [(kv) => kv.get(5), /expected: array/],
    [(kv) => kv.get(new Set(["a"])), /expected: array/],
    [(kv) => kv.get({ length: 1, 0: "a" }), /expected: array/],
    [(kv) => kv.get([null]), PART],
    [(kv) => kv.get([undefined]), PART],
    [(kv) => kv.get([Symbol("a")]), PART],
    [(kv) => kv.get([kv.commitVersionstamp()]), PART],
    [(kv) => kv.get(["a", [1]]), PART],
    [(kv) => kv.get(["a", new Date()]), PART],
    [(kv) => kv.get(["a", new ArrayBuffer(1)]), PART],
    [(kv) => kv.get([1n << 2040n]), /more than 255 bytes/],
  ],
  "get: over the limit": [
    [(kv) => kv.get(keyOf(2049)), /Key too large for read \(max 2049 bytes\)/],
  ],
  "get: options": [
    [(kv) => kv.get(["a"], { consistency: "weak" }), /variant `weak`, expected `strong` or/],
    [(kv) => kv.get(["a"], { consistency: 5 }), /expected: enum/],
    [(kv) => kv.get(["a"], { consistancy: "strong" }), /'consistancy': did you mean 'consistency'/],
    [(kv) => kv.get(["a"], { Consistency: "strong" }), /'Consistency'/],
  ],
  "getMany: wrong type": [
    [(kv) => kv.getMany(null), TypeError],
    [(kv) => kv.getMany("ab"), /array/],
    [(kv) => kv.getMany(new Set([["a"]])), /array/],
    [(kv) => kv.getMany(["a"]), /array/],
    [(kv) => kv.getMany([["a"], null]), /Invalid range/],
    [(kv) => kv.getMany([["a"], [{}]]), PART],
  ],
  "getMany: over the limit": [
    [(kv) => kv.getMany(keys(11)), /Too many ranges \(max 10\)/],
    [(kv) => kv.getMany([["a"], keyOf(2049)]), /Key too large for read/],
  ],
  "getMany: options": [
    [(kv) => kv.getMany([["a"]], { consistency: "weak" }), /unknown variant/],
    [(kv) => kv.getMany([], { consistensy: "strong" }), /'consistensy'/],
  ],
  "set: a key of the wrong type": [
    [(kv) => kv.set(null, 1), /Cannot read properties of null \(reading 'length'\)/],
    [(kv) => kv.set(undefined, 1), /reading 'length'/],
    [(kv) => kv.set("a", 1), /expected: array/],
    [(kv) => kv.set([], 1), /key cannot be empty/],
    [(kv) => kv.set([{}], 1), PART],
    [(kv) => kv.set([Symbol("KvCommitVersionstamp")], 1), PART],
    [(kv) => kv.set([kv.commitVersionstamp(), "a"], 1), PART],
    [(kv) => kv.set([kv.commitVersionstamp()], 1), /key cannot be empty/],
    [(kv) => kv.set([1n << 2040n], 1), /Invalid mutation: BigUint requires more than 255 bytes/],
  ],
  "set: a value of the wrong type": [
    [(kv) => kv.set(["a"], () => 1), /could not be cloned/],
    [(kv) => kv.set(["a"], Symbol("x")), /could not be cloned/],
    [(kv) => kv.set(["a"], { deep: [new WeakMap()] }), /could not be cloned/],
    [(kv) => kv.set(["a"], new ReadableStream()), /Unsupported object type/],
  ],
  "set: over the limit": [
    [(kv) => kv.set(keyOf(2049), 1), /Key too large for write \(max 2048 bytes\)/],
    [(kv) => kv.set(["a"], new Uint8Array(65537)), /Value too large \(max 65536 bytes\)/],
    [(kv) => kv.set(["a"], "x".repeat(65536)), /Value too large \(max 65536 bytes\)/],
    [(kv) => kv.set(["a"], new Blob(["x".repeat(65536)])), /Value too large \(max 65536 bytes\)/],
  ],
  "set: options": [
    ...[-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, null, "5", 5n, {}].map((expireIn) => [
      (kv) => kv.set(["a"], 1, { expireIn }),
      /expireIn must be a non-negative integer: received/,
    ]),
    [(kv) => kv.set(["a"], 1, { expireIn: Symbol("x") }), TypeError],
    [(kv) => kv.set(["a"], 1, { expireIn: 9e15 }), /expireIn is too large/],
    [(kv) => kv.set(["a"], 1, { expiresIn: 5 }), /'expiresIn': did you mean 'expireIn'/],
    [(kv) => kv.set(["a"], 1, { expirein: 5 }), /'expirein'/],
  ],
  "delete: wrong type": [
    [(kv) => kv.delete(null), /reading 'length'/],
    [(kv) => kv.delete("a"), /expected: array/],
    [(kv) => kv.delete([]), /key cannot be empty/],
    [(kv) => kv.delete([{}]), PART],
    [(kv) => kv.delete(["a", kv.commitVersionstamp()]), PART],
  ],
  "delete: over the limit": [[(kv) => kv.delete(keyOf(2049)), /Key too large for write/]],
  "enqueue: wrong type": [
    [(kv) => kv.enqueue(() => 1), /could not be cloned/],
    [(kv) => kv.enqueue(1, { delay: "5" }), /expected: integer/],
    [(kv) => kv.enqueue(1, { delay: {} }), /expected: integer/],
    [(kv) => kv.enqueue(1, { delay: true }), /expected: integer/],
    [(kv) => kv.enqueue(1, { backoffSchedule: null }), TypeError],
    [(kv) => kv.enqueue(1, { backoffSchedule: 5 }), /expected: array/],
    [(kv) => kv.enqueue(1, { backoffSchedule: new Set([1]) }), /expected: array/],
    [(kv) => kv.enqueue(1, { backoffSchedule: [1, "1"] }), /expected: integer/],
    [(kv) => kv.enqueue(1, { keysIfUndelivered: 5 }), /array/],
    [(kv) => kv.enqueue(1, { keysIfUndelivered: ["a"] }), /array/],
    [(kv) => kv.enqueue(1, { keysIfUndelivered: [[{}]] }), PART],
    [(kv) => kv.enqueue(1, { keysIfUndelivered: [[]] }), /key cannot be empty/],
  ],
  "enqueue: over the limit": [
    [(kv) => kv.enqueue("x".repeat(65536)), /enqueue payload too large \(max 65536 bytes\)/],
    [(kv) => kv.enqueue(1, { delay: -1 }), /Delay must be >= 0: received -1/],
    [(kv) => kv.enqueue(1, { delay: -1n }), /Delay must be >= 0: received -1/],
    [(kv) => kv.enqueue(1, { delay: 2_592_000_001 }), /cannot be greater than 30 days/],
    [(kv) => kv.enqueue(1, { delay: Number.POSITIVE_INFINITY }), /greater than 30 days/],
    [(kv) => kv.enqueue(1, { delay: Number.NaN }), /Delay cannot be NaN/],
    [(kv) => kv.enqueue(1, { backoffSchedule: [1, 1, 1, 1, 1, 1] }), /max 5 intervals allowed/],
    [(kv) => kv.enqueue(1, { backoffSchedule: [1, -1] }), /interval at index 1 is invalid/],
    [(kv) => kv.enqueue(1, { backoffSchedule: [3_600_001] }), /interval at index 0 is invalid/],
    [(kv) => kv.enqueue(1, { backoffSchedule: [Number.NaN] }), /interval at index 0 is invalid/],
    [(kv) => kv.enqueue(1, { backoffSchedule: new Array(2) }), TypeError],
    [(kv) => kv.enqueue(1, { keysIfUndelivered: keys(11) }), /keysIfUndelivered \(max 10\)/],
    [(kv) => kv.enqueue(1, { keysIfUndelivered: [keyOf(2049)] }), /Key too large for write/],
  ],
  "enqueue: options": [
    [(kv) => kv.enqueue(1, { dealy: 5 }), /'dealy': did you mean 'delay'/],
    [(kv) => kv.enqueue(1, { keyIfUndelivered: [] }), /'keyIfUndelivered'/],
    [(kv) => kv.enqueue(1, { backoffschedule: [] }), /'backoffschedule'/],
  ],
  "commit: bad keys are told at commit": [
    [(kv) => kv.atomic().set("a", 1).commit(), /expected: array/],
    [(kv) => kv.atomic().set(null, 1).commit(), /reading 'length'/],
    [(kv) => kv.atomic().set([], 1).commit(), /key cannot be empty/],
    [(kv) => kv.atomic().delete([{}]).commit(), PART],
    [(kv) => kv.atomic().sum(null, 1n).commit(), TypeError],
    [(kv) => kv.atomic().sum(["a", kv.commitVersionstamp()], 1n).commit(), PART],
    [(kv) => kv.atomic().mutate({ type: "delete", key: 5 }).commit(), /array/],
    [
      (kv) =>
        kv
          .atomic()
          .enqueue(1, { keysIfUndelivered: [5] })
          .commit(),
      /array/,
    ],
    [(kv) => kv.atomic().check({ key: [], versionstamp: null }).commit(), /key cannot be empty/],
    [(kv) => kv.atomic().check({ versionstamp: null }).commit(), /expected: array/],
    [
      (kv) =>
        kv
          .atomic()
          .check({ key: ["a"], versionstamp: 5 })
          .commit(),
      /expected: string/,
    ],
    [
      (kv) =>
        kv
          .atomic()
          .check({ key: ["a"], versionstamp: "0" })
          .commit(),
      /Invalid check/,
    ],
    [
      (kv) =>
        kv
          .atomic()
          .check({ key: ["a"], versionstamp: "g".repeat(20) })
          .commit(),
      /check/,
    ],
  ],
  "commit: over the limit": [
    [
      (kv) =>
        kv
          .atomic()
          .check(...keys(101).map(absent))
          .commit(),
      /Too many checks \(max 100\)/,
    ],
    [
      (kv) =>
        kv
          .atomic()
          .mutate(...keys(1001).map((key) => ({ type: "delete", key })))
          .commit(),
      /Too many mutations \(max 1000\)/,
    ],
    [(kv) => kv.atomic().set(keyOf(2049), 1).commit(), /Key too large for write/],
    [(kv) => kv.atomic().set(["a"], new Uint8Array(65537)).commit(), /Value too large/],
    [
      (kv) =>
        kv
          .atomic()
          .append(["a"], ["x".repeat(70_000)])
          .commit(),
      /Value too large .*valueBytesMax/,
    ],
    [
      (kv) => kv.atomic().touch(["a"], { expireIn: 9e15 }).commit(),
      /expireIn is too large: 9000000000000000: at most/,
    ],
    [(kv) => kv.atomic().sum(["a"], 1, { expireIn: 9e15 }).commit(), /expireIn is too large/],
    [
      (kv) => kv.transaction((tx) => void tx.set(["a"], 1, { expireIn: 9e15 })),
      /expireIn is too large/,
    ],
    [
      (kv) =>
        kv
          .atomic()
          .check(absent(keyOf(2049)))
          .commit(),
      /Key too large for write/,
    ],
    [
      (kv) =>
        keys(13)
          .reduce((op, key) => op.set(key, new Uint8Array(65000)), kv.atomic())
          .commit(),
      /Total mutation size too large \(max 819200 bytes\)/,
    ],
    [
      (kv) =>
        keys(41)
          .reduce((op, [, i]) => op.set(["k".repeat(2030), i], 1), kv.atomic())
          .commit(),
      /Total key size too large \(max 81920 bytes\)/,
    ],
  ],
  "commit: operands": [
    [
      (kv) =>
        kv
          .atomic()
          .mutate({ type: "min", key: ["a"], value: 5n })
          .commit(),
      /non-U64 operand/,
    ],
    [
      (kv) =>
        kv
          .atomic()
          .mutate({ type: "max", key: ["a"], value: 5n })
          .commit(),
      /non-U64/,
    ],
    [
      (kv) =>
        kv
          .atomic()
          .mutate({ type: "sum", key: ["a"], value: {} })
          .commit(),
      TypeError,
    ],
  ],
};

/** Calls that throw at the call. */
const throwing = {
  "list: selectors": [
    [(kv) => kv.list(), TypeError],
    [(kv) => kv.list(null), TypeError],
    [(kv) => kv.list({}), /must specify either 'prefix' or both 'start' and 'end'/],
    [(kv) => kv.list({ start: ["a"] }), /must specify either/],
    [(kv) => kv.list({ end: ["a"] }), /must specify either/],
    [(kv) => kv.list({ prefix: null }), TypeError],
    [(kv) => kv.list({ prefix: 5 }), TypeError],
    [(kv) => kv.list({ prefix: ["a"], start: ["a", "b"], end: ["a", "c"] }), /not specify both/],
    [(kv) => kv.list({ perfix: ["a"] }), /'perfix': did you mean 'prefix'/],
    [(kv) => kv.list({ prefix: [], ends: ["a"] }), /'ends'/],
  ],
  "list: options": [
    [(kv) => kv.list({ prefix: [] }, null), /Cannot .* null/],
    ...[0, -1, 1.5, "2", null, Number.NaN, Number.POSITIVE_INFINITY, 5n].flatMap((n) => [
      [(kv) => kv.list({ prefix: [] }, { limit: n }), /^Error: Limit must be a positive integer/],
      ...(n === null
        ? []
        : [[(kv) => kv.list({ prefix: [] }, { batchSize: n }), /^Error: batchSize must be a pos/]]),
    ]),
    [(kv) => kv.list({ prefix: [] }, { batchsize: 5 }), /'batchsize': did you mean 'batchSize'/],
    [(kv) => kv.list({ prefix: [] }, { revers: true }), /'revers'/],
    [(kv) => kv.list({ prefix: [] }, { curser: "" }), /'curser'/],
  ],
  "watch: wrong type": [
    [(kv) => kv.watch(null), /array/],
    [(kv) => kv.watch(), /array/],
    [(kv) => kv.watch("a"), /array/],
    [(kv) => kv.watch(["a"]), /array/],
    [(kv) => kv.watch([null]), /array/],
    [(kv) => kv.watch([[{}]]), PART],
    [(kv) => kv.watch([["a"]], null), /null/],
    [(kv) => kv.watch([["a"]], { Raw: true }), /'Raw': did you mean 'raw'/],
  ],
  "watch: over the limit": [
    [(kv) => kv.watch(keys(11)), /Too many keys \(max 10\)/],
    [(kv) => kv.watch([keyOf(2050)]), /Key too large for read/],
  ],
  "atomic: values and options are told at the call": [
    [(kv) => kv.atomic().check(null), /null/],
    [(kv) => kv.atomic().check({ key: ["a"], versionStamp: "x" }), /'versionStamp'/],
    [(kv) => kv.atomic().set(["a"], () => 1), /could not be cloned/],
    [(kv) => kv.atomic().set(["a"], 1, { expireIn: -1 }), /expireIn must be a non-negative/],
    [(kv) => kv.atomic().set(["a"], 1, { expiresIn: 1 }), /'expiresIn'/],
    [(kv) => kv.atomic().sum(["a"], "1"), /Value must be a bigint: received string/],
    [(kv) => kv.atomic().sum(["a"], null), /Value must be a bigint: received null/],
    [(kv) => kv.atomic().sum(["a"], NaN), /Value must be a finite number: received NaN/],
    [(kv) => kv.atomic().max(["a"], -Infinity), /Value must be a finite number/],
    [(kv) => kv.atomic().min(["a"], 1, { max: 1 }), /atomic\(\)\.min: unknown option 'max'/],
    [(kv) => kv.atomic().sum(["a"], 1, 5), /atomic\(\)\.sum: options must be an object/],
    [(kv) => kv.atomic().sum(["a"], 1, { mx: 5 }), /atomic\(\)\.sum: unknown option 'mx'/],
    [(kv) => kv.atomic().sum(["a"], 1, { max: 5n }), /max must be a number, as the value is/],
    [(kv) => kv.atomic().sum(["a"], 1n, { min: 5 }), /min must be a bigint/],
    [(kv) => kv.atomic().sum(["a"], 1, { max: NaN }), /max must be a finite number/],
    [(kv) => kv.atomic().sum(["a"], 1, { clamp: 1 }), /clamp must be a boolean/],
    [(kv) => kv.atomic().sum(["a"], 1, { min: 2, max: 1 }), /^RangeError: .*min \(2\) is above/],
    [
      (kv) => kv.atomic().append(["a"], "ab"),
      /append: items must be an array: received the string "ab"/,
    ],
    [(kv) => kv.atomic().append(["a"]), /items must be an array: received undefined/],
    [
      (kv) => kv.atomic().prepend(["a"], new Set()),
      /prepend: items must be an array: received a Set/,
    ],
    [(kv) => kv.atomic().append(["a"], [() => 1]), /could not be cloned/],
    [(kv) => kv.atomic().mutate(null), /null/],
    [(kv) => kv.atomic().mutate({ key: ["a"], type: "add" }), /Invalid mutation type/],
    [(kv) => kv.atomic().mutate({ key: ["a"], type: "set" }), /'set' without value/],
    [(kv) => kv.atomic().mutate({ key: ["a"], type: "sum" }), /'sum' without value/],
    [(kv) => kv.atomic().mutate({ key: ["a"], type: "delete", value: 1 }), /'delete' with value/],
    [(kv) => kv.atomic().mutate({ key: ["a"], type: "set", value: 1, expireIn: 1.5 }), /expireIn/],
    [(kv) => kv.atomic().mutate({ key: ["a"], type: "set", value: 1, expirein: 1 }), /expirein/],
    [(kv) => kv.atomic().enqueue(() => 1), /could not be cloned/],
    [(kv) => kv.atomic().enqueue(1, { delay: -1 }), /Delay must be/],
    [(kv) => kv.atomic().enqueue(1, { dellay: 1 }), /'dellay'/],
    [(kv) => kv.atomic().then(), /is not a promise: did you forget to call 'commit\(\)'/],
  ],
};

/** What an error must be: a class, or words that are in "Name: message". */
function matches(error, expected) {
  if (typeof expected === "function") return assert.ok(error instanceof expected, String(error));
  assert.match(`${error.name}: ${error.message}`, expected);
  if (!/Error:/.test(expected.source)) assert.ok(error instanceof TypeError);
}

onEveryKind("what is refused", (fresh) => {
  for (const [name, cases] of Object.entries(rejecting)) {
    test(name, async () => {
      const kv = await fresh();
      for (const [call, expected] of cases) {
        let answer;
        assert.doesNotThrow(() => (answer = call(kv)), `${call} throws at the call`);
        assert.ok(answer instanceof Promise);
        await answer.then(
          () => assert.fail(`${call} resolved`),
          (error) => matches(error, expected),
        );
      }
      assert.deepEqual(await all(kv.list({ prefix: [] })), [], "nothing is left behind");
      assert.equal((await kv.set(["works"], 1)).ok, true);
    });
  }

  for (const [name, cases] of Object.entries(throwing)) {
    test(name, async () => {
      const kv = await fresh();
      for (const [call, expected] of cases) {
        assert.throws(
          () => call(kv),
          (error) => (matches(error, expected), true),
          String(call),
        );
      }
      assert.deepEqual(await all(kv.list({ prefix: [] })), [], "nothing is left behind");
    });
  }

  test("awaiting an operation is a TypeError", async () => {
    const kv = await fresh();
    const waiting = async () => await kv.atomic().set(["a"], 1);
    await assert.rejects(waiting, /did you forget to call 'commit/);
    assert.equal((await kv.get(["a"])).value, null);
  });

  test("one bad call leaves those around it alone", async () => {
    const kv = await fresh();
    const outcomes = await Promise.allSettled([
      kv.set(["a"], 1),
      kv.set(["b"], () => 1),
      kv.set([{}], 1),
      kv.set(["c"], {
        get boom() {
          throw new RangeError("mine");
        },
      }),
      kv.atomic().sum(["a"], 1n).commit(),
      kv.set(["d"], 4),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "rejected", "rejected", "rejected", "fulfilled"],
    );
    assert.match(outcomes[3].reason.message, /mine/);
    const entries = await all(kv.list({ prefix: [] }));
    assert.deepEqual(
      entries.map(({ key, value }) => [key[0], value]),
      [
        ["a", 1],
        ["d", 4],
      ],
    );
  });
});

test("on a closed handle every call is a BadResource, and nothing else happens", async () => {
  const kv = await openKv(":memory:");
  const operation = kv.atomic().set(["a"], 1);
  const iterator = kv.list({ prefix: [] });
  await kv.close();
  const calls = {
    get: () => kv.get(["a"]),
    getMany: () => kv.getMany([["a"]]),
    "getMany of nothing": () => kv.getMany([]),
    set: () => kv.set(["a"], 1),
    "set of a Blob": () => kv.set(["a"], new Blob(["x"])),
    delete: () => kv.delete(["a"]),
    enqueue: () => kv.enqueue(1),
    commit: () => kv.atomic().commit(),
    "commit of an earlier operation": () => operation.commit(),
    next: () => iterator.next(),
    "next of a new list": () => kv.list({ prefix: [] }).next(),
  };
  for (const [name, call] of Object.entries(calls)) await assert.rejects(call, CLOSED, name);
  assert.throws(() => kv.watch([["a"]]), CLOSED);
  assert.throws(() => kv.watch([]), CLOSED);
  assert.throws(() => kv.close(), CLOSED);
  const ended = { name: "Error", message: "Queue already closed" };
  await assert.rejects(
    kv.listenQueue(() => {}),
    ended,
  );
  assert.equal(typeof kv.commitVersionstamp(), "symbol");
  assert.equal(kv.atomic().set(["a"], 1) !== undefined, true, "atomic() answers");
});

// Each delivery failed: the messages were used up, and nobody had seen them.
test("a handler that is no function is refused before it takes a message", async () => {
  const kv = await openKv(":memory:");
  await kv.enqueue("kept");
  for (const handler of [undefined, null, {}, "f"]) {
    await assert.rejects(kv.listenQueue(handler), {
      name: "TypeError",
      message: /expected: function/,
    });
  }
  assert.equal(await new Promise((resolve) => void kv.listenQueue(resolve)), "kept");
  await kv.close();
});

test("wrong arguments on a closed handle are told all the same", async () => {
  const kv = await openKv(":memory:");
  await kv.close();
  await assert.rejects(kv.get("a"), TypeError);
  await assert.rejects(kv.set(["a"], 1, { expireIn: -1 }), TypeError);
  assert.throws(() => kv.list({}), TypeError);
  assert.throws(() => kv.atomic().sum(["a"], "1"), TypeError);
});

test("names that resemble no option are ignored, as Deno does", async () => {
  const kv = await open(":memory:");
  const foreign = { signal: null, tracing: true, filter: () => true };
  await kv.get(["a"], foreign);
  await kv.getMany([["a"]], foreign);
  await kv.set(["a"], 1, foreign);
  await kv.enqueue(1, foreign);
  await all(kv.list({ prefix: [] }, foreign));
  await kv.watch([["a"]], foreign).cancel();
  await kv
    .atomic()
    .check({ ...(await kv.get(["a"])), ...foreign })
    .set(["a"], 2, foreign)
    .commit();
  assert.equal((await kv.get(["a"])).value, 2);
});

test("options may be null or left out where Deno lets them", async () => {
  const kv = await open(":memory:");
  await kv.get(["a"], null);
  await kv.getMany([["a"]], null);
  await kv.set(["a"], 1, null);
  await kv.enqueue(1, null);
  await kv.atomic().set(["a"], 1, null).enqueue(1, null).commit();
  await kv.enqueue();
  await kv.set(["u"], undefined);
  assert.equal((await kv.get(["u"])).value, undefined);
});
