// The keys and values of every workload: the same for every peer. A trial has one of two sets of
// values: `plain` has one friendly form of each size, `realistic` has those of values.mjs.
//
// Values are fresh on every write: SQLite leaves a page clean when a row is overwritten by the
// same bytes, so a benchmark that rewrites identical rows measures no write at all.

import { document, DOCUMENT_ROWS, REALISTIC, record } from "./values.mjs";

/** The sets of values, in the order of the output. */
export const SETS = ["plain", "realistic"];

/** Keys in the database of the point workloads. */
export const POPULATION = 10_000;
/** Entries in the database of the list workload. */
export const LIST_ENTRIES = 20_000;
/** Keys in the database of the 24 KB workloads. */
export const LARGE_POPULATION = 64;
/** Rows of one 24 KB object. */
const LARGE_ROWS = 300;
/** Prime to every population, so that stepping by it visits each key once before any twice. */
const STEP = 6_997;
/** Numbers in values start here, so that their encoded size does not grow during a run. */
const NUMBER_BASE = 1_700_000_000_000;

const digits = (i) => String(i).padStart(8, "0");

/** Built once, so that a trial does not measure the creation of strings. */
const texts = new Map();
function text(i) {
  let found = texts.get(i);
  if (found === undefined) {
    found = { id: `u${digits(i)}`, name: `User ${digits(i)}`, email: `user${i}@example.com` };
    texts.set(i, found);
  }
  return found;
}

export const key = (i) => ["users", text(i).id];
export const PREFIX = ["users"];

let written = 0;

let isRealistic = false;

/** Chooses the set of values; before the first value. */
export function useSet(name) {
  if (!SETS.includes(name)) throw new Error(`no set of values is called ${name}`);
  isRealistic = name === "realistic";
}

/** A small object of five fields, about 90 bytes encoded, never the same twice; its `id` is `i`. */
export function value(i) {
  return isRealistic ? realisticValue(i) : plainValue(i);
}

/** One of four types by its number; the other fields differ from the last time. */
function realisticValue(i) {
  const made = record(4 * ++written + (i & 3));
  made.id = i;
  return made;
}

function plainValue(i) {
  const { name, email } = text(i);
  written += 1;
  return { id: i, name, email, active: (written & 1) === 0, seen: NUMBER_BASE + written };
}

/** Visits the population in a fixed scattered order. */
export function order(population) {
  let at = 0;
  return () => (at = (at + STEP) % population);
}

const largeObjects = [];

/**
 * An object of 220 to 300 rows, about 24 KB encoded. Every row differs from the last time, so every
 * page of the stored value changes. The object is reused, so that its creation is not measured.
 */
export function largeValue(i) {
  const slot = i % LARGE_POPULATION;
  const object = (largeObjects[slot] ??= isRealistic ? document(i) : plainRows(i));
  object.id = i;
  for (const row of object.rows) {
    const at = NUMBER_BASE + ++written;
    row.at = isRealistic ? new Date(at) : at;
  }
  return object;
}

function plainRows(i) {
  const rows = [];
  for (let r = 0; r < LARGE_ROWS; r++) {
    rows.push({
      sku: `sku-${digits(r)}`,
      title: `Article ${r}`,
      price: r + 0.25,
      stock: r,
      at: 0,
    });
  }
  return { id: i, kind: "order", rows };
}

/** Whether the answer is the large value of `i`. */
export function isLarge(object, i) {
  const last = (isRealistic ? DOCUMENT_ROWS : LARGE_ROWS) - 1;
  return object.id === i && object.rows[last].stock === last;
}

const kinds = REALISTIC.filter((value) => value.document);

/** A document: one of the kinds of values.mjs by its number, never the same twice. */
export function documentValue(i) {
  written += 1;
  return { id: i, body: kinds[i % kinds.length].make(written) };
}

/** Stops the trial when an answer is not what was written: a wrong answer has no speed. */
export function expect(ok, what) {
  if (!ok) throw new Error(`wrong answer: ${what}`);
}
