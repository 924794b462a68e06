// Duty: the one reader of a write's records finds the parts of every record, and refuses what it
// does not know; the bytes that are written are the golden ones (tests/vectors/records.json).

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { inspect } from "node:util";
import { openKv } from "../../index.mjs";
import { Writer, vectors } from "./codec.mjs";
import { frameOf } from "./record-vectors.mjs";

const require = createRequire(import.meta.url);
const contract = require("../../build/native/contract.js");
const { RecordLayout, timeOffsetOf } = require("../../build/records/layout.js");
const { visitKeys } = require("../../build/records/written-keys.js");

const ops = Object.entries(contract).filter(([name]) => name.startsWith("OP_"));

test("an operation shows every record and every option, read back from its bytes", async () => {
  const kv = await openKv(":memory:");
  const operation = kv
    .atomic()
    .check({ key: ["check"], versionstamp: null })
    .check({ key: ["check"], versionstamp: "0".repeat(20) })
    .set(["set"], 1)
    .set(["set"], 1, { expireIn: 5 })
    .set(["set", kv.commitVersionstamp()], 1)
    .delete(["delete"])
    .sum(["sum"], 1, { min: 0 })
    .sum(["sum"], 1, { max: 9, expireIn: 5 })
    .sum(["sum"], 1, { min: 0, max: 9, clamp: true })
    .min(["min"], 1)
    .max(["max"], 1n, { expireAt: 5 })
    .mutate({ type: "max", key: ["max"], value: 1 })
    .append(["append"], [1])
    .prepend(["append"], [1], { expireIn: 5 })
    .touch(["touch"], { expireIn: 5 })
    .persist(["touch"])
    .enqueue("message", { keysIfUndelivered: [["dead"]], backoffSchedule: [1, 2] })
    .enqueue("message", { queue: "mail", deduplicationKey: "once", priority: 3, deadRetention: 7 });
  const text = inspect(operation);
  for (const part of [
    "versionstamp: null",
    "'00000000000000000000'",
    "expireIn: 5",
    "expireAt: 5",
    "clamp: true",
    "KvCommitVersionstamp",
    "min: 0",
    "max: 9",
    "prepend(",
    "append(",
    "touch(",
    "persist(",
    "[ [ 'dead' ] ]",
    "[ 1, 2 ]",
    "queue: 'mail'",
    "deduplicationKey: 'once'",
    "priority: 3",
    "deadRetention: 7",
  ]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  assert.equal(text.split("\n").length, 19);
  kv.close();
});

/** The records with a time: the offset and the value of the flag that announces it. */
const TIMED = {
  OP_SET: [1, contract.EXPIRES],
  OP_CALCULATE: [2, contract.CALCULATE_EXPIRES],
  OP_APPEND: [1, contract.APPEND_EXPIRES],
  OP_SET_EXPIRY: [1, contract.EXPIRES],
  OP_ENQUEUE: [1, 0],
  OP_ENQUEUE_NAMED: [1, 0],
};

test("an unknown record is refused, and a relative one that has no time", () => {
  const timed = Object.keys(TIMED).map((name) => contract[name] | contract.RELATIVE);
  const known = new Set([...ops.map(([, op]) => op), ...timed]);
  for (let op = 0; op < 256; op++) {
    if (known.has(op)) continue;
    assert.throws(() => visitKeys(Buffer.from([op]), 0, 1, {}), /unknown record/, `${op}`);
  }
});

test("an unknown flag is refused", () => {
  const flagAt = {
    OP_SET: 1,
    OP_CALCULATE: 2,
    OP_APPEND: 1,
    OP_SET_EXPIRY: 1,
    OP_RETURN: 1,
  };
  for (const [name, at] of Object.entries(flagAt)) {
    const record = Buffer.alloc(64);
    record[0] = contract[name];
    record[at] = 0x80;
    assert.throws(() => new RecordLayout().read(record, 0), /unknown flag/, name);
  }
});

test("a time is relative or absolute", () => {
  for (const [name, [at, flag]] of Object.entries(TIMED)) {
    const op = contract[name];
    const record = Buffer.alloc(64);
    record[at] = flag;
    for (const relative of [false, true]) {
      record[0] = relative ? op | contract.RELATIVE : op;
      const layout = new RecordLayout();
      layout.read(record, 0);
      assert.deepEqual([layout.op, layout.relative], [op, relative], name);
      assert.equal(layout.timeAt, timeOffsetOf(op), name);
    }
  }
});

test("a key that the commit completes ends where the first part that it fills in starts", () => {
  const writer = new Writer();
  writer.u8(contract.OP_DELETE);
  writer.u32(6);
  writer.ascii("abcdef");
  writer.u8(contract.OP_PATCHES);
  writer.u32(2);
  for (const offset of [4, 3]) {
    writer.u8(0);
    writer.u32(offset);
    writer.u32(1);
    writer.u32(0);
  }
  const completed = [];
  const completes = (_buf, start, end) => completed.push([start, end]);
  visitKeys(writer.buf, 0, writer.pos, { completes });
  assert.deepEqual(completed, [[5, 8]]);
});

for (const { name, js, hex } of vectors("records").records) {
  test(`the frame of a write is the golden one: ${name}`, async () => {
    assert.equal(await frameOf(js), hex);
    const frame = Buffer.from(hex, "hex");
    const layout = new RecordLayout();
    let at = 0;
    do {
      at = layout.read(frame, at);
    } while (layout.op !== contract.OP_END);
    assert.equal(at, frame.length);
  });
}
