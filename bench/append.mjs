// `node bench/append.mjs`: appends one item to an array of 1000, compared with reading the array,
// pushing onto it and setting it under a check. The two alternate on fresh databases; prints their
// ratio.
//
// Arguments: --seconds S of each measurement (default 2), --dir DIRECTORY (default: bench/.data).

import { mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";
import { DEFAULT_DIRECTORY } from "./machine.mjs";

const { seconds, dir } = parseArgs({
  options: {
    seconds: { type: "string", default: "2" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
  },
}).values;

const ITEMS = 1000;
/** Several arrays in rotation, so that none grows much. */
const KEYS = 64;
const ROUNDS = 3;
/** The ratio to reach. */
const TARGET = 3;

const item = (n) => ({ id: n, name: `item ${n}`, at: 1_700_000_000_000 + n });

/**
 * The settings of the database. With one operation at a time and a sync for each, both ways measure
 * the disk; so files are measured without a sync, and with many operations that share it.
 */
const SETTINGS = [
  { name: "memory, one at a time", file: false, durability: "full", inFlight: 1 },
  { name: "file, one at a time, durability normal", file: true, durability: "normal", inFlight: 1 },
  { name: `file, ${KEYS} in flight`, file: true, durability: "full", inFlight: KEYS },
  { name: "file, one at a time", file: true, durability: "full", inFlight: 1 },
];

async function filled(path, durability) {
  const kv = await openKv(path, { limits: "wide", durability });
  const items = Array.from({ length: ITEMS }, (_, n) => item(n));
  for (let n = 0; n < KEYS; n++) await kv.set(["list", n], items);
  return kv;
}

const ways = {
  async append(kv, key, n) {
    await kv
      .atomic()
      .append(key, [item(n)])
      .commit();
  },
  async "get + push + check + set"(kv, key, n) {
    const entry = await kv.get(key);
    entry.value.push(item(n));
    const { ok } = await kv.atomic().check(entry).set(key, entry.value).commit();
    if (!ok) throw new Error("nobody else writes here");
  },
};

/** Operations per second of one way, on a fresh database. */
async function measure(way, path, { durability, inFlight }) {
  const kv = await filled(path, durability);
  for (let n = 0; n < KEYS; n++) await way(kv, ["list", n], n);
  const start = performance.now();
  const end = start + Number(seconds) * 1000;
  let done = 0;
  while (performance.now() < end) {
    const round = Array.from({ length: inFlight }, () => way(kv, ["list", done % KEYS], done++));
    await Promise.all(round);
  }
  const rate = done / ((performance.now() - start) / 1000);
  kv.close();
  return rate;
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

const directory = resolve(dir, "append");
mkdirSync(directory, { recursive: true });
for (const [number, setting] of SETTINGS.entries()) {
  const rates = {};
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, way] of Object.entries(ways)) {
      const file = join(directory, `${number}-${round}-${name[0]}.sqlite3`);
      (rates[name] ??= []).push(await measure(way, setting.file ? file : ":memory:", setting));
    }
  }
  const [append, other] = Object.values(rates).map(median);
  console.log(setting.name);
  for (const [name, list] of Object.entries(rates)) {
    console.log(`  ${name.padEnd(26)} ${Math.round(median(list))} /s`);
  }
  const ratio = append / other;
  const verdict = ratio >= TARGET ? "reached" : "missed";
  console.log(`  ratio ${ratio.toFixed(1)} (target ${TARGET}: ${verdict})`);
}
rmSync(directory, { recursive: true, force: true });
