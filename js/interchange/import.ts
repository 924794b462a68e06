// Duty: lines of NDJSON into a database, many to a commit, several commits on their way.
// Invariant: `progress` is told of a line only when everything up to it is durable, so that an
// import that was cut off can go on from there. Storing a line twice does no harm.

import type { AtomicOperation } from "../atomic.js";
import type { Kv } from "../kv.js";
import type { KvKey } from "../types.js";
import { type ImportedEntry, NdjsonError, decodeLine } from "./decode.js";
import { wholeLines } from "./lines.js";

/** Entries and characters of one commit, and commits that are on their way at once. */
const COMMIT_ENTRIES_MAX = 500;
const COMMIT_CHARS_MAX = 256 * 1024;
/** What a part without a length is counted as. */
const NUMBER_KEY_CHARS = 9;
/** Below `commitKeyBytesMax` of every server. */
const COMMIT_KEY_CHARS_MAX = 48 * 1024;
/** Commits that wait together share a transaction, and so one sync. */
const COMMITS_MAX = 16;

export interface ImportOptions {
  /** Put in front of every key. */
  prefix?: KvKey | undefined;
  /** Whether entries that are there already are written over. Default: true. */
  overwrite?: boolean;
  signal?: AbortSignal;
  /** Told how many bytes of the input are done. */
  progress?: (bytesDone: number, counts: ImportCounts) => void;
  /** Told of each line that is not stored, with its number from 1. */
  onFailure?: (line: number, error: Error) => void;
}

export interface ImportCounts {
  imported: number;
  /** There already, or ended meanwhile. */
  skipped: number;
  failed: number;
}

interface Batch {
  operation: AtomicOperation;
  /** Commits of single entries, where each has a check of its own. */
  singles: Promise<void>[];
  entries: number;
  chars: number;
  /** Characters of the strings in its keys. */
  keyChars: number;
}

/** A batch on its way, and the bytes of the input up to its end. */
interface Sent {
  readonly settled: Promise<void>;
  readonly bytes: number;
}

/** Reads a stream of bytes to its end, or until it is aborted. */
export async function importLines(
  kv: Kv,
  input: AsyncIterable<Uint8Array>,
  options: ImportOptions = {},
): Promise<ImportCounts> {
  const importer = new Importer(kv, options);
  for await (const lines of wholeLines(input)) {
    const text = lines.toString();
    // Lines of ASCII, as most are, have as many bytes as characters.
    const isPlain = text.length === lines.length;
    for (let at = 0; at < text.length; ) {
      const found = text.indexOf("\n", at);
      const end = found === -1 ? text.length : found;
      const line = text.slice(at, end);
      importer.take(line, isPlain ? line.length : Buffer.byteLength(line));
      at = end + 1;
      if (importer.isFull) await importer.commit();
    }
    if (options.signal?.aborted) break;
  }
  return await importer.end();
}

class Importer {
  readonly counts: ImportCounts = { imported: 0, skipped: 0, failed: 0 };
  readonly #kv: Kv;
  readonly #options: ImportOptions;
  readonly #prefix: KvKey;
  #batch: Batch;
  #line = 0;
  #bytes = 0;
  /** The oldest first. */
  #sent: Sent[] = [];
  #failure: unknown = undefined;

  constructor(kv: Kv, options: ImportOptions) {
    this.#kv = kv;
    this.#options = options;
    this.#prefix = options.prefix ?? [];
    this.#batch = this.#start();
  }

  #start(): Batch {
    return { operation: this.#kv.atomic(), singles: [], entries: 0, chars: 0, keyChars: 0 };
  }

  get isFull(): boolean {
    const { entries, chars, keyChars } = this.#batch;
    const isLarge = chars >= COMMIT_CHARS_MAX || keyChars >= COMMIT_KEY_CHARS_MAX;
    return entries >= COMMIT_ENTRIES_MAX || isLarge;
  }

  take(line: string, bytes: number): void {
    this.#line++;
    this.#bytes += bytes + 1;
    if (line === "" || line.trim() === "") return;
    // Editors put a mark of byte order before the first one.
    const text = this.#line === 1 && line.startsWith("\ufeff") ? line.slice(1) : line;
    try {
      this.#put(decodeLine(text), text.length);
    } catch (error) {
      if (!(error instanceof NdjsonError) && !(error instanceof TypeError)) throw error;
      this.counts.failed++;
      this.#options.onFailure?.(this.#line, error);
    }
  }

  #put({ key, value, expireAt }: ImportedEntry, chars: number): void {
    const expireIn = expireAt === undefined ? undefined : expireAt - Date.now();
    if (expireIn !== undefined && expireIn <= 0) {
      this.counts.skipped++;
      return;
    }
    const whole = this.#prefix.length === 0 ? (key as KvKey) : ([...this.#prefix, ...key] as KvKey);
    const options = expireIn === undefined ? undefined : { expireIn };
    const batch = this.#batch;
    if (this.#options.overwrite === false) {
      // One entry that is there must not keep others out.
      const operation = this.#kv.atomic().check({ key: whole, versionstamp: null });
      batch.singles.push(this.#single(operation.set(whole, value, options)));
    } else {
      batch.operation.set(whole, value, options);
    }
    batch.entries++;
    batch.chars += chars;
    for (const part of whole) {
      const { length } = part as { length?: number };
      batch.keyChars += length ?? NUMBER_KEY_CHARS;
    }
  }

  async #single(operation: AtomicOperation): Promise<void> {
    const { ok } = await operation.commit();
    if (ok) this.counts.imported++;
    else this.counts.skipped++;
  }

  async #whole({ operation, entries }: Batch): Promise<void> {
    await operation.commit();
    this.counts.imported += entries;
  }

  /** Sends what was taken; waits while too much is on its way. */
  async commit(sentMax = COMMITS_MAX): Promise<void> {
    const batch = this.#batch;
    this.#batch = this.#start();
    if (batch.entries > 0) {
      const { singles } = batch;
      const commits = singles.length > 0 ? Promise.all(singles).then(() => {}) : this.#whole(batch);
      const settled = commits.catch((error: unknown) => {
        this.#failure ??= error;
      });
      this.#sent.push({ settled, bytes: this.#bytes });
    }
    while (this.#sent.length >= sentMax) {
      const { settled, bytes } = this.#sent.shift()!;
      await settled;
      if (this.#failure !== undefined) throw this.#failure;
      this.#options.progress?.(bytes, this.counts);
    }
  }

  async end(): Promise<ImportCounts> {
    await this.commit(1);
    this.#options.progress?.(this.#bytes, this.counts);
    return this.counts;
  }
}
