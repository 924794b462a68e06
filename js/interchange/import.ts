// Duty: writes lines of NDJSON into a database, many in a commit, several commits under way.
// Invariant: `progress` reports a line only when all lines up to it are durable, so that an interrupted
// import can be resumed there. Storing a line twice has no effect.

import { NativePromise } from "../model/native-promise.js";
import type { AtomicOperation } from "../atomic/atomic.js";
import type { Kv } from "../api/kv.js";
import { overLimit } from "../arguments/check.js";
import { now } from "../model/clock.js";
import { KvUniqueError } from "../model/errors.js";
import { encodeKey } from "../codec/key.js";
import { Writer } from "../codec/writer.js";
import { port } from "../native/port.js";
import { notUnique } from "../session/violations.js";
import type { KvEntryKey, KvKey } from "../model/types.js";
import { type ImportedEntry, NdjsonError, decodeLine } from "./decode.js";
import { wholeLines } from "./lines.js";

/** Entries, and bytes of lines, after which a commit is sent. A value is never longer than its line. */
const COMMIT_ENTRIES_MAX = 500;
const COMMIT_BYTES_MAX = 256 * 1024;
/** With one key more, below `commitKeyBytesMax` of every server. */
const COMMIT_KEY_BYTES_MAX = 48 * 1024;
/** Commits that wait together share a transaction, and so one sync. */
const COMMITS_MAX = 16;

export interface ImportOptions {
  /** Put in front of every key. */
  prefix?: KvKey | undefined;
  /** Whether existing entries are replaced. Default: true. */
  overwrite?: boolean;
  signal?: AbortSignal | undefined;
  /** Called with the number of bytes of the input that are done, and the newest commit of the import; empty without one. */
  progress?: (bytesDone: number, counts: ImportCounts, versionstamp: string) => void;
  /** Called for each line that is not stored, with its number from 1. */
  onFailure?: (line: number, error: Error) => void;
}

export interface ImportCounts {
  imported: number;
  /** Existed already, or has expired. */
  skipped: number;
  failed: number;
}

/** An entry of the input. */
interface Item {
  readonly line: number;
  readonly key: KvKey;
  readonly value: unknown;
  readonly options: { readonly expireAt: number } | undefined;
}

interface Batch {
  /** With all entries; empty where each has a commit of its own. */
  operation: AtomicOperation;
  items: Item[];
  /** Of their lines. */
  bytes: number;
  keyBytes: number;
}

/** A batch under way, and the bytes of the input up to its end. */
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
  try {
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
  } catch (error) {
    // The signal ends an input that waits.
    if (!options.signal?.aborted) throw error;
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
  #versionstamp = "";
  /** The oldest first. */
  #sent: Sent[] = [];
  #failure: unknown = undefined;
  readonly #limits = port().limits;
  /** For one key after the other. */
  readonly #scratch = new Writer();

  constructor(kv: Kv, options: ImportOptions) {
    this.#kv = kv;
    this.#options = options;
    this.#prefix = options.prefix ?? [];
    this.#batch = this.#start();
  }

  #start(): Batch {
    return { operation: this.#kv.atomic(), items: [], bytes: 0, keyBytes: 0 };
  }

  get isFull(): boolean {
    const { items, bytes, keyBytes } = this.#batch;
    const isLarge = bytes >= COMMIT_BYTES_MAX || keyBytes >= COMMIT_KEY_BYTES_MAX;
    return items.length >= COMMIT_ENTRIES_MAX || isLarge;
  }

  take(line: string, bytes: number): void {
    this.#line++;
    this.#bytes += bytes + 1;
    if (line === "" || line.trim() === "") return;
    // Some editors put a byte order mark before the first line.
    const text = this.#line === 1 && line.startsWith("\ufeff") ? line.slice(1) : line;
    try {
      this.#put(decodeLine(text), bytes);
    } catch (error) {
      this.#fail(this.#line, error);
    }
  }

  /** Counts an error that concerns one line only; throws any other. */
  #fail(line: number, error: unknown): void {
    if (!isOfLine(error)) throw error;
    this.counts.failed++;
    this.#options.onFailure?.(line, error);
  }

  #put({ key, value, expireAt }: ImportedEntry, bytes: number): void {
    if (expireAt !== undefined && expireAt <= now()) {
      this.counts.skipped++;
      return;
    }
    const whole = this.#prefix.length === 0 ? (key as KvKey) : ([...this.#prefix, ...key] as KvKey);
    // An operation keeps the error of a key for its commit, which would fail the other lines too.
    const keyBytes = this.#sizeOf(whole);
    const options = expireAt === undefined ? undefined : { expireAt };
    const batch = this.#batch;
    if (this.#overwrites) batch.operation.set(whole, value, options);
    batch.items.push({ line: this.#line, key: whole, value, options });
    batch.bytes += bytes;
    batch.keyBytes += keyBytes;
  }

  /** Bytes of a key; throws for one that cannot be stored. */
  #sizeOf(key: KvKey): number {
    const scratch = this.#scratch;
    scratch.pos = 0;
    encodeKey(scratch, key);
    if (scratch.pos <= this.#limits.keyBytesMax) return scratch.pos;
    throw overLimit("Key too large for write", "keyBytesMax", this.#limits, scratch.pos, key);
  }

  get #overwrites(): boolean {
    return this.#options.overwrite !== false;
  }

  async #one({ line, key, value, options }: Item): Promise<void> {
    const operation = this.#kv.atomic();
    if (!this.#overwrites) operation.check({ key: key as KvEntryKey, versionstamp: null });
    try {
      const result = await operation.set(key, value, options).commit();
      if (result.ok) this.#imported(1, result.versionstamp);
      else if (result.violations === undefined) this.counts.skipped++;
      else throw notUnique(result.violations);
    } catch (error) {
      this.#fail(line, error);
    }
  }

  /** Entries that exist already, or cannot be stored, do not prevent the others. */
  async #each({ items }: Batch): Promise<void> {
    await NativePromise.all(items.map((item) => this.#one(item)));
  }

  async #whole(batch: Batch): Promise<void> {
    try {
      const { versionstamp } = await batch.operation.commit();
      this.#imported(batch.items.length, versionstamp);
    } catch (error) {
      if (!isOfLine(error)) throw error;
      await this.#each(batch);
    }
  }

  #imported(entries: number, versionstamp: string): void {
    this.counts.imported += entries;
    if (versionstamp > this.#versionstamp) this.#versionstamp = versionstamp;
  }

  /** Sends the batch; waits while too many are under way. */
  async commit(sentMax = COMMITS_MAX): Promise<void> {
    const batch = this.#batch;
    this.#batch = this.#start();
    if (batch.items.length > 0) {
      const commits = this.#overwrites ? this.#whole(batch) : this.#each(batch);
      const settled = commits.catch((error: unknown) => {
        this.#failure ??= error;
      });
      this.#sent.push({ settled, bytes: this.#bytes });
    }
    while (this.#sent.length >= sentMax) {
      const { settled, bytes } = this.#sent.shift()!;
      await settled;
      if (this.#failure !== undefined) throw this.#failure;
      this.#options.progress?.(bytes, this.counts, this.#versionstamp);
    }
  }

  async end(): Promise<ImportCounts> {
    await this.commit(1);
    if (this.#failure !== undefined) throw this.#failure;
    this.#options.progress?.(this.#bytes, this.counts, this.#versionstamp);
    return this.counts;
  }
}

/** Whether the error concerns this line only. */
function isOfLine(error: unknown): error is Error {
  // A value may be nested too deeply for the encoder: a RangeError.
  const kinds = [NdjsonError, TypeError, RangeError, KvUniqueError];
  return kinds.some((kind) => error instanceof kind);
}
