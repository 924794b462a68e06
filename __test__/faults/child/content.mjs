// A small database with known contents, written by one process and checked by another.

import { Random } from "../../processes/crash/random.mjs";
import { KvU64 } from "../../processes/target.mjs";

/** Entries: enough for a tree of several pages, few enough to damage the file hundreds of times. */
const ENTRIES = 60;
export const MESSAGES = 3;

/** The entries in the order of their keys. Entry `n` is the n-th commit. */
export function content() {
  return Array.from({ length: ENTRIES }, (_, n) => ({ key: ["k", BigInt(n)], value: valueOf(n) }));
}

function valueOf(n) {
  const random = new Random("content", n);
  if (n % 10 === 3) return new KvU64(BigInt(n) << 20n);
  if (n % 10 === 5) return random.bytes(5000); // spilled
  // Spilled too.
  if (n % 10 === 7) return { n, text: Buffer.from(random.bytes(600)).toString("hex") };
  if (n % 10 === 9) return random.bytes(300);
  return { n, name: `entry ${n}`, tags: ["a", "b"], at: new Date(n * 1e9), set: new Set([n]) };
}

/** Writes it all, one commit an entry, each acknowledged before the next. */
export async function write(kv) {
  for (const { key, value } of content()) await kv.set(key, value);
  for (let n = 0; n < MESSAGES; n++) await kv.enqueue({ message: n }, { delay: 3_600_000 });
}
