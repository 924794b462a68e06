// `node bench/limiter.mjs`: takes from limiters a second, 100 in flight, on one key and on 10,000 keys, on a file whose commits are
// synced; beside rate-limiter-flexible in the memory of the process, which shares nothing and keeps nothing.
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

const IN_FLIGHT = 100;
const RULE = { limit: 1_000_000_000, per: "1h" };
/** The takes a second to reach, by the number of keys. */
const TARGETS = { 1: 100_000, 10000: 60_000 };

/** Takes a second of `take(n)`, with so many in flight. */
async function rate(take) {
  const start = performance.now();
  const end = start + Number(seconds) * 1000;
  let done = 0;
  const caller = async () => {
    while (performance.now() < end) {
      const { allowed } = await take(done++);
      if (!allowed) throw new Error("the limit is too small for this machine");
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller));
  return done / ((performance.now() - start) / 1000);
}

async function ofOpenKv(path, keys, algorithm) {
  const kv = await openKv(path);
  const take = (n) => kv.limiter(["limit", n % keys], { ...RULE, algorithm }).take();
  await Promise.all(Array.from({ length: keys }, (_, n) => take(n)));
  const measured = await rate(take);
  await kv.close();
  return measured;
}

/** Null: the library is not installed (`npm install --no-save rate-limiter-flexible`). */
async function ofMemory(keys) {
  const library = await import("rate-limiter-flexible").catch(() => null);
  if (library === null) return null;
  const limiter = new library.RateLimiterMemory({ points: RULE.limit, duration: 3600 });
  return await rate(async (n) => {
    await limiter.consume(String(n % keys));
    return { allowed: true };
  });
}

const folder = resolve(dir, "limiter");
const shown = (value) =>
  value === null ? "not installed" : Math.round(value).toLocaleString("en");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const [keys, target] of Object.entries(TARGETS)) {
  for (const algorithm of ["fixed", "sliding", "token-bucket"]) {
    const path = join(folder, `${algorithm}-${keys}.sqlite3`);
    const measured = await ofOpenKv(path, Number(keys), algorithm);
    console.log(
      `${keys} keys, ${algorithm}: ${shown(measured)} takes/s (at least ${shown(target)})`,
    );
  }
  console.log(
    `${keys} keys, memory of rate-limiter-flexible: ${shown(await ofMemory(Number(keys)))}`,
  );
}
rmSync(folder, { recursive: true, force: true });
