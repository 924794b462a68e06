// Duty: a collection of a handle: its reads, and its writes, each in a commit of its own.

import { checkOptions, shown } from "../arguments/check.js";
import { checkSignal } from "../arguments/signal.js";
import { bytesOf } from "../codec/key-bytes.js";
import { misuse } from "../model/errors.js";
import { readable } from "../model/readable.js";
import {
  type Definition,
  type Prepared,
  VERSION,
  define,
  keyOf,
  prepare,
  present,
} from "./definition.js";
import type { IndexHandle } from "./declared-indexes.js";
import { type Document, type Reader, type Source, documentOf } from "./documents.js";
import { TransactionCollection, type Writer, checkWrite, taken } from "./in-transaction.js";
import { CollectionReads } from "./reads.js";
import { notUnique } from "../session/violations.js";
import type {
  KvCallOptions,
  KvChanges,
  KvCommitRefusal,
  KvCommitResult,
  KvEntryKey,
  KvEntryMaybe,
  KvExpireOptions,
  KvKey,
} from "../model/types.js";

/** The methods of a handle that a collection calls. */
export interface Handle extends Reader, IndexHandle {
  atomic(): Operation;
  transaction<T>(
    run: (tx: any) => Promise<T>,
    options?: KvCallOptions,
  ): Promise<KvCommitResult & { value: T }>;
  watch(watched: any, options?: object): ReadableStream<any>;
}

/** The methods of an atomic operation that insert. */
export interface Operation {
  check(check: { key: KvEntryKey; versionstamp: null }): Operation;
  set(key: KvEntryKey, value: unknown, options?: KvExpireOptions): Operation;
  commit(): Promise<KvCommitResult | KvCommitRefusal>;
}

/** Documents of a step of {@link KvCollection.migrateAll}. */
const MIGRATED_DOCUMENTS = 100;

export let definitionOf: (collection: KvCollection) => Definition;

/** Whether `kv.collection` has made it. */
export function isCollection(given: unknown): given is KvCollection {
  return given instanceof KvCollection;
}

export class KvCollection extends CollectionReads {
  readonly #kv: Handle;
  readonly #definition: Definition;
  readonly #settle: Source["settle"];

  constructor(kv: Handle, firstNow: Source["firstNow"], prefix: KvKey, options: unknown) {
    const definition = define(prefix, options);
    const { indexes } = definition;
    const settle = () => indexes?.created(kv);
    super(definition, { reader: kv, settle, firstNow });
    this.#kv = kv;
    this.#definition = definition;
    this.#settle = settle;
  }

  static {
    definitionOf = (collection) => collection.#definition;
  }

  get prefix(): KvEntryKey {
    return [...this.#definition.prefix];
  }

  key(id: unknown): KvEntryKey {
    return keyOf(this.#definition, "key", id);
  }

  async ready(): Promise<void> {
    await this.#definition.indexes?.ready(this.#kv);
  }

  async insert(input: unknown, options?: unknown): Promise<Document> {
    const { id, expiry } = checkWrite("insert", options);
    const prepared = prepare(this.#definition, "insert", input, id);
    const [document] = await this.#insert("insert", [prepared], expiry);
    return document;
  }

  async insertMany(inputs: readonly unknown[], options?: unknown): Promise<Document[]> {
    const { expiry } = checkWrite("insertMany", options);
    if (!Array.isArray(inputs)) {
      throw misuse(`insertMany: an array of documents: received ${shown(inputs)}`);
    }
    const prepared = inputs.map((input) => prepare(this.#definition, "insertMany", input));
    return prepared.length === 0 ? [] : await this.#insert("insertMany", prepared, expiry);
  }

  async #insert(
    method: string,
    prepared: readonly Prepared[],
    expiry: KvExpireOptions,
  ): Promise<Document[]> {
    await this.#settle();
    const operation = this.#kv.atomic();
    const inserted = new Set<string>();
    for (const one of prepared) putInsert(operation, method, one, expiry, inserted);
    const result = await operation.commit();
    if (!result.ok && result.violations !== undefined) throw notUnique(result.violations);
    if (!result.ok) throw taken(method, prepared[result.failed[0]].key);
    const { versionstamp } = result;
    return prepared.map(({ id, key, value }) => ({ id, key, value, versionstamp }));
  }

  update(id: unknown, change: unknown, options?: unknown): Promise<Document | null> {
    return this.#commit((own) => own.update(id, change, options));
  }

  async upsert(input: unknown, options?: unknown): Promise<Document> {
    return (await this.#commit((own) => own.upsert(input, options)))!;
  }

  replace(id: unknown, input: unknown, options?: unknown): Promise<Document | null> {
    return this.#commit((own) => own.replace(id, input, options));
  }

  async delete(id: unknown, options?: unknown): Promise<boolean> {
    const { value } = await this.#kv.transaction((tx) => this.in(tx).delete(id, options));
    return value;
  }

  async #commit(
    write: (own: TransactionCollection) => Promise<Document | null>,
  ): Promise<Document | null> {
    const { value, versionstamp } = await this.#kv.transaction((tx) => write(this.in(tx)));
    return value && { ...value, versionstamp };
  }

  in(tx: Writer): TransactionCollection {
    return new TransactionCollection(this.#definition, tx, this.#settle);
  }

  watch(id: unknown, options: KvCallOptions = {}): ReadableStream<Document | null> {
    const states = this.#kv.watch([keyOf(this.#definition, "watch", id)], options);
    const one = ([entry]: readonly KvEntryMaybe<unknown>[]) =>
      documentOf(this.#definition, "watch", entry);
    return mapped(states, one);
  }

  changes(options: { since?: string | undefined } & KvCallOptions = {}): ReadableStream<object> {
    const { prefix } = this.#definition;
    const parts = prefix.length + 1;
    const batches = this.#kv.watch({ prefix }, options);
    const own = ({ changes, ...rest }: KvChanges) => {
      const documents = changes
        .filter(({ key }) => key.length === parts)
        .map((change) => ({
          ...change,
          id: change.key[parts - 1],
          value:
            change.type === "set"
              ? present(this.#definition, "changes", change.value)
              : change.value,
        }));
      // The end of the present documents is told even if there are none.
      if (documents.length === 0 && rest.initial !== "last") return undefined;
      return { ...rest, changes: documents };
    };
    return mapped(batches, own);
  }

  async migrateAll(options?: object): Promise<{ migrated: number }> {
    const given = checkOptions("migrateAll", options, ["onProgress", "signal"]);
    const { onProgress } = given;
    const signal = checkSignal("migrateAll", given.signal);
    if (onProgress !== undefined && typeof onProgress !== "function") {
      throw misuse(`migrateAll: onProgress must be a function: received ${shown(onProgress)}`);
    }
    signal?.throwIfAborted();
    const { prefix, version } = this.#definition;
    let migrated = 0;
    await this.#settle();
    if (version === 1) return { migrated };
    const where = { $not: { [VERSION]: { $gte: version } } };
    for (;;) {
      signal?.throwIfAborted();
      const chosen = { where, depth: 1, limit: MIGRATED_DOCUMENTS, withExpiry: true };
      const { value } = await this.#kv.transaction(
        async (tx) => {
          let count = 0;
          for await (const { key, value: stored, expireAt } of tx.list({ prefix }, chosen)) {
            const document = present(this.#definition, "migrateAll", stored);
            const id = key[key.length - 1];
            const written = prepare(this.#definition, "migrateAll", document, id);
            tx.set(key, written.stored, expireAt === null ? {} : { expireAt });
            count++;
          }
          return count;
        },
        { signal },
      );
      if (value === 0) return { migrated };
      migrated += value;
      await onProgress?.({ migrated });
    }
  }
}

/**
 * Adds the insertion of a document to an atomic operation. `inserted` has the keys that the operation inserts: their checks
 * are met before the commit, and do not see each other.
 */
function putInsert(
  operation: Operation,
  method: string,
  { key, stored }: Prepared,
  expiry: KvExpireOptions,
  inserted: Set<string>,
): void {
  const bytes = bytesOf(key);
  if (inserted.has(bytes)) throw taken(method, key);
  inserted.add(bytes);
  operation.check({ key, versionstamp: null });
  operation.set(key, stored, expiry);
}

/** Adds the insertion of a document of a collection to an atomic operation. */
export function insertBy(
  operation: Operation,
  collection: unknown,
  input: unknown,
  options: unknown,
  inserted: Set<string>,
): void {
  if (!isCollection(collection)) {
    throw misuse(
      `atomic().insert: expected a collection of kv.collection(): received ${shown(collection)}`,
    );
  }
  const { id, expiry } = checkWrite("insert", options);
  const prepared = prepare(definitionOf(collection), "insert", input, id);
  putInsert(operation, "insert", prepared, expiry, inserted);
}

/** What `map` makes of a stream, without what it makes `undefined` of. It reads nothing ahead. */
function mapped<From, To>(
  stream: ReadableStream<From>,
  map: (from: From) => To | undefined,
): ReadableStream<To> {
  const reader = stream.getReader();
  return readable<To>({
    async pull(mappings) {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return mappings.close();
        let made: To | undefined;
        try {
          made = map(value);
        } catch (error) {
          reader.cancel(error).catch(() => {});
          throw error;
        }
        if (made !== undefined) return mappings.enqueue(made);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
