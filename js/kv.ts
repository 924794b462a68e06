// Duty: class Kv: the methods that users call, each one line to the file of its verb.

import { AtomicOperation } from "./atomic.js";
import { KvUuidV7, MAKES_UUID } from "./codec/uuid.js";
import { missingValue } from "./check.js";
import { count } from "./count.js";
import { deleteMany } from "./delete-many.js";
import { asksForExpiry, getEntries } from "./entries.js";
import { persist, touch, ttl } from "./expiry.js";
import { backup, check } from "./custody.js";
import { feed, isSelector } from "./feed.js";
import { KvListIterator } from "./list.js";
import { KvQueue } from "./named-queue.js";
import { listenQueue } from "./queue.js";
import { paginate } from "./paginate.js";
import { metrics } from "./metrics.js";
import { checkpoint, stats, vacuum } from "./maintain.js";
import { getManySync, getSync } from "./read-sync.js";
import { getLater, getManyLater, getManyNow, getNow } from "./reads.js";
import { COMMIT_VERSIONSTAMP } from "./records.js";
import { closedError } from "./errors.js";
import { search } from "./search.js";
import { createIndex, dropIndex, listIndexes } from "./search-index.js";
import { Session } from "./session.js";
import type {
  KvBackup,
  KvBackupOptions,
  KvChanges,
  KvCommitRefusal,
  KvCommitResult,
  KvConsistencyLevel,
  KvDeleteManyOptions,
  KvEntryMaybe,
  KvExpireOptions,
  KvFilter,
  KvIndex,
  KvIndexInfo,
  KvIndexOptions,
  KvKey,
  KvListOptions,
  KvListSelector,
  KvMetrics,
  KvPage,
  KvPageOptions,
  KvPaginateOptions,
  KvSearchOptions,
  KvSearchResult,
  KvStats,
  KvTransaction,
  KvTransactionOptions,
  KvTransactionResult,
} from "./types.js";
import { transaction } from "./transaction.js";
import { watch } from "./watch.js";
import { enqueue, remove, set } from "./writes.js";

/** Node 20 lacks the symbols; whoever brings `using` to it looks them up under these names. */
const DISPOSE: symbol = Symbol.dispose ?? Symbol.for("nodejs.dispose");
const ASYNC_DISPOSE: symbol = Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose");

export class Kv {
  readonly #session: Session;

  constructor(session: Session) {
    if (!(session instanceof Session)) {
      throw new TypeError("Kv can not be constructed: use openKv instead");
    }
    this.#session = session;
  }

  async get<T = unknown>(
    key: KvKey,
    options?: { consistency?: KvConsistencyLevel; withExpiry?: boolean },
  ): Promise<any> {
    if (asksForExpiry(options)) return (await getEntries(this.#session, [key], options!))[0];
    const entry = getNow(this.#session, key, options);
    if (entry !== undefined) return entry as KvEntryMaybe<T>;
    return (await getLater(this.#session, key, options)) as KvEntryMaybe<T>;
  }

  async getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: KvConsistencyLevel; withExpiry?: boolean },
  ): Promise<any> {
    if (asksForExpiry(options)) return await getEntries(this.#session, keys, options!);
    const entries =
      getManyNow(this.#session, keys, options) ??
      (await getManyLater(this.#session, keys, options));
    return entries as { [K in keyof T]: KvEntryMaybe<T[K]> };
  }

  getSync<T = unknown>(
    key: KvKey,
    options?: { consistency?: KvConsistencyLevel },
  ): KvEntryMaybe<T> {
    return getSync(this.#session, key, options) as KvEntryMaybe<T>;
  }

  getManySync<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: KvConsistencyLevel },
  ): { [K in keyof T]: KvEntryMaybe<T[K]> } {
    return getManySync(this.#session, keys, options) as { [K in keyof T]: KvEntryMaybe<T[K]> };
  }

  set(
    key: KvKey,
    value: unknown,
    options?: KvExpireOptions,
  ): Promise<KvCommitResult> {
    if (arguments.length < 2) return Promise.reject(missingValue("kv.set"));
    return set(this.#session, key, value, options);
  }

  delete(key: KvKey): Promise<void> {
    return remove(this.#session, key);
  }

  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<any> = {},
  ): KvListIterator<T, any> {
    return new KvListIterator<T, any>(this.#session, selector, options);
  }

  count(selector: KvListSelector, options?: { where?: KvFilter<any> }): Promise<number> {
    return count(this.#session, selector, options);
  }

  paginate<T = unknown>(
    selector: KvListSelector | KvPaginateOptions<any>,
    options?: KvPageOptions<any>,
  ): Promise<KvPage<T>> {
    return paginate<T>(this.#session, selector, options);
  }

  deleteMany(
    which: readonly KvKey[] | KvListSelector,
    options?: KvDeleteManyOptions<any>,
  ): Promise<{ count: number; versionstamp: string | null }> {
    return deleteMany(this.#session, which, options);
  }

  atomic(): AtomicOperation {
    return new AtomicOperation(this.#session);
  }

  enqueue(
    value: unknown,
    options?: {
      delay?: number;
      keysIfUndelivered?: readonly KvKey[];
      backoffSchedule?: readonly number[];
    },
  ): Promise<KvCommitResult> {
    return enqueue(this.#session, value, options);
  }

  queue(...[name = "default", options]: [name?: string, options?: object]): KvQueue {
    return new KvQueue(this.#session, name, options);
  }

  listenQueue(handler: (value: any) => void | Promise<void>): Promise<void> {
    return listenQueue(this.#session, handler);
  }

  watch<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { raw?: boolean },
  ): ReadableStream<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;
  watch<T = unknown>(
    selector: KvListSelector,
    options?: { since?: string },
  ): ReadableStream<KvChanges<T>>;
  watch(
    watched: readonly KvKey[] | KvListSelector,
    // The default keeps `watch.length` at 1, as in Deno.
    options: { raw?: boolean; since?: string } = {},
  ): ReadableStream<any> {
    return isSelector(watched)
      ? feed(this.#session, watched, options)
      : watch(this.#session, watched, options);
  }

  commitVersionstamp(): symbol {
    return COMMIT_VERSIONSTAMP;
  }

  uuidv7(): KvUuidV7 {
    return new KvUuidV7(MAKES_UUID);
  }

  ttl(key: KvKey): Promise<{ expireAt: Date } | null> {
    return ttl(this.#session, key);
  }

  touch(key: KvKey, options: KvExpireOptions): Promise<KvCommitResult | KvCommitRefusal> {
    return touch(this.#session, key, options);
  }

  persist(key: KvKey): Promise<KvCommitResult | KvCommitRefusal> {
    return persist(this.#session, key);
  }

  createIndex(options: KvIndexOptions): Promise<KvIndex> {
    return createIndex(this.#session, options);
  }

  listIndexes(): Promise<KvIndexInfo[]> {
    return listIndexes(this.#session);
  }

  dropIndex(prefix: KvKey | string): Promise<boolean> {
    return dropIndex(this.#session, prefix);
  }

  search<T = unknown>(
    prefix: KvKey,
    query: string,
    options?: KvSearchOptions<any>,
  ): Promise<KvSearchResult<T>> {
    return search(this.#session, prefix, query, options) as Promise<KvSearchResult<T>>;
  }

  transaction<T>(
    run: (tx: KvTransaction) => T | Promise<T>,
    options?: KvTransactionOptions,
  ): Promise<KvTransactionResult<T>> {
    return transaction(this.#session, run, options);
  }

  stats(options?: { entries?: boolean }): Promise<KvStats> {
    return stats(this.#session, options);
  }

  metrics(options: { format: "prometheus" }): Promise<string>;
  metrics(options?: { format?: "object" }): Promise<KvMetrics>;
  metrics(options?: { format?: string }): Promise<KvMetrics | string> {
    return metrics(this.#session, options);
  }

  vacuum(): Promise<{ beforeBytes: number; afterBytes: number }> {
    return vacuum(this.#session);
  }

  checkpoint(): Promise<{ logPages: number; movedPages: number }> {
    return checkpoint(this.#session);
  }

  backup(path: string, options?: KvBackupOptions): Promise<KvBackup> {
    return backup(this.#session, path, options);
  }

  check(): Promise<{ ok: boolean; findings: string[] }> {
    return check(this.#session);
  }

  close(): void {
    if (this.#session.closed) throw closedError();
    this.#session.close();
  }

  #dispose(): void {
    if (this.#session.closed) return;
    this.#session.disposed = true;
    this.#session.close();
  }

  static {
    const define = (name: symbol, value: (this: Kv) => unknown) =>
      Object.defineProperty(this.prototype, name, { value, writable: true, configurable: true });
    define(DISPOSE, function dispose() {
      this.#dispose();
    });
    define(ASYNC_DISPOSE, async function asyncDispose() {
      this.#dispose();
    });
  }
}

export interface Kv {
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}
