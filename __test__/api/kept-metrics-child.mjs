// Duty: a process for kept-metrics.test.mjs: PATH COUNT INTERVAL_MS close|stay. It writes, and then closes
// or waits to be killed.

import process from "node:process";
import { openKv } from "../../index.mjs";

const [path, count, flushInterval, end] = process.argv.slice(2);
const metrics = { persistent: true, flushInterval: Number(flushInterval) };
const kv = await openKv(path, { metrics });
for (let i = 0; i < Number(count); i++) await kv.set(["a", i], i);
process.send?.("written");
if (end === "close") kv.close();
else setInterval(() => {}, 60_000);
