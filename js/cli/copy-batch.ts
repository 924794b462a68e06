// Duty: writes the entries of a copy into the destination: many in a commit, several commits at once.
// Invariant: with checks, an entry that another writer has added to the destination is not replaced,
// and does not prevent the copy of other entries.

import type { AtomicOperation } from "../atomic/atomic.js";
import type { ExportedEntry } from "../interchange/encode.js";
import type { Kv } from "../api/kv.js";
import { sizeOf } from "../api/size.js";
import { notUnique } from "../session/violations.js";

const COPY_BYTES_MAX = 512 * 1024;
/** Below `commitKeyBytesMax` of every server. */
const COPY_KEY_BYTES_MAX = 64 * 1024;
/** Most commits under way. */
const COPY_COMMITS_MAX = 4;

/** An entry, and the versionstamp of the one that it may replace; null for none. */
interface Item {
  readonly entry: ExportedEntry;
  readonly replaces: string | null;
}

export class CopyBatch {
  /** Entries that were handed over. */
  copied = 0;
  /** The number of entries that another writer has changed first. */
  lost = 0;
  readonly #to: Kv;
  readonly #entriesMax: number;
  readonly #checked: boolean;
  #items: Item[] = [];
  #bytes = 0;
  #keyBytes = 0;
  #sent: Promise<void>[] = [];

  /** `checked`: every entry only replaces the one that it was compared with. */
  constructor(to: Kv, entriesMax: number, checked: boolean) {
    this.#to = to;
    this.#entriesMax = entriesMax;
    this.#checked = checked;
  }

  async add(entry: ExportedEntry, replaces: string | null): Promise<void> {
    const bytes = sizeOf(entry.value);
    const keyBytes = sizeOf.key(entry.key);
    // Flushes first: this entry may be the largest that fits a commit.
    if (this.#bytes + bytes > COPY_BYTES_MAX || this.#keyBytes + keyBytes > COPY_KEY_BYTES_MAX) {
      await this.#flush(COPY_COMMITS_MAX);
    }
    this.#items.push({ entry, replaces });
    this.#bytes += bytes;
    this.#keyBytes += keyBytes;
    if (this.#items.length >= this.#entriesMax) await this.#flush(COPY_COMMITS_MAX);
  }

  /** Resolves when everything is stored. */
  async end(): Promise<void> {
    await this.#flush(0);
  }

  async #flush(most: number): Promise<void> {
    const items = this.#items;
    this.#items = [];
    this.#bytes = 0;
    this.#keyBytes = 0;
    if (items.length > 0) {
      const stored = this.#store(items);
      stored.catch(() => {});
      this.#sent.push(stored);
    }
    while (this.#sent.length > most) await this.#sent.shift();
  }

  async #store(items: readonly Item[]): Promise<void> {
    if (await this.#commit(items)) {
      this.copied += items.length;
    } else if (items.length === 1) {
      this.lost++;
    } else {
      for (const item of items) await this.#store([item]);
    }
  }

  async #commit(items: readonly Item[]): Promise<boolean> {
    const operation: AtomicOperation = this.#to.atomic();
    for (const { entry, replaces } of items) {
      const { key, value, expireAt } = entry;
      if (this.#checked) operation.check({ key, versionstamp: replaces });
      operation.set(key, value, expireAt == null ? undefined : { expireAt });
    }
    const result = await operation.commit();
    // An index of the destination refuses the copy, and not another writer.
    if (!result.ok && result.violations !== undefined && items.length === 1)
      throw notUnique(result.violations);
    return result.ok;
  }
}
