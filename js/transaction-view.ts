// Duty: what the function of a transaction works with: reads that are remembered and show its own
// writes, and writes that are collected for the commit.
// Invariant: whatever a read answered is in the read set before its promise resolves.

import { AtomicOperation, segmentsOf } from "./atomic.js";
import { checkConsistency, checkOptions, nameOf, wrongShape } from "./check.js";
import { decodeKey, encodeKey } from "./codec/key.js";
import { KvUuidV7 } from "./codec/uuid.js";
import { Writer } from "./codec/writer.js";
import { KvListIterator } from "./list.js";
import { type OwnEntry, Pending } from "./pending.js";
import { boundsOf, checkSelector } from "./range.js";
import { type ReadRange, ReadSet } from "./read-set.js";
import { getLater, getManyLater, getManyNow, getNow, requireKey } from "./reads.js";
import { isSuffixed } from "./records.js";
import type { Session } from "./session.js";
import type {
  KvCommitError,
  KvCommitResult,
  KvConsistencyLevel,
  KvKey,
  KvListSelector,
  KvMutation,
  KvSumOptions,
  KvTransaction,
  KvTransactionEntry,
  KvTransactionEntryMaybe,
  KvU64,
} from "./types.js";

type Operand = bigint | number | KvU64;
type Maybe = KvTransactionEntryMaybe<any>;

/** Whether two reads of one key have met different entries. */
export let isBroken: (tx: Transaction) => boolean;
/** Ends it: nothing is read or written from now on. */
export let end: (tx: Transaction) => void;
/** Commits what was written under checks of what was read; once, after its end. */
export let commit: (tx: Transaction) => Promise<KvCommitResult | KvCommitError>;

export class Transaction implements KvTransaction {
  readonly #session: Session;
  readonly #operation: AtomicOperation;
  readonly #reads: ReadSet;
  readonly #pending: Pending;
  /** Entries that were read, by the bytes of their keys. */
  readonly #entries = new Map<string, Promise<Maybe>>();
  #ended = false;

  constructor(session: Session) {
    this.#session = session;
    this.#operation = new AtomicOperation(session);
    this.#reads = new ReadSet(session.limits);
    this.#pending = new Pending(session, this.#reads);
  }

  async get(key: KvKey, options?: { consistency?: KvConsistencyLevel }): Promise<Maybe> {
    this.#requireActive();
    checkConsistency(checkOptions("tx.get", options, ["consistency"]).consistency);
    const id = bytesOf(requireKey(key));
    if (this.#pending.has(id)) return entryOf(await this.#pending.entry(id));
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      entry = this.#read(id, key);
      this.#entries.set(id, entry);
    }
    return await entry;
  }

  async #read(id: string, key: KvKey): Promise<Maybe> {
    const session = this.#session;
    const entry = getNow(session, key, undefined) ?? (await getLater(session, key, undefined));
    this.#reads.read(id, entry.versionstamp);
    return entry;
  }

  async getMany(
    keys: readonly KvKey[],
    options?: { consistency?: KvConsistencyLevel },
  ): Promise<any> {
    this.#requireActive();
    checkConsistency(checkOptions("tx.getMany", options, ["consistency"]).consistency);
    if (!Array.isArray(keys)) throw wrongShape("array", keys);
    const ids = keys.map((key) => bytesOf(requireKey(key)));
    const known = (id: string) => this.#pending.has(id) || this.#entries.has(id);
    const missing = [...new Set(ids.filter((id) => !known(id)))];
    const entries = missing.length > 0 ? this.#readMany(missing) : null;
    missing.forEach((id, i) => this.#entries.set(id, entries!.then((read) => read[i])));
    return await Promise.all(
      ids.map(async (id) =>
        this.#pending.has(id) ? entryOf(await this.#pending.entry(id)) : this.#entries.get(id),
      ),
    );
  }

  async #readMany(ids: readonly string[]): Promise<Maybe[]> {
    const keys = ids.map(keyOf);
    const session = this.#session;
    const entries =
      getManyNow(session, keys, undefined) ?? (await getManyLater(session, keys, undefined));
    entries.forEach((entry, i) => this.#reads.read(ids[i], entry.versionstamp));
    return entries;
  }

  list(selector: KvListSelector, options?: unknown): AsyncGenerator<KvTransactionEntry<any>> {
    this.#requireActive();
    const known = ["limit", "reverse", "batchSize"] as const;
    const { limit, reverse, batchSize } = checkOptions("tx.list", options, known);
    if (limit !== undefined && !(Number.isInteger(limit) && (limit as number) > 0)) {
      throw new TypeError(`tx.list: limit must be a positive integer: received ${told(limit)}`);
    }
    if (reverse !== undefined && typeof reverse !== "boolean") {
      throw new TypeError(`tx.list: reverse must be a boolean: received ${nameOf(reverse)}`);
    }
    const copy = checkSelector(selector);
    const { start, end } = boundsOf(copy, this.#session.limits.rangeKeyBytesMax);
    const backwards = reverse === true;
    const page = { reverse: backwards, batchSize: batchSize as number };
    const rows = new KvListIterator<unknown>(this.#session, copy as KvListSelector, page);
    const [from, to] = [start.toString("latin1"), end.toString("latin1")];
    return this.#listed(rows, from, to, backwards, (limit as number | undefined) ?? Infinity);
  }

  /** The rows of the database and the transaction's own, merged in the order of their keys. */
  async *#listed(
    rows: KvListIterator<unknown>,
    start: string,
    end: string,
    reverse: boolean,
    limit: number,
  ): AsyncGenerator<KvTransactionEntry<any>> {
    this.#requireActive();
    const range: ReadRange = this.#reads.range(start, end, reverse);
    const before = (a: string, b: string) => (reverse ? a > b : a < b);
    let head: { id: string; entry: KvTransactionEntry<any> } | null | undefined;
    let last: string | null = null;
    for (let given = 0; given < limit; ) {
      if (head === undefined) {
        const { value } = await rows.next();
        this.#requireActive();
        head = value === undefined ? null : { id: bytesOf(value.key), entry: value };
      }
      const own = this.#pending.next(start, end, last, reverse);
      if (own === undefined && head === null) {
        range.ended();
        return;
      }
      if (head === null || (own !== undefined && !before(head.id, own))) {
        last = own!;
        if (head?.id === last) {
          range.saw(last, head.entry.versionstamp!);
          head = undefined;
        } else {
          range.passed(last);
        }
        const { exists, key, value } = await this.#pending.entry(last);
        this.#requireActive();
        if (!exists) continue;
        given++;
        yield { key, value, versionstamp: null };
      } else {
        const { id, entry } = head;
        range.saw(id, entry.versionstamp!);
        if (!this.#entries.has(id)) this.#entries.set(id, Promise.resolve(entry));
        last = id;
        head = undefined;
        given++;
        yield entry;
        this.#requireActive();
      }
    }
  }

  async count(selector: KvListSelector): Promise<number> {
    let count = 0;
    for await (const _ of this.list(selector)) count++;
    return count;
  }

  set(key: KvKey, value: unknown, options?: { expireIn?: number }): this {
    return this.#write(key, true, (operation) => operation.set(key, value, options));
  }

  delete(key: KvKey): this {
    return this.#write(key, true, (operation) => operation.delete(key));
  }

  sum(key: KvKey, n: Operand, options?: KvSumOptions): this {
    return this.#write(key, false, (operation) => operation.sum(key, n, options));
  }

  min(key: KvKey, n: Operand): this {
    return this.#write(key, false, (operation) => operation.min(key, n));
  }

  max(key: KvKey, n: Operand): this {
    return this.#write(key, false, (operation) => operation.max(key, n));
  }

  append(key: KvKey, items: readonly unknown[]): this {
    return this.#write(key, false, (operation) => operation.append(key, items));
  }

  prepend(key: KvKey, items: readonly unknown[]): this {
    return this.#write(key, false, (operation) => operation.prepend(key, items));
  }

  touch(key: KvKey, options: { expireIn: number }): this {
    return this.#write(key, false, (operation) => operation.touch(key, options));
  }

  persist(key: KvKey): this {
    return this.#write(key, false, (operation) => operation.persist(key));
  }

  mutate(...mutations: KvMutation[]): this {
    for (const mutation of mutations) {
      const { key, type } = mutation;
      const blind = type === "set" || type === "delete";
      this.#write(key, blind, (operation) => operation.mutate(mutation));
    }
    return this;
  }

  enqueue(value: unknown, options?: Parameters<AtomicOperation["enqueue"]>[1]): this {
    this.#requireActive();
    this.#operation.enqueue(value, options);
    return this;
  }

  /** Adds a mutation of a key; `blind`: what it leaves does not depend on what was there. */
  #write(key: KvKey, blind: boolean, record: (operation: AtomicOperation) => unknown): this {
    this.#requireActive();
    // Under a key that the commit completes, nobody can read before it.
    const id = isSuffixed(key) || hasPlaceholder(key) ? null : bytesOf(key);
    const segments = segmentsOf(this.#operation);
    const count = segments.length;
    record(this.#operation);
    if (id !== null && segments.length > count) {
      this.#pending.add(id, blind, segments[segments.length - 1]);
    }
    return this;
  }

  #requireActive(): void {
    if (this.#ended) {
      throw new TypeError(
        "The transaction has ended: use tx only inside the function given to kv.transaction, " +
          "and await what it does there",
      );
    }
  }

  static {
    isBroken = (tx) => tx.#reads.broken;
    end = (tx) => {
      tx.#ended = true;
    };
    commit = (tx) => {
      const checks = tx.#reads.checks();
      if (checks !== null) segmentsOf(tx.#operation).unshift(checks);
      return tx.#operation.commit();
    };
  }
}

function entryOf({ key, value }: OwnEntry): Maybe {
  return { key, value, versionstamp: null };
}

/** The bytes of a key, one character a byte. */
function bytesOf(key: KvKey): string {
  const writer = new Writer(KEY_BYTES);
  encodeKey(writer, key);
  return writer.buf.toString("latin1", 0, writer.pos);
}

function hasPlaceholder(key: KvKey): boolean {
  if (!Array.isArray(key)) return false;
  return key.some((part) => typeof part === "object" && part !== null && isPlaceholder(part));
}

const isPlaceholder = (part: object): boolean => KvUuidV7.numberOf(part) !== undefined;

function keyOf(id: string): KvKey {
  const bytes = Buffer.from(id, "latin1");
  return decodeKey(bytes, 0, bytes.length);
}

/** Room for most keys. */
const KEY_BYTES = 128;

function told(given: unknown): string {
  return typeof given === "number" ? String(given) : nameOf(given);
}
