// Duty: entries and bytes of each prefix of so many parts, by reading all entries of a range.
// Invariant: constant memory for each prefix; at most `PREFIXES_MAX` prefixes, the others are one.

import { sizeOf } from "../../api/size.js";
import type { Kv } from "../../api/kv.js";
import type { KvKey } from "../../model/types.js";
import { shownKey } from "../output.js";

/** Prefixes that are counted apart. */
const PREFIXES_MAX = 10_000;
/** The name of the prefixes beyond these. */
const OTHERS = "(others)";
/** Entries of one read. */
const PAGE_ENTRIES = 500;

/** What is below a prefix, with the entry of the prefix itself. */
export interface PrefixSize {
  readonly prefix: string;
  readonly entries: number;
  /** Of keys and values, as they are stored. */
  readonly bytes: number;
}

/** The sizes, the largest first. `onEntries` gets the number of entries so far; the signal ends the reading. */
export async function sizesOf(
  kv: Kv,
  { prefix, depth }: { prefix: KvKey; depth: number },
  signal: AbortSignal,
  onEntries: (entries: number) => void,
): Promise<{ sizes: PrefixSize[]; isWhole: boolean }> {
  const found = new Map<string, { prefix: string; entries: number; bytes: number }>();
  let entries = 0;
  const add = (key: KvKey, value: unknown): void => {
    const name = shownKey(key.slice(0, prefix.length + depth));
    const known = found.has(name) || found.size < PREFIXES_MAX ? name : OTHERS;
    const of = found.get(known) ?? { prefix: known, entries: 0, bytes: 0 };
    of.entries++;
    of.bytes += sizeOf.key(key) + sizeOf(value);
    found.set(known, of);
    onEntries(++entries);
  };
  const sorted = () => [...found.values()].sort((one, other) => other.bytes - one.bytes);
  if (prefix.length > 0) {
    const { value, versionstamp } = await kv.get(prefix);
    if (versionstamp !== null) add(prefix, value);
  }
  for await (const { key, value } of kv.list({ prefix }, { batchSize: PAGE_ENTRIES })) {
    if (signal.aborted) return { sizes: sorted(), isWhole: false };
    add(key, value);
  }
  return { sizes: sorted(), isWhole: true };
}
