// Duty: the argument of the function of a transaction: reads that enter the read set and show its own
// writes, and writes that are collected for the commit.
// Invariant: the result of a read is in the read set before its promise resolves.

import { misuse } from "../model/errors.js";
import { AtomicOperation, isEmpty, segmentsOf } from "../atomic/atomic.js";
import { checkConsistency, checkOptions, missingValue, noKeys } from "../arguments/check.js";
import { NativePromise } from "../model/native-promise.js";
import type { Conflict } from "../model/errors.js";
import { option } from "../arguments/options.js";
import { KvUuidV7 } from "../codec/uuid.js";
import { bytesOf, keyOf } from "../codec/key-bytes.js";
import { COUNT_OPTIONS } from "../read/list-options.js";
import { pageOf } from "../read/paginate.js";
import { type OwnEntry, Pending } from "./pending.js";
import { checkSelector } from "../read/range.js";
import { checkReads } from "./check-reads.js";
import { ReadSet } from "./read-set.js";
import { getLater, getManyLater, getManyNow, getNow, requireKey } from "../read/reads.js";
import { isSuffixed } from "../records/records.js";
import type { Session } from "../session/session.js";
import { lost, requireLease } from "../lease/held-lease.js";
import { type MessageLock, lockOf } from "../queue/message-lock.js";
import { abortable, abortablePage } from "../arguments/signal.js";
import { type ListedTransaction, TransactionList } from "./transaction-list.js";
import type {
  KvCommitRefusal,
  KvCommitResult,
  KvConsistencyLevel,
  KvExpireOptions,
  KvFilter,
  KvKey,
  KvListSelector,
  KvMutation,
  KvPageOptions,
  KvPaginateOptions,
  KvSumOptions,
  KvTransaction,
  KvTransactionEntryMaybe,
  KvU64,
} from "../model/types.js";

interface ReadOptions {
  consistency?: KvConsistencyLevel | undefined;
  signal?: AbortSignal | undefined;
}

const READ_OPTIONS = ["consistency", "signal"] as const;
/** What a transaction reads is checked by its commit, so it must not be old. */
const STRONG = { consistency: "strong" } as const;

type Operand = bigint | number | KvU64;
type Maybe = KvTransactionEntryMaybe<any>;

/** Whether two reads of one key returned different entries. */
export let isBroken: (tx: Transaction) => boolean;
/** The changes of other writers, by the numbers of the failed checks. */
export let conflictOf: (tx: Transaction, failed: readonly number[]) => Conflict;
/** Ends it: later reads and writes are refused. */
export let end: (tx: Transaction) => void;
/** Commits the writes under checks of the read set; once, after its end. */
export let commit: (tx: Transaction) => Promise<KvCommitResult | KvCommitRefusal>;

export class Transaction implements KvTransaction {
  readonly #session: Session;
  readonly #operation: AtomicOperation;
  readonly #reads: ReadSet;
  readonly #pending: Pending;
  /** Entries that were read, by the bytes of their keys. */
  readonly #entries = new Map<string, Promise<Maybe>>();
  /** The locks of the messages that the commit acknowledges. */
  readonly #locks: MessageLock[] = [];
  #ended = false;

  constructor(session: Session) {
    this.#session = session;
    this.#operation = new AtomicOperation(session);
    this.#reads = new ReadSet(session.limits);
    this.#pending = new Pending(session, this.#reads);
  }

  async get(key: KvKey, options?: ReadOptions): Promise<Maybe> {
    this.#requireActive();
    if (options != null && option(options, "signal") !== undefined) {
      return await abortable("tx.get", options, (rest) => this.get(key, rest));
    }
    checkConsistency(checkOptions("tx.get", options, READ_OPTIONS).consistency);
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
    const entry = getNow(session, key, STRONG) ?? (await getLater(session, key, STRONG));
    this.#reads.read(id, entry.versionstamp);
    return entry;
  }

  async getMany(keys: readonly KvKey[], options?: ReadOptions): Promise<any> {
    this.#requireActive();
    if (options != null && option(options, "signal") !== undefined) {
      return await abortable("tx.getMany", options, (rest) => this.getMany(keys, rest));
    }
    checkConsistency(checkOptions("tx.getMany", options, READ_OPTIONS).consistency);
    if (!Array.isArray(keys)) throw noKeys("tx.getMany", keys);
    const ids = keys.map((key) => bytesOf(requireKey(key)));
    const known = (id: string) => this.#pending.has(id) || this.#entries.has(id);
    const missing = [...new Set(ids.filter((id) => !known(id)))];
    const entries = missing.length > 0 ? this.#readMany(missing) : null;
    missing.forEach((id, i) =>
      this.#entries.set(
        id,
        entries!.then((read) => read[i]),
      ),
    );
    return await NativePromise.all(
      ids.map(async (id) =>
        this.#pending.has(id) ? entryOf(await this.#pending.entry(id)) : this.#entries.get(id),
      ),
    );
  }

  async #readMany(ids: readonly string[]): Promise<Maybe[]> {
    const keys = ids.map(keyOf);
    const session = this.#session;
    const entries =
      getManyNow(session, keys, STRONG) ?? (await getManyLater(session, keys, STRONG));
    entries.forEach((entry, i) => this.#reads.read(ids[i], entry.versionstamp));
    return entries;
  }

  list(selector: KvListSelector, options?: unknown): any {
    return this.#list(selector, options, "tx.list");
  }

  #list(selector: KvListSelector, options: unknown, method: string): TransactionList {
    this.#requireActive();
    const listed: ListedTransaction = {
      session: this.#session,
      reads: this.#reads,
      pending: this.#pending,
      requireActive: () => this.#requireActive(),
      know: (id, entry) => {
        if (!this.#entries.has(id)) this.#entries.set(id, NativePromise.resolve(entry));
      },
    };
    return new TransactionList(listed, selector, options, method);
  }

  async count(
    selector: KvListSelector,
    options?: { where?: KvFilter<any> | undefined; signal?: AbortSignal | undefined },
  ): Promise<number> {
    return await abortable("tx.count", options, (rest, signal) =>
      this.#count(selector, rest, signal),
    );
  }

  async #count(
    selector: KvListSelector,
    options: unknown,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const chosen = checkOptions("tx.count", options, COUNT_OPTIONS);
    checkSelector("tx.count", selector, COUNT_OPTIONS);
    let count = 0;
    const counted = this.#list(selector, { ...chosen, keysOnly: true, signal }, "tx.count");
    for await (const _ of counted) count++;
    return count;
  }

  paginate(
    selector: KvListSelector | KvPaginateOptions<any>,
    options?: KvPageOptions<any>,
  ): Promise<any> {
    const method = "tx.paginate";
    return abortablePage(method, selector, options, (given, rest, signal) =>
      pageOf(method, given, rest, (checked, page) =>
        this.#list(checked, { ...page, signal }, method),
      ),
    );
  }

  set(key: KvKey, value: unknown, options?: KvExpireOptions): this {
    if (arguments.length < 2) throw missingValue("tx.set");
    return this.#write(key, true, (operation) => operation.set(key, value, options));
  }

  delete(key: KvKey): this {
    return this.#write(key, true, (operation) => operation.delete(key));
  }

  sum(key: KvKey, n: Operand, options?: KvSumOptions): this {
    return this.#write(key, false, (operation) => operation.sum(key, n, options));
  }

  min(key: KvKey, n: Operand, options?: KvExpireOptions): this {
    return this.#write(key, false, (operation) => operation.min(key, n, options));
  }

  max(key: KvKey, n: Operand, options?: KvExpireOptions): this {
    return this.#write(key, false, (operation) => operation.max(key, n, options));
  }

  append(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this {
    return this.#write(key, false, (operation) => operation.append(key, items, options));
  }

  prepend(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this {
    return this.#write(key, false, (operation) => operation.prepend(key, items, options));
  }

  touch(key: KvKey, options: KvExpireOptions): this {
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

  schedule(name: unknown, timing: unknown, value: unknown, options?: unknown): this {
    this.#requireActive();
    this.#operation.schedule(name, timing, value, options);
    return this;
  }

  unschedule(name: unknown, options?: unknown): this {
    this.#requireActive();
    this.#operation.unschedule(name, options);
    return this;
  }

  ack(...messages: unknown[]): this {
    this.#requireActive();
    const locks = messages.map((message) => lockOf("tx.ack", message));
    this.#operation.ack(...messages);
    this.#locks.push(...locks);
    return this;
  }

  async checkLease(lease: unknown): Promise<void> {
    const { key, token } = requireLease("tx.checkLease", lease);
    const { versionstamp } = await this.get(key);
    if (versionstamp !== token)
      throw lost("tx.checkLease", key, "its entry is not that of the lease");
  }

  /** Adds a mutation of a key; `blind`: its result does not depend on the stored entry. */
  #write(key: KvKey, blind: boolean, record: (operation: AtomicOperation) => unknown): this {
    this.#requireActive();
    // A key that the commit completes cannot be read before the commit.
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
      throw misuse(
        "The transaction has ended: use tx only inside the function given to kv.transaction, " +
          "and await what it does there",
      );
    }
  }

  static {
    isBroken = (tx) => tx.#reads.broken;
    conflictOf = (tx, failed) => {
      const checks = tx.#reads.count;
      const lost = failed.filter((at) => at >= checks).map((at) => tx.#locks[at - checks]);
      const read = tx.#reads.conflict(failed.filter((at) => at < checks));
      return { ...read, messages: [...new Set(lost.map(({ id }) => String(id)))] };
    };
    end = (tx) => {
      tx.#ended = true;
    };
    commit = (tx) => {
      const checks = tx.#reads.checks();
      if (isEmpty(tx.#operation)) return checkReads(tx.#session, tx.#operation, checks);
      if (checks !== null) segmentsOf(tx.#operation).unshift(checks);
      return tx.#operation.commit();
    };
  }
}

function entryOf({ key, value }: OwnEntry): Maybe {
  return { key, value, versionstamp: null };
}

function hasPlaceholder(key: KvKey): boolean {
  if (!Array.isArray(key)) return false;
  return key.some((part) => typeof part === "object" && part !== null && isPlaceholder(part));
}

const isPlaceholder = (part: object): boolean => KvUuidV7.numberOf(part) !== undefined;
