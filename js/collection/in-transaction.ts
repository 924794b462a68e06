// Duty: a collection in a transaction: what it writes is in the commit of the transaction.

import { checkOptions, shown } from "../arguments/check.js";
import { KvConflictError, invalid } from "../model/errors.js";
import { printKey } from "../codec/key-text.js";
import { type Definition, type Prepared, isObject, keyOf, prepare, present } from "./definition.js";
import { type Document, type Entry, type Reader, type Source, isAbsent } from "./documents.js";
import { CollectionReads } from "./reads.js";
import { refusePromise } from "./schema.js";
import type { KvEntryKey, KvExpireOptions } from "../model/types.js";

/** The methods of a transaction that write. */
export interface Writer extends Reader {
  set(key: KvEntryKey, value: unknown, options?: KvExpireOptions): unknown;
  delete(key: KvEntryKey): unknown;
}

const EXPIRY = ["expireIn", "expireAt"] as const;
/** The options of each method that writes. */
const OPTIONS = {
  insert: ["id", ...EXPIRY],
  insertMany: EXPIRY,
  upsert: ["id", "expectedVersion", ...EXPIRY],
  replace: ["expectedVersion", ...EXPIRY],
  update: ["expectedVersion", ...EXPIRY],
  delete: ["expectedVersion"],
} as const;

export interface WriteOptions {
  readonly id: unknown;
  readonly expectedVersion: unknown;
  /** What `set` takes. */
  readonly expiry: KvExpireOptions;
}

export function checkWrite(method: keyof typeof OPTIONS, options: unknown): WriteOptions {
  const given: Record<string, unknown> = checkOptions(method, options, OPTIONS[method]);
  const { id, expectedVersion, expireIn, expireAt } = given;
  if (expectedVersion !== undefined && typeof expectedVersion !== "string") {
    throw invalid(
      `${method}: expectedVersion must be the versionstamp of a document: received ${shown(expectedVersion)}`,
    );
  }
  return { id, expectedVersion, expiry: { expireIn, expireAt } as KvExpireOptions };
}

export class TransactionCollection extends CollectionReads {
  readonly #definition: Definition;
  readonly #tx: Writer;
  readonly #settle: Source["settle"];

  constructor(definition: Definition, tx: Writer, settle: Source["settle"]) {
    // The list of a transaction notes what was read.
    super(definition, { reader: tx, settle, firstNow: () => undefined });
    this.#definition = definition;
    this.#tx = tx;
    this.#settle = settle;
  }

  async insert(input: unknown, options?: unknown): Promise<Document> {
    const { id, expiry } = checkWrite("insert", options);
    await this.#settle();
    const prepared = prepare(this.#definition, "insert", input, id);
    if (!isAbsent(await this.#tx.get(prepared.key))) throw taken("insert", prepared.key);
    return this.#set(prepared, expiry);
  }

  async upsert(input: unknown, options?: unknown): Promise<Document> {
    const { id, expectedVersion, expiry } = checkWrite("upsert", options);
    await this.#settle();
    const prepared = prepare(this.#definition, "upsert", input, id);
    if (expectedVersion !== undefined) await this.#read("upsert", prepared.key, expectedVersion);
    return this.#set(prepared, expiry);
  }

  async replace(id: unknown, input: unknown, options?: unknown): Promise<Document | null> {
    const { expectedVersion, expiry } = checkWrite("replace", options);
    await this.#settle();
    const prepared = prepare(this.#definition, "replace", input, id);
    const entry = await this.#read("replace", prepared.key, expectedVersion);
    return isAbsent(entry) ? null : this.#set(prepared, expiry);
  }

  async update(id: unknown, change: unknown, options?: unknown): Promise<Document | null> {
    const { expectedVersion, expiry } = checkWrite("update", options);
    await this.#settle();
    const key = keyOf(this.#definition, "update", id);
    const entry = await this.#read("update", key, expectedVersion);
    if (isAbsent(entry)) return null;
    const old = present(this.#definition, "update", entry.value);
    const changed =
      typeof change === "function"
        ? refusePromise("update", "change", change(old))
        : merged(old, change);
    return this.#set(prepare(this.#definition, "update", changed, id), expiry);
  }

  async delete(id: unknown, options?: unknown): Promise<boolean> {
    const { expectedVersion } = checkWrite("delete", options);
    await this.#settle();
    const key = keyOf(this.#definition, "delete", id);
    if (isAbsent(await this.#read("delete", key, expectedVersion))) return false;
    this.#tx.delete(key);
    return true;
  }

  /** Reads an entry, which must have the expected version. */
  async #read(method: string, key: KvEntryKey, expected: unknown): Promise<Entry> {
    const entry = await this.#tx.get(key);
    if (expected === undefined || entry.versionstamp === expected) return entry;
    const found = isAbsent(entry) ? "there is none" : `it is ${entry.versionstamp}`;
    const message = `${method}: the document at ${printKey(key)} should be ${expected}: ${found}`;
    throw conflict(message, key);
  }

  #set({ stored, ...document }: Prepared, expiry: KvExpireOptions): Document {
    this.#tx.set(document.key, stored, expiry);
    return { ...document, versionstamp: null };
  }
}

function merged(old: unknown, change: unknown): unknown {
  if (!isObject(old) || !isObject(change)) {
    throw invalid(
      `update: a change has properties to add to a document with properties: received ${shown(change)}; ` +
        "write a function of the document for others",
    );
  }
  const value: Record<PropertyKey, unknown> = { ...old, ...change };
  for (const name of Object.keys(change)) if (change[name] === undefined) delete value[name];
  return value;
}

/** The error of an id that another document has. */
export function taken(method: string, key: KvEntryKey): KvConflictError {
  return conflict(`${method}: there is a document at ${printKey(key)} already`, key);
}

function conflict(message: string, key: KvEntryKey): KvConflictError {
  return new KvConflictError(message, { keys: [key], ranges: [], messages: [] });
}
