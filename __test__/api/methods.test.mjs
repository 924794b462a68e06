// Duty: every public method × closed handle, wrong type, over the limit, misspelt option: none is
// left out, and what is refused leaves nothing behind. (Deno's methods in depth: matrix.test.mjs.)

import assert from "node:assert/strict";
import { test } from "node:test";
import archives from "./methods/archives.mjs";
import collections from "./methods/collections.mjs";
import { all, onEveryKind, onNearReplica, onReplica } from "./databases.mjs";
import { declaredMethods } from "./methods/declared.mjs";
import { CLOSED } from "./methods/expected.mjs";
import files from "./methods/files.mjs";
import leases from "./methods/leases.mjs";
import operations from "./methods/operations.mjs";
import queues from "./methods/queues.mjs";
import reads from "./methods/reads.mjs";
import replicas from "./methods/replicas.mjs";
import transactions from "./methods/transactions.mjs";
import writes from "./methods/writes.mjs";

// A method's row has its refusals of each kind, as [call, expected] (of a closed handle: the call
// alone), or in words why it has none. `of(kv)` makes what the calls are made on.
const rows = {
  ...reads,
  ...writes,
  ...operations,
  ...transactions,
  ...queues,
  ...files,
  ...replicas,
  ...archives,
  ...collections,
  ...leases,
};
const KINDS = ["closed", "wrong", "over", "misspelt"];

const declared = declaredMethods();

test("every method of index.d.ts has a row, and every row a method", () => {
  assert.ok(declared.size > 80, `only ${declared.size} methods were found`);
  assert.deepEqual(Object.keys(rows).sort(), [...declared.keys()].sort());
});

test("every row has refusals of each kind, or says why not", () => {
  for (const [method, row] of Object.entries(rows)) {
    for (const kind of KINDS) {
      const given = row[kind];
      const ok = typeof given === "string" || typeof given === "function" || given?.length > 0;
      assert.ok(ok, `${method}: ${kind}`);
    }
  }
});

/** Methods whose arguments a database without full-text search does not look at. */
const OF_SEARCH = /^(Kv\.search|Kv\.createIndex|KvIndex\..*)$/;

/**
 * What a row's calls are made on. All rows share a handle, since what is refused leaves nothing behind:
 * opening a server and a replica for each would take minutes.
 */
const made = async (row, kv) => (row.of === undefined ? kv : await row.of(kv));

const suite = (fresh, { withoutSearch } = {}) => {
  const isLacking = (name) => withoutSearch && OF_SEARCH.test(name);
  const all = Object.entries(rows).filter(([name]) => !isLacking(name));
  let opened;
  const shared = () => (opened ??= fresh());

  const refusing = all.map(([method, row]) => [method, row, refusalsOf(row)]);
  for (const [method, row, refusals] of refusing.filter(([, , { length }]) => length > 0)) {
    test(method, async () => {
      const kv = await shared();
      const target = await made(row, kv);
      const before = await contents(kv);
      for (const [call, words] of refusals) await refused(method, call, [target, kv], words);
      assert.deepEqual(await contents(kv), before, "something is left behind");
      assert.equal((await kv.set(["works"], 1)).ok, true);
    });
  }

  const closing = all.filter(([, row]) => typeof row.closed !== "string");
  let closed;
  /** A closed handle, and what each row's calls are made on, made before the end. */
  const ended = () => (closed ??= endedWith(closing));
  async function endedWith(these) {
    const kv = await fresh();
    const targets = new Map();
    for (const [method, row] of these) targets.set(method, await made(row, kv));
    kv.close();
    return { kv, targets };
  }
  for (const [method, row] of closing) {
    const cases = typeof row.closed === "function" ? [[row.closed, CLOSED]] : row.closed;
    test(`${method}, closed`, async () => {
      for (const [call, expected] of cases) {
        if (call.closes) {
          const kv = await fresh();
          await refused(method, call, [await made(row, kv), kv], expected);
        } else {
          const { kv, targets } = await ended();
          await refused(method, call, [targets.get(method), kv], expected);
        }
      }
    });
  }
};

const refusalsOf = (row) =>
  KINDS.slice(1).flatMap((kind) => (Array.isArray(row[kind]) ? row[kind] : []));

for (const on of [onEveryKind, onReplica, onNearReplica]) on("what every method refuses", suite);

/** Entries and messages. */
async function contents(kv) {
  const { queues } = await kv.metrics();
  return { entries: await all(kv.list({ prefix: [] })), queues, indexes: await kv.listIndexes() };
}

/** A method that answers a promise rejects it; it never throws at the call. */
async function refused(method, call, given, expected) {
  let answer;
  try {
    answer = call(...given);
  } catch (error) {
    assert.ok(!declared.get(method), `${call} throws at the call: ${error.stack}`);
    return matches(call, error, expected);
  }
  await Promise.resolve(answer).then(
    () => assert.fail(`${call} was not refused`),
    (error) => matches(call, error, expected),
  );
}

/** What an error must be: a class, or words that are in "Name: message", then of a TypeError. */
function matches(call, error, expected) {
  if (typeof expected === "function") {
    return assert.ok(error instanceof expected, `${call}: ${error}`);
  }
  assert.match(`${error.name}: ${error.message}`, expected, String(call));
  if (!/Error:|Resource:/.test(expected.source)) {
    assert.ok(error instanceof TypeError, `${call}: ${error.name}`);
  }
}
