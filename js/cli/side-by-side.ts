// Duty: pairs the entries of two databases by key, in constant memory.

import { encodeKey } from "../codec/key.js";
import { Writer } from "../codec/writer.js";
import { KvError } from "../model/errors.js";
import type { Kv } from "../api/kv.js";
import type { KvKey } from "../model/types.js";

/** The compared parts of an entry. */
export interface Stamped {
  readonly key: KvKey;
  readonly versionstamp: string;
}

export interface Beside<T extends Stamped, D extends Stamped = Stamped> {
  /** null if only the other database has the key. */
  readonly source: T | null;
  /** The entry of the other database; null if it has none. */
  readonly destination: D | null;
}

/** All keys of both, each once. Both iterables must be in key order. */
export async function* sideBySide<T extends Stamped, D extends Stamped>(
  source: AsyncIterable<T>,
  destination: AsyncIterable<D>,
): AsyncGenerator<Beside<T, D>> {
  const [ours, theirs] = [new Side(source), new Side(destination)];
  try {
    await Promise.all([ours.next(), theirs.next()]);
    while (ours.entry !== null || theirs.entry !== null) {
      const order = compare(ours, theirs);
      const pair = {
        source: order <= 0 ? ours.entry : null,
        destination: order >= 0 ? theirs.entry : null,
      };
      if (order <= 0) await ours.next();
      if (order >= 0) await theirs.next();
      yield pair;
    }
  } finally {
    await Promise.all([ours.end(), theirs.end()]);
  }
}

/** Negative if the first side's key comes first. A side at its end comes last. */
function compare(one: Side<Stamped>, other: Side<Stamped>): number {
  if (other.entry === null) return -1;
  if (one.entry === null) return 1;
  return Buffer.compare(one.keyBytes, other.keyBytes);
}

/** One of the two iterables, at an entry. */
class Side<T extends Stamped> {
  /** null at the end. */
  entry: T | null = null;
  readonly #entries: AsyncIterator<T>;
  readonly #key = new Writer();

  constructor(entries: AsyncIterable<T>) {
    this.#entries = entries[Symbol.asyncIterator]();
  }

  /** The bytes of the entry's key; valid until the next entry. */
  get keyBytes(): Uint8Array {
    return this.#key.buf.subarray(0, this.#key.pos);
  }

  async next(): Promise<void> {
    const { done, value } = await this.#entries.next();
    this.entry = done ? null : value;
    this.#key.pos = 0;
    if (!done) encodeKey(this.#key, value.key);
  }

  async end(): Promise<void> {
    await this.#entries.return?.();
  }
}

/** Keys and versionstamps below a prefix. A plain KV Connect server sends the values too. */
export async function stampsOf(
  kv: Kv,
  prefix: KvKey,
  batchSize: number,
): Promise<AsyncIterable<Stamped>> {
  try {
    await kv.list({ prefix }, { limit: 1, keysOnly: true }).next();
    return kv.list({ prefix }, { batchSize, keysOnly: true }) as AsyncIterable<Stamped>;
  } catch (error) {
    if (error instanceof KvError && error.code === "UNSUPPORTED") {
      return kv.list({ prefix }, { batchSize }) as AsyncIterable<Stamped>;
    }
    throw error;
  }
}
