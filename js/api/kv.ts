// Duty: class Kv: the methods that users call; each calls the function of its capability.

import { AbortableList } from "../read/abortable-list.js";
import { AtomicOperation } from "../atomic/atomic.js";
import { KvUuidV7, MAKES_UUID } from "../codec/uuid.js";
import { missingValue } from "../arguments/check.js";
import { COMMITS, READS, TRANSACTIONS } from "../instruments/channels.js";
import { KvCollection } from "../collection/collection.js";
import { firstNow } from "../read/first.js";
import { TypedKeys } from "../collection/typed-keys.js";
import { count } from "../read/count.js";
import { explain } from "../read/explain.js";
import { deleteMany } from "../write/delete-many.js";
import { type GetOptions, get, getMany } from "../read/get.js";
import { option } from "../arguments/options.js";
import { persist, touch, ttl } from "../write/expiry.js";
import { archive } from "../maintenance/archive.js";
import { backup, integrityCheck } from "../maintenance/backup.js";
import { isSelector } from "../watch/feed.js";
import { changes } from "../watch/present.js";
import { checkWhen } from "../arguments/moment.js";
import { history } from "../read/history.js";
import { KvListIterator } from "../read/list.js";
import { KvQueue } from "../queue/named-queue.js";
import { KvReplica } from "../read/replica.js";
import { lease } from "../lease/acquire.js";
import type { KvLease } from "../lease/held-lease.js";
import { KvLimiter } from "../limiter/limiter.js";
import { once } from "../once/once.js";
import { listenQueue } from "../queue/deno-queue.js";
import { paginate } from "../read/paginate.js";
import { checkpoint, metrics, stats, vacuum } from "../maintenance/maintain.js";
import { getManySync, getSync } from "../read/read-sync.js";
import { COMMIT_VERSIONSTAMP } from "../records/records.js";
import { closedError, misuse } from "../model/errors.js";
import { search } from "../search/search.js";
import { createIndex, dropIndex, listIndexes } from "../search/search-index.js";
import { Session } from "../session/session.js";
import { abortable, abortablePage, checkSignal, signalled } from "../arguments/signal.js";
import { NativePromise } from "../model/native-promise.js";
import { defineProperty } from "../model/define.js";
import type {
  KvArchive,
  KvArchiveOptions,
  KvBackup,
  KvBackupOptions,
  KvCallOptions,
  KvChanges,
  KvCommitRefusal,
  KvCommitResult,
  KvEnqueueResult,
  KvConsistencyLevel,
  KvDeleteManyOptions,
  KvEnqueueOptions,
  KvEntryMaybe,
  KvExpireOptions,
  KvExplanation,
  KvFilter,
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
  KvVersion,
  KvValueIndexInfo,
  KvValueIndexOptions,
} from "../model/types.js";
import { transaction } from "../transaction/transaction.js";
import { watch } from "../watch/watch.js";
import { enqueue, remove, set } from "../write/writes.js";

/** Node 20 lacks the symbols; polyfills of `using` define them under these names. */
const DISPOSE: symbol = Symbol.dispose ?? Symbol.for("nodejs.dispose");
const ASYNC_DISPOSE: symbol = Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose");

export class Kv {
  readonly #session: Session;
  /** Resolves when the database is closed, after a call of close(). */
  #closed: Promise<void> = NativePromise.resolve();

  #replica: KvReplica | null = null;

  constructor(session: Session) {
    if (!(session instanceof Session)) {
      throw misuse("Kv can not be constructed: use openKv instead");
    }
    this.#session = session;
  }

  get(key: KvKey, options?: GetOptions): Promise<any> {
    const session = this.#session;
    return READS.isObserved
      ? READS.observe(session, "get", { key }, get, session, key, options)
      : get(session, key, options);
  }

  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: GetOptions,
  ): Promise<any> {
    const session = this.#session;
    return READS.isObserved
      ? READS.observe(session, "getMany", { keys }, getMany, session, keys, options)
      : getMany(session, keys, options);
  }

  #abortableDelete(key: KvKey, options: KvCallOptions): Promise<void> {
    return signalled("kv.delete", options, () => remove(this.#session, key));
  }

  getSync<T = unknown>(
    key: KvKey,
    options?: { consistency?: KvConsistencyLevel | undefined },
  ): KvEntryMaybe<T> {
    const session = this.#session;
    if (!READS.isObserved) return getSync(session, key, options) as KvEntryMaybe<T>;
    const event = { operation: "getSync", database: session.database, synchronous: true, key };
    return READS.traceSync(event, getSync, session, key, options) as KvEntryMaybe<T>;
  }

  getManySync<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: KvConsistencyLevel | undefined },
  ): { [K in keyof T]: KvEntryMaybe<T[K]> } {
    type Entries = { [K in keyof T]: KvEntryMaybe<T[K]> };
    const session = this.#session;
    if (!READS.isObserved) return getManySync(session, keys, options) as Entries;
    const event = { operation: "getManySync", database: session.database, synchronous: true, keys };
    return READS.traceSync(event, getManySync, session, keys, options) as Entries;
  }

  set(
    key: KvKey,
    value: unknown,
    options?: KvExpireOptions & KvCallOptions,
  ): Promise<KvCommitResult> {
    if (arguments.length < 2) return NativePromise.reject(missingValue("kv.set"));
    const session = this.#session;
    return COMMITS.isObserved
      ? COMMITS.observe(session, "set", { key }, set, session, key, value, options)
      : set(session, key, value, options);
  }

  // The default keeps `delete.length` at 1, as in Deno.
  delete(key: KvKey, options: KvCallOptions | undefined = undefined): Promise<void> {
    return COMMITS.isObserved ? this.#observedDelete(key, options) : this.#delete(key, options);
  }

  #observedDelete(key: KvKey, options: KvCallOptions | undefined): Promise<void> {
    const run = () => this.#delete(key, options);
    return COMMITS.observe(this.#session, "delete", { key }, run);
  }

  #delete(key: KvKey, options: KvCallOptions | undefined): Promise<void> {
    // As in Deno: options that are not an object are ignored.
    if (typeof options !== "object" || options === null) return remove(this.#session, key);
    return this.#abortableDelete(key, options);
  }

  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<any> = {},
  ): KvListIterator<T, any> {
    const session = this.#session;
    const signal = options == null ? undefined : checkSignal("kv.list", option(options, "signal"));
    return signal === undefined
      ? new KvListIterator<T, any>(session, selector, options)
      : new AbortableList<T, any>(session, selector, options, signal);
  }

  count(
    selector: KvListSelector,
    options?: { where?: KvFilter<any> | undefined; signal?: AbortSignal | undefined },
  ): Promise<number> {
    const run = () =>
      abortable("kv.count", options, (rest, signal) =>
        count(this.#session, selector, rest, signal),
      );
    return READS.isObserved ? READS.observe(this.#session, "count", { selector }, run) : run();
  }

  explain(selector: KvListSelector, options?: KvListOptions<any>): Promise<KvExplanation> {
    const run = () =>
      abortable("kv.explain", options, (rest, signal) =>
        explain(this.#session, selector, rest, signal),
      );
    return READS.isObserved ? READS.observe(this.#session, "explain", { selector }, run) : run();
  }

  paginate<T = unknown>(
    selector: KvListSelector | KvPaginateOptions<any>,
    options?: KvPageOptions<any>,
  ): Promise<KvPage<T>> {
    const run = () =>
      abortablePage("kv.paginate", selector, options, (checked, rest, signal) =>
        paginate<T>(this.#session, checked, rest, signal),
      );
    return READS.isObserved ? READS.observe(this.#session, "paginate", { selector }, run) : run();
  }

  deleteMany(
    which: readonly KvKey[] | KvKey | KvListSelector,
    options?: KvDeleteManyOptions<any>,
  ): Promise<{ count: number; versionstamp: string | null }> {
    const run = () =>
      abortable("kv.deleteMany", options, (rest, signal) =>
        deleteMany(this.#session, which, rest, signal),
      );
    return COMMITS.isObserved
      ? COMMITS.observe(this.#session, "deleteMany", { which }, run)
      : run();
  }

  get replica(): KvReplica | null {
    if (!this.#session.replica) return null;
    return (this.#replica ??= new KvReplica(this.#session));
  }

  atomic(): AtomicOperation {
    return new AtomicOperation(this.#session);
  }

  enqueue(value: unknown, options?: KvEnqueueOptions & KvCallOptions): Promise<KvEnqueueResult> {
    return abortable("kv.enqueue", options, (rest) => enqueue(this.#session, value, rest));
  }

  queue(...[name = "default", options]: [name?: string, options?: object]): KvQueue {
    return new KvQueue(this.#session, name, options);
  }

  // The default keeps `listenQueue.length` at 1, as in Deno.
  listenQueue(
    handler: (value: any) => void | Promise<void>,
    options: KvCallOptions | undefined = undefined,
  ): Promise<void> {
    // As in Deno: options that are not an object are ignored.
    const given = typeof options === "object" ? options : undefined;
    return listenQueue(this.#session, handler, given);
  }

  watch<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { raw?: boolean | undefined; signal?: AbortSignal | undefined },
  ): ReadableStream<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;
  watch<T = unknown>(
    selector: KvListSelector,
    options?: { since?: string | undefined; signal?: AbortSignal | undefined },
  ): ReadableStream<KvChanges<T>>;
  watch(
    watched: readonly KvKey[] | KvListSelector,
    // The default keeps `watch.length` at 1, as in Deno.
    options: {
      raw?: boolean | undefined;
      since?: string | undefined;
      initial?: boolean | undefined;
      signal?: AbortSignal | undefined;
    } = {},
  ): ReadableStream<any> {
    return isSelector(watched)
      ? changes(this.#session, watched, options)
      : watch(this.#session, watched, options);
  }

  commitVersionstamp(): symbol {
    return COMMIT_VERSIONSTAMP;
  }

  uuidv7(): KvUuidV7 {
    return new KvUuidV7(MAKES_UUID);
  }

  ttl(key: KvKey, options?: KvCallOptions): Promise<{ expireAt: Date } | null> {
    return signalled("kv.ttl", options, () => ttl(this.#session, key));
  }

  touch(
    key: KvKey,
    options: KvExpireOptions & KvCallOptions,
  ): Promise<KvCommitResult | KvCommitRefusal> {
    const run = () => abortable("kv.touch", options, (rest) => touch(this.#session, key, rest));
    return COMMITS.isObserved ? COMMITS.observe(this.#session, "touch", { key }, run) : run();
  }

  persist(key: KvKey, options?: KvCallOptions): Promise<KvCommitResult | KvCommitRefusal> {
    const run = () => signalled("kv.persist", options, () => persist(this.#session, key));
    return COMMITS.isObserved ? COMMITS.observe(this.#session, "persist", { key }, run) : run();
  }

  createIndex(options: KvIndexOptions | KvValueIndexOptions): Promise<any> {
    return abortable("kv.createIndex", options, (rest) => createIndex(this.#session, rest));
  }

  collection(prefix: KvKey, options: unknown): any {
    const first = firstNow.bind(null, this.#session);
    return new KvCollection(this, first, prefix, options);
  }

  schema(collections: Record<string, unknown>): any {
    return new TypedKeys(this, collections);
  }

  listIndexes(options?: KvCallOptions): Promise<(KvIndexInfo | KvValueIndexInfo)[]> {
    return signalled("kv.listIndexes", options, (signal) => listIndexes(this.#session, signal));
  }

  dropIndex(prefix: KvKey | string, options?: KvCallOptions): Promise<boolean> {
    return signalled("kv.dropIndex", options, () => dropIndex(this.#session, prefix));
  }

  search<T = unknown>(
    prefix: KvKey,
    query: string,
    options?: KvSearchOptions<any>,
  ): Promise<KvSearchResult<T>> {
    const run = () =>
      abortable(
        "kv.search",
        options,
        (rest, signal) =>
          search(this.#session, prefix, query, rest, signal) as Promise<KvSearchResult<T>>,
      );
    return READS.isObserved ? READS.observe(this.#session, "search", { prefix }, run) : run();
  }

  transaction<T>(
    run: (tx: KvTransaction) => T | Promise<T>,
    options?: KvTransactionOptions,
  ): Promise<KvTransactionResult<T>> {
    const session = this.#session;
    return TRANSACTIONS.isObserved
      ? TRANSACTIONS.observe(session, "transaction", {}, transaction<T>, session, run, options)
      : transaction(session, run, options);
  }

  lease(key: KvKey, options?: object): Promise<any> {
    return lease(this.#session, key, options);
  }

  limiter(key: KvKey, options: object): KvLimiter {
    return new KvLimiter(this.#session, key, options);
  }

  once<T>(
    key: KvKey,
    run: (lease: KvLease) => T | Promise<T>,
    options?: object,
  ): Promise<Awaited<T>> {
    return once<T>(this.#session, key, run, options) as Promise<Awaited<T>>;
  }

  stats(options?: {
    entries?: boolean | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<KvStats> {
    return abortable("kv.stats", options, (rest, signal) => stats(this.#session, rest, signal));
  }

  metrics(options: { format: "prometheus"; signal?: AbortSignal | undefined }): Promise<string>;
  metrics(options?: {
    format?: "object" | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<KvMetrics>;
  metrics(options?: {
    format?: string | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<KvMetrics | string> {
    return abortable("kv.metrics", options, (rest, signal) => metrics(this.#session, rest, signal));
  }

  vacuum(options?: KvCallOptions): Promise<{ beforeBytes: number; afterBytes: number }> {
    return signalled("kv.vacuum", options, (signal) => vacuum(this.#session, signal));
  }

  checkpoint(options?: KvCallOptions): Promise<{ logPages: number; movedPages: number }> {
    return signalled("kv.checkpoint", options, () => checkpoint(this.#session));
  }

  backup(path: string, options?: KvBackupOptions): Promise<KvBackup> {
    return backup(this.#session, path, options);
  }

  archive(options: KvArchiveOptions): Promise<KvArchive> {
    return archive(this.#session, options);
  }

  check(options?: KvCallOptions): Promise<{ ok: boolean; findings: string[] }> {
    return signalled("kv.check", options, (signal) => integrityCheck(this.#session, signal));
  }

  at(when: Date | string, options?: KvCallOptions): Promise<Kv> {
    const open = async () => new Kv(await this.#session.at(checkWhen(when)));
    return signalled("kv.at", options, open, (kv) => void kv.#session.close());
  }

  history<T = unknown>(
    key: KvKey,
    options?: {
      limit?: number | undefined;
      before?: string | undefined;
      signal?: AbortSignal | undefined;
    },
  ): AsyncIterableIterator<KvVersion<T>> {
    return history(this.#session, key, options);
  }

  close(): Promise<void> {
    if (this.#session.closed) throw closedError();
    return (this.#closed = this.#session.close());
  }

  #dispose(): Promise<void> {
    if (this.#session.closed) return this.#closed;
    this.#session.disposed = true;
    return (this.#closed = this.#session.close());
  }

  static {
    const define = (name: symbol, value: (this: Kv) => unknown) =>
      defineProperty(this.prototype, name, { value, writable: true, configurable: true });
    define(DISPOSE, function dispose() {
      const isOpen = !this.#session.closed;
      void this.#dispose();
      if (isOpen) this.#session.port.native.waitClosed(false);
    });
    define(ASYNC_DISPOSE, async function asyncDispose() {
      await this.#dispose();
    });
  }
}

export interface Kv {
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}
