// One process of bench/postgres.mjs: calls in a closed loop, some in flight at a time.

import process from "node:process";
import { openKv } from "../../index.mjs";
import { closedLoop, quantile } from "../measure.mjs";

const { url, what, inFlight, seconds, keys, bytes } = JSON.parse(process.argv[2]);
const WARM_MS = 500;
const MS_PER_SECOND = 1000;

const kv = await openKv(url);
const value = new Uint8Array(bytes).fill(120);
const key = () => ["rows", Math.floor(Math.random() * keys)];
const CALLS = {
  sum: () => kv.atomic().sum(["counter"], 1n).commit(),
  set: () => kv.set(key(), value),
  get: () => kv.get(key()),
};
const call = CALLS[what];

if (what === "get") {
  for (let at = 0; at < keys; at += 1000) {
    const part = Array.from({ length: Math.min(1000, keys - at) }, (_, i) => at + i);
    await Promise.all(part.map((i) => kv.set(["rows", i], value)));
  }
}

await closedLoop(WARM_MS, inFlight, call);
const { times, elapsedMs } = await closedLoop(seconds * MS_PER_SECOND, inFlight, call);
process.send({ count: times.length, elapsedMs, p50Ms: quantile(times, 0.5) });
await kv.close();
