// Duty: the sizes of prefixes, a part of the range at each request.

import { askJson } from "./request";

/** What is below a prefix: a key, as a literal, the entries, and the bytes of their keys and values. */
export interface PrefixSize {
  readonly prefix: string;
  readonly entries: number;
  readonly bytes: number;
}

/** An answer of the server. The cursor is where the rest of the range begins; its first prefix may be the last here. */
interface Part {
  readonly prefixes: readonly PrefixSize[];
  readonly cursor?: string | null;
}

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
