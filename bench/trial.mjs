// One trial: one peer, one workload, one fresh database, one process. Run by run.mjs, under Node or
// Deno; prints its result as one line of JSON.
//
//   trial.mjs <peer> <kind> <family> <workload> <set of values> <directory> <window as JSON>

import { join } from "node:path";
import process from "node:process";
import { useSet } from "./data.mjs";

const [peer, kind, family, name, set, directory, windowJson] = process.argv.slice(2);
const window = JSON.parse(windowJson);
useSet(set);

const { open } = await import(`./peers/${peer}.mjs`);
const workloads = await import(`./workloads/${family}.mjs`);

const options = { large: family === "large", lane: name === "set-thread" ? "thread" : "auto" };
const store = await open(join(directory, "bench.sqlite3"), options);
const result = await workloads[kind][name](store, window);
await store.close();
console.log(JSON.stringify(result));
// Timers that a peer has left must not delay the run.
process.exit(0);
