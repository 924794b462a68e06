// Duty: the sizes of prefixes, a part of the range at each request.

import type { components } from "./schema";
import { askJson } from "./request";

type Part = components["schemas"]["PrefixSizes"];

/** What is below a prefix. */
export type PrefixSize = components["schemas"]["PrefixSize"];

/** What was measured so far. */
export interface Sizes {
  /** The largest first. */
  readonly prefixes: readonly PrefixSize[];
  readonly entries: number;
  /** Whether all of the range was read. */
  readonly isWhole: boolean;
}

/** Measures what is below a prefix, given as a literal, with the state after each request. */
export async function* sizesOf(prefix: string, signal: AbortSignal): AsyncGenerator<Sizes> {
  const found = new Map<string, PrefixSize>();
  let entries = 0;
  let cursor: string | undefined;
  do {
    const query = { prefix: prefix || undefined, cursor };
    const part = await askJson<Part>("/sizes", { query, signal });
    for (const { prefix: name, entries: count, bytes } of part.prefixes) {
      // A prefix that was not read to its end comes again.
      const known = found.get(name);
      const sum = { entries: count + (known?.entries ?? 0), bytes: bytes + (known?.bytes ?? 0) };
      found.set(name, { prefix: name, ...sum });
      entries += count;
    }
    cursor = part.cursor ?? undefined;
    const prefixes = [...found.values()].sort((one, other) => other.bytes - one.bytes);
    yield { prefixes, entries, isWhole: cursor === undefined };
  } while (cursor !== undefined);
}
