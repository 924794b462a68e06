// Duty: measures what a million entries with the same expiry cost a concurrent writer: the latency
// of sets during their sweep and without it, in the same run.
//
//   node bench/expiry.mjs [--keys 1000000] [--sets 2000]

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "1000000" },
    sets: { type: "string", default: "2000" },
  },
});
const [keys, sets] = [Number(values.keys), Number(values.sets)];
const directory = mkdtempSync(join(tmpdir(), "openkv-expiry-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
const kv = await openKv(join(directory, "kv.sqlite3"));

/** Latencies in ms of one set after the other, for at least `count` sets and until `done()`. */
async function measure(name, count, done) {
  const took = [];
  for (let n = 0; n < count || !(await done()); n++) {
    const begun = performance.now();
    await kv.set(["live", n % 1000], n);
    took.push(performance.now() - begun);
  }
  took.sort((a, b) => a - b);
  const at = (share) => took[Math.min(took.length - 1, Math.floor(took.length * share))].toFixed(2);
  console.log(`${name}: ${took.length} sets, p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)} ms`);
  return Number(at(0.99));
}

const quiet = await measure("nothing ends", sets, () => true);

/** Time enough to write all of them. */
const LEAD_MS = 5_000 + keys / 10;
const end = Date.now() + LEAD_MS;
for (let n = 0; n < keys; n += 1000) {
  const batch = kv.atomic();
  for (let i = n; i < Math.min(n + 1000, keys); i++) {
    batch.set(["ending", i], "a value that ends", { expireIn: end - Date.now() });
  }
  await batch.commit();
}
await new Promise((resolve) => setTimeout(resolve, Math.max(0, end - Date.now())));
const begun = performance.now();
const ended = await measure(`${keys} entries end`, sets, () => true);
console.log(`these sets took ${Math.round(performance.now() - begun)} ms`);
console.log(`p99 ${(ended / quiet).toFixed(2)}x of the quiet one; the bound is 20 ms`);
for await (const { key } of kv.list({ prefix: ["ending"] }, { limit: 1 })) {
  throw new Error(`an ended entry was read: ${key}`);
}
kv.close();
