// Compares a file, opened again, with what the model says it must hold.

import { isDeepStrictEqual } from "node:util";

import { KvU64 } from "../target.mjs";
import { text } from "./model.mjs";

/** Entries that are also read one by one, besides being listed. */
const SAMPLE = 24;

/**
 * Reads everything, folds the round into the model, and notes every difference as a fault of the
 * model.
 *
 * @param {any} kv
 * @param {import("./model.mjs").Model} model
 * @param {number} killed ms since the epoch
 * @param {import("./random.mjs").Random} random
 */
export async function verify(kv, model, killed, random) {
  const from = Date.now();
  const observed = await readAll(kv, model);
  const until = Date.now();
  model.settle(observed, killed);
  model.settleHandled(observed);
  for (const [name, expected] of model.entries) {
    compare(model, name, expected, observed.get(name), from, until);
  }
  for (const [name, { versionstamp }] of observed) {
    if (!model.entries.has(name)) model.fault(`${name} (${versionstamp}) should not be there`);
  }
  await sample(kv, model, observed, random);
  await fence(kv, model);
}

async function readAll(kv, model) {
  const observed = new Map();
  let before;
  for await (const entry of kv.list({ prefix: [] }, { batchSize: 200 })) {
    const name = text(entry.key);
    if (observed.has(name)) model.fault(`${name} was listed twice`);
    if (before !== undefined && !inOrder(before, entry.key))
      model.fault(`${name} was listed out of order`);
    before = entry.key;
    observed.set(name, entry);
  }
  return observed;
}

/**
 * Whether `a` comes before `b`, for the keys that these tests use: strings, bigints, small
 * integers.
 */
export function inOrder(a, b) {
  const rank = (part) => ["string", "bigint", "number"].indexOf(typeof part);
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    if (a[at] === b[at]) continue;
    if (rank(a[at]) !== rank(b[at])) return rank(a[at]) < rank(b[at]);
    return a[at] < b[at];
  }
  return a.length < b.length;
}

function compare(model, name, expected, entry, from, until) {
  if (entry === undefined) {
    if (expected.aliveUntil !== undefined && until >= expected.aliveUntil) {
      model.entries.delete(name);
      model.counts.expired++;
    } else {
      model.fault(`${name} is lost: it was committed with ${expected.stamp}`);
    }
    return;
  }
  if (from >= expected.goneFrom)
    model.fault(`${name} is seen ${from - expected.goneFrom} ms after it expired`);
  if (entry.versionstamp !== expected.stamp) {
    model.fault(`${name} has ${entry.versionstamp}, expected ${expected.stamp}`);
  }
  if (!sameValue(entry.value, expected.value))
    model.fault(`${name} (${expected.stamp}) has a wrong value`);
}

function sameValue(value, expected) {
  if (value instanceof KvU64) return value.value === expected?.value;
  return isDeepStrictEqual(value, expected);
}

/** A few point reads: they take another way through the code than lists. */
async function sample(kv, model, observed, random) {
  const names = [...observed.keys()];
  if (names.length === 0) return;
  for (let at = 0; at < SAMPLE; at += 3) {
    const picked = [0, 1, 2].map(() => observed.get(random.pick(names)));
    const missing = ["never written", at];
    const [one, ...many] = [
      await kv.get(picked[0].key),
      ...(await kv.getMany([missing, picked[1].key, picked[2].key])),
    ];
    if (many[0].versionstamp !== null) model.fault(`${text(missing)} was read, but never written`);
    for (const [entry, listed] of [
      [one, picked[0]],
      [many[1], picked[1]],
      [many[2], picked[2]],
    ]) {
      const expires = model.entries.get(text(listed.key))?.aliveUntil;
      if (entry.versionstamp === null && Date.now() >= expires) continue;
      if (!isDeepStrictEqual(entry, listed))
        model.fault(`get and list differ at ${text(listed.key)}`);
    }
  }
}

/** A commit after reopening: it works, and its versionstamp is above all that anybody ever saw. */
async function fence(kv, model) {
  const value = { after: model.newest };
  const { versionstamp } = await kv.set(["fence"], value);
  if (versionstamp <= model.newest) {
    model.fault(`after reopening, a commit got ${versionstamp}, not above ${model.newest}`);
  }
  model.newest = versionstamp;
  model.put(["fence"], versionstamp, value);
}
