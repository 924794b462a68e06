#!/usr/bin/env node
// Several processes run transactions on the same counters and accounts of one file: no increment
// is lost, no money is made or lost, and every audit has seen all of it.
//
//   node counters.mjs [--rounds 20] [--processes 2] [--transactions 100]

import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";

import { newFolder } from "../kit/folder.mjs";
import { guard } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { openKv } from "./target.mjs";

const WORKER = new URL("counters/worker.mjs", import.meta.url);
const HANG_MS = 120_000;
const COUNTERS = 3;
const ACCOUNTS = 5;
const BALANCE = 100;

/** One round in a fresh file; answers what is wrong. */
export async function round({ processes, transactions }) {
  const directory = newFolder("counters");
  try {
    const path = join(directory, "kv.sqlite3");
    const kv = await openKv(path);
    for (let id = 0; id < ACCOUNTS; id++) await kv.set(["account", id], BALANCE);
    const shared = { path, transactions, counters: COUNTERS, accounts: ACCOUNTS };
    const children = Array.from({ length: processes }, (_, id) =>
      startChild(WORKER, { ...shared, id }),
    );
    const faults = [];
    for (const child of children) {
      const { code } = await guard(child.ended, HANG_MS, "the end of a worker");
      const line = await child.line();
      if (code !== 0 || line !== "done")
        faults.push(`a worker ended with ${code}: ${child.stderr}`);
    }
    let counted = 0;
    for await (const { value } of kv.list({ prefix: ["counter"] })) counted += value;
    const expected = processes * transactions;
    if (counted !== expected) faults.push(`counted ${counted}, not ${expected}`);
    let total = 0;
    for await (const { value } of kv.list({ prefix: ["account"] })) total += value;
    if (total !== ACCOUNTS * BALANCE) faults.push(`the accounts hold ${total}`);
    const audits = [];
    for await (const { key } of kv.list({ prefix: ["total"] })) audits.push(key[1]);
    if (audits.join() !== String(ACCOUNTS * BALANCE)) faults.push(`audits saw ${audits}`);
    await kv.close();
    return faults;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "20" },
      processes: { type: "string", default: "2" },
      transactions: { type: "string", default: "100" },
    },
  });
  const [processes, transactions] = [Number(values.processes), Number(values.transactions)];
  for (let n = 1; n <= Number(values.rounds); n++) {
    const begun = performance.now();
    const faults = await round({ processes, transactions });
    console.log(
      `round ${n}: ${faults.length === 0 ? "exact" : faults.join("; ")}, ` +
        `${Math.round(performance.now() - begun)} ms`,
    );
    if (faults.length > 0) process.exitCode = 1;
  }
}
