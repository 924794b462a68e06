// Measures gets and sets as the database grows: 10 thousand, a million and (with a flag) 10 million keys, of openkv and of
// the stores that answer in the process of their caller.
//
//   node bench/size.mjs [--ten-million] [--sizes 10000,1000000] [--stores openkv,better-sqlite3,lmdb]
//                       [--rounds 3] [--seconds 1] [--cache-size BYTES] [--mmap-size BYTES]
//
// Keys are read and overwritten in a scattered order over the whole database, the values are those that programs store. Each
// store has a process of its own for each size and takes its turn in every round; the figures are medians, after a round that is
// not counted. The two options of memory are openkv's. The output has the sizes that explain the rates: of the file, and of the
// process, to which lmdb's mapped file counts as far as it was read.

import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { expect, useSet, value } from "./data.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { quantile, rate } from "./measure.mjs";
import { PEERS } from "./peers.mjs";
import { short } from "./report.mjs";

const MB = 1e6;
/** Steps through the keys in a scattered order; prime, so that it visits each before any twice. */
const STEP = 6_180_341;
const FILL_BATCH = 1000;
const SETS_IN_FLIGHT = 500;
const ROUND = 20;
const WARM_MS = 300;

const { values: options } = parseArgs({
  options: {
    "ten-million": { type: "boolean", default: false },
    sizes: { type: "string", default: "10000,1000000" },
    stores: { type: "string", default: "openkv,better-sqlite3,lmdb" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "1" },
    "cache-size": { type: "string" },
    "mmap-size": { type: "string" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    // Of a store's process: its name, how many keys, and the folder.
    store: { type: "string" },
    keys: { type: "string" },
  },
});
const key = (i) => ["users", i];
const numberOf = (text) => (text === undefined ? undefined : Number(text));
useSet("realistic");
if (options.store === undefined) {
  await compare();
} else {
  await serve(options.store, Number(options.keys), options.dir);
}

/** Measures every size, one after the other, and prints a table of all. */
async function compare() {
  const sizes = options.sizes.split(",").map(Number);
  if (options["ten-million"]) sizes.push(10_000_000);
  const stores = options.stores.split(",");
  const directory = dataDirectory(options.dir);
  console.log(`Machine: ${machineLine(directory)}.\n`);
  const heads = [
    "keys",
    "store",
    "get/s",
    "set/s",
    "500 sets in flight/s",
    "file MB",
    "process MB",
  ];
  console.log(`| ${heads.join(" | ")} |\n|${" --- |".repeat(heads.length)}`);
  try {
    for (const count of sizes) {
      for (const row of await measureSize(count, stores, directory)) {
        console.log(`| ${row.join(" | ")} |`);
      }
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The rows of one size; behind openkv's rates is how many times as many they are, for the other stores. */
async function measureSize(count, stores, directory) {
  const children = new Map();
  try {
    for (const store of stores) {
      const folder = join(directory, `${store}-${count}`);
      mkdirSync(folder);
      children.set(store, await start(store, count, folder));
    }
    const rates = new Map(stores.map((store) => [store, { get: [], set: [], setMany: [] }]));
    // Gets come first: a commit empties the caches of connections that read.
    for (const operation of ["get", "set", "setMany"]) {
      for (let round = 0; round <= Number(options.rounds); round++) {
        for (const store of stores) {
          const measured = await ask(children.get(store), operation);
          if (round > 0) rates.get(store)[operation].push(measured);
        }
      }
    }
    const rows = [];
    for (const store of stores) {
      const sizes = await ask(children.get(store), "sizes");
      const cells = ["get", "set", "setMany"].map((operation) => {
        const own = quantile(rates.get(store)[operation], 0.5);
        const openkv = rates.get("openkv")?.[operation] ?? [];
        const ratio = store === "openkv" || openkv.length === 0 ? "" : quantile(openkv, 0.5) / own;
        return ratio === "" ? short(own) : `${short(own)} (openkv ${ratio.toFixed(2)} ×)`;
      });
      rows.push([short(count), store, ...cells, sizes.fileMb, sizes.processMb]);
    }
    return rows;
  } finally {
    for (const child of children.values()) child.kill();
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
  }
}

/** A process with a filled store. */
async function start(store, count, folder) {
  const self = fileURLToPath(import.meta.url);
  const memory = ["cache-size", "mmap-size"].flatMap((name) =>
    options[name] === undefined ? [] : [`--${name}`, options[name]],
  );
  const child = fork(self, [
    ...["--store", store, "--keys", `${count}`, "--dir", folder],
    ...["--seconds", options.seconds, ...memory],
  ]);
  await answerOf(child);
  return child;
}

function ask(child, what) {
  child.send(what);
  return answerOf(child);
}

/** The next message of a process; rejects if it ends. */
async function answerOf(child) {
  const ended = new AbortController();
  const { signal } = ended;
  const exit = once(child, "exit", { signal }).then(([code]) => {
    throw new Error(`the process of a store has ended (exit code ${code})`);
  });
  try {
    const [message] = await Promise.race([once(child, "message", { signal }), exit]);
    return message;
  } finally {
    exit.catch(() => {});
    ended.abort();
  }
}

/** The process of a store: fills it, then measures what its parent asks for. */
async function serve(name, count, folder) {
  const peer = PEERS.find((candidate) => candidate.name === name);
  const store = await openStore(peer, join(folder, "bench.sqlite3"));
  for (let from = 0; from < count; from += FILL_BATCH) {
    const until = Math.min(from + FILL_BATCH, count);
    const pairs = [];
    for (let i = from; i < until; i++) pairs.push([key(i), value(i)]);
    await store.fill(pairs);
    if (from % 100_000 === 0) note(`${name}: filling ${short(from || 1)} of ${short(count)}`);
  }
  note("");
  let at = 0;
  const next = () => (at = (at + STEP) % count);
  const window = { warmMs: WARM_MS, ms: Number(options.seconds) * 1000 };
  const measures = {
    get: async () => (await rate(window, () => store.getRound(next))).value,
    set: async () => (await rate(window, () => store.setRound(next))).value,
    setMany: async () => (await rate(window, () => store.setManyRound(next))).value,
    sizes: () => ({
      fileMb: sizeMb(folder),
      processMb: (process.memoryUsage.rss() / MB).toFixed(0),
    }),
  };
  process.on("message", async (what) => process.send(await measures[what]()));
  process.send("filled");
}

/** One seam over the two kinds of adapters: rounds of `ROUND` calls, one after the other, and 500 sets in flight. */
async function openStore(peer, path) {
  const check = (found, i) => expect(found?.id === i, `key ${i}`);
  if (peer.kind === "sync") {
    const { open } = await import(`./peers/${peer.name}.mjs`);
    const store = await open(path);
    return {
      fill: (pairs) => store.setMany(pairs),
      getRound(next) {
        for (let n = 0; n < ROUND; n++) {
          const i = next();
          check(store.get(key(i)), i);
        }
        return ROUND;
      },
      setRound(next) {
        for (let n = 0; n < ROUND; n++) {
          const i = next();
          store.set(key(i), value(i));
        }
        return ROUND;
      },
      // What these stores have for many writers at once: one transaction for all.
      setManyRound(next) {
        store.setMany(Array.from({ length: SETS_IN_FLIGHT }, () => pair(next())));
        return SETS_IN_FLIGHT;
      },
    };
  }
  const { openKv } = await import("../index.mjs");
  const kv = await openKv(path, {
    cacheSize: numberOf(options["cache-size"]),
    mmapSize: numberOf(options["mmap-size"]),
  });
  return {
    async fill(pairs) {
      const operation = kv.atomic();
      for (const [key, value] of pairs) operation.set(key, value);
      await operation.commit();
    },
    async getRound(next) {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        check((await kv.get(key(i))).value, i);
      }
      return ROUND;
    },
    async setRound(next) {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        await kv.set(key(i), value(i));
      }
      return ROUND;
    },
    async setManyRound(next) {
      await Promise.all(Array.from({ length: SETS_IN_FLIGHT }, () => kv.set(...pair(next()))));
      return SETS_IN_FLIGHT;
    },
  };
}

const pair = (i) => [key(i), value(i)];

function note(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}

/** The files of a folder, in MB. */
function sizeMb(folder) {
  const sizes = readdirSync(folder, { recursive: true })
    .map((name) => join(folder, name))
    .filter((path) => existsSync(path) && statSync(path).isFile())
    .map((path) => statSync(path).size);
  return (sizes.reduce((sum, size) => sum + size, 0) / MB).toFixed(1);
}
