// What a writer's lane does as its n-th step: a pure function, so that the verifier knows the
// contents of a commit from its name alone, whether or not the writer lived to tell.
//
// A lane is one sequential loop within a writer process. It owns its slots and its mark; counters
// and chains are everybody's. Every commit leaves the lane's mark with the step's number, in the
// same commit as the rest: the mark tells whether a commit that was in flight when the process died
// has happened.

import { Random } from "./random.mjs";

/**
 * Slots that each lane writes again and again, so that the file stays small however long it is
 * used.
 */
export const SLOTS = 16;
/** Counters that all lanes of all processes add to. */
export const COUNTERS = 4;
/** Keys that lanes of all processes advance by check-and-set. */
export const CHAINS = 3;

/**
 * Sizes in bytes around what matters: inline, the 960 of a spilled row, pages of 4096, near the
 * limit.
 */
const SIZES = [
  [1, 40],
  [1, 40],
  [1, 40],
  [200, 959],
  [900, 1100],
  [1100, 5000],
  [8000, 24000],
  [60000, 64000],
];

/** A time to live that outlasts any test. */
export const LONG_MS = 3_600_000;

/**
 * @typedef {object} Step
 * @property {"atomic" | "put" | "delete" | "advance" | "enqueue"} kind
 *   `put` is a plain set of the mark, `delete` a plain delete of a slot, `enqueue` a plain enqueue,
 *   `advance` a check-and-set of a chain with the mark, `atomic` any mixture.
 * @property {{ slot: number, size: number, expireIn?: number }[]} sets
 * @property {number[]} deletes slots
 * @property {{ counter: number, amount: bigint }[]} sums
 * @property {number} chain
 * @property {number | undefined} message size of an enqueued message
 * @property {number} markSize bytes that the mark carries
 */

/** @returns {Step} */
export function plan(seed, lane, n) {
  const random = new Random(seed, lane, n);
  const kind = random.pick([
    "atomic",
    "atomic",
    "atomic",
    "atomic",
    "put",
    "put",
    "delete",
    "advance",
    "enqueue",
  ]);
  const step = { kind, sets: [], deletes: [], sums: [], chain: 0, message: undefined, markSize: 0 };
  if (kind === "put") step.markSize = sizeOf(random);
  if (kind === "delete") step.deletes.push(random.between(0, SLOTS - 1));
  if (kind === "advance") step.chain = random.between(0, CHAINS - 1);
  if (kind === "enqueue") step.message = sizeOf(random, 1100);
  if (kind === "atomic") mixture(step, random);
  return step;
}

function mixture(step, random) {
  const slots = new Set();
  const count = random.oneIn(10) ? SLOTS : random.between(0, 5);
  while (slots.size < count) slots.add(random.between(0, SLOTS - 1));
  for (const slot of slots) {
    if (random.oneIn(5)) {
      step.deletes.push(slot);
      continue;
    }
    const set = { slot, size: sizeOf(random, count > 8 ? 5000 : undefined) };
    if (random.oneIn(5)) set.expireIn = random.oneIn(2) ? random.between(0, 80) : LONG_MS;
    step.sets.push(set);
  }
  if (random.oneIn(2)) {
    step.sums.push({
      counter: random.between(0, COUNTERS - 1),
      amount: BigInt(random.between(1, 1000)),
    });
  }
  if (random.oneIn(8)) step.message = sizeOf(random, 5000);
}

function sizeOf(random, max = Infinity) {
  const [low, high] = random.pick(SIZES.filter(([, high]) => high <= max));
  return random.between(low, high);
}

/** The value that step `n` of `lane` leaves in `slot`, of about `size` bytes. */
export function fill(seed, lane, n, slot, size) {
  const random = new Random(seed, lane, n, slot);
  const bytes = random.bytes(size);
  if (slot % 3 === 0) return bytes;
  const text = Buffer.from(bytes)
    .toString("latin1")
    .slice(0, size >> 1);
  return slot % 3 === 1 ? { lane, n, slot, text } : [lane, n, { bytes }];
}

export const markKey = (lane) => ["mark", ...lane.split(".")];
export const slotKey = (lane, slot) => ["slot", ...lane.split("."), slot];
export const counterKey = (counter) => ["counter", counter];
export const chainKey = (chain) => ["chain", BigInt(chain)];
export const doneKey = (message) => ["done", message];
/** The sum of all messages that were handled, by whoever. */
export const HANDLED_KEY = ["handled"];
