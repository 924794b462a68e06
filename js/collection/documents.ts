// Duty: the documents of a collection that match, as an iterable that can be narrowed.
// Invariant: an object never changes; each narrowing is a new one.

import { checkOptions, shown } from "../arguments/check.js";
import { invalid } from "../model/errors.js";
import { type Definition, present } from "./definition.js";
import type { KvEntryKey, KvEntryKeyPart, KvListSelector } from "../model/types.js";

/** An entry of a handle or of a transaction. */
export interface Entry {
  readonly key: KvEntryKey;
  readonly value: unknown;
  readonly versionstamp: string | null;
}

/** The methods that read, of a handle or of a transaction. */
export interface Reader {
  get(key: KvEntryKey): Promise<Entry>;
  getMany(keys: KvEntryKey[]): Promise<Entry[]>;
  list(selector: KvListSelector, options: object): Listed;
  count(selector: KvListSelector, options: object): Promise<number>;
}

interface Listed extends AsyncIterableIterator<Entry, undefined> {
  /** Where a list goes on behind the entries so far. */
  readonly cursor: string;
}

export interface Document {
  readonly id: KvEntryKeyPart;
  readonly key: KvEntryKey;
  readonly value: unknown;
  readonly versionstamp: string | null;
}

/** The document of an entry; null for an absent one. */
export function documentOf(definition: Definition, method: string, entry: Entry): Document | null {
  if (isAbsent(entry)) return null;
  const { key, versionstamp } = entry;
  const value = present(definition, method, entry.value);
  return { id: key[key.length - 1], key, value, versionstamp };
}

/** A write of a transaction has no versionstamp yet; a document is never null. */
export function isAbsent({ value, versionstamp }: Entry): boolean {
  return value === null && versionstamp === null;
}

/** What the documents of a collection are read by. */
export interface Source {
  readonly reader: Reader;
  /** Makes the declared indexes before what needs them; undefined once they are made. */
  readonly settle: () => Promise<unknown> | undefined;
  /** The first entry of a list, where it can be had at once; undefined: ask a list. */
  readonly firstNow: (
    prefix: KvEntryKey,
    selection: { where: unknown; depth: number },
  ) => Entry | null | undefined;
}

interface Choice {
  readonly where: unknown;
  readonly orderBy: unknown;
  readonly limit: number | undefined;
  readonly reverse: boolean;
}

/** Documents are below the prefix by one part. */
const DEPTH = 1;
/** Documents of a page without a limit. */
const PAGE_DOCUMENTS = 100;

export class Documents implements AsyncIterable<Document> {
  readonly #definition: Definition;
  readonly #source: Source;
  readonly #choice: Choice;

  constructor(definition: Definition, source: Source, choice: Choice) {
    this.#definition = definition;
    this.#source = source;
    this.#choice = choice;
  }

  orderBy(path: unknown, order: unknown = "asc"): Documents {
    const orderBy = typeof path === "string" ? { [path]: order } : path;
    return this.#narrowed({ orderBy });
  }

  limit(limit: unknown): Documents {
    if (typeof limit === "number" && Number.isSafeInteger(limit) && limit > 0) {
      return this.#narrowed({ limit });
    }
    throw invalid(`limit must be a positive integer: received ${shown(limit)}`);
  }

  reverse(): Documents {
    return this.#narrowed({ reverse: !this.#choice.reverse });
  }

  #narrowed(choice: Partial<Choice>): Documents {
    const all = { ...this.#choice, ...choice };
    return new Documents(this.#definition, this.#source, all);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Document> {
    await this.#source.settle();
    const { limit = Number.POSITIVE_INFINITY } = this.#choice;
    let count = 0;
    for await (const entry of this.#list(undefined, this.#choice.limit)) {
      if (!this.#isOwn(entry)) continue;
      yield documentOf(this.#definition, "list", entry)!;
      if (++count >= limit) return;
    }
  }

  async first(): Promise<Document | null> {
    const settled = this.#source.settle();
    if (settled !== undefined) await settled;
    const { where, orderBy, reverse } = this.#choice;
    if (orderBy === undefined && !reverse) {
      const entry = this.#source.firstNow(this.#definition.prefix, { where, depth: DEPTH });
      if (entry !== undefined) return entry && documentOf(this.#definition, "list", entry);
    }
    const listed = this.#list(undefined, 1);
    for (let next = await listed.next(); next.done !== true; next = await listed.next()) {
      if (this.#isOwn(next.value)) return documentOf(this.#definition, "list", next.value);
    }
    return null;
  }

  async toArray(): Promise<Document[]> {
    const documents: Document[] = [];
    for await (const document of this) documents.push(document);
    return documents;
  }

  async count(): Promise<number> {
    await this.#source.settle();
    const { where } = this.#choice;
    return await this.#source.reader.count(this.#selector(), { where, depth: DEPTH });
  }

  async page(options?: unknown): Promise<{ documents: Document[]; cursor: string | null }> {
    const { cursor } = checkOptions("page", options, ["cursor"]);
    await this.#source.settle();
    const { limit = PAGE_DOCUMENTS } = this.#choice;
    const listed = this.#list(cursor, undefined);
    const documents: Document[] = [];
    let end: string | null = null;
    for (let next = await listed.next(); next.done !== true; next = await listed.next()) {
      if (!this.#isOwn(next.value)) continue;
      if (documents.length === limit) return { documents, cursor: end };
      documents.push(documentOf(this.#definition, "page", next.value)!);
      end = listed.cursor;
    }
    return { documents, cursor: null };
  }

  #selector(): KvListSelector {
    return { prefix: this.#definition.prefix };
  }

  /** An index has the deeper entries too: they are left out here, so the limit counts here. */
  #list(cursor: unknown, limit: number | undefined): Listed {
    const { where, orderBy, reverse } = this.#choice;
    const order = orderBy === undefined ? { depth: DEPTH, limit } : { orderBy };
    return this.#source.reader.list(this.#selector(), { where, reverse, cursor, ...order });
  }

  #isOwn(entry: Entry): boolean {
    return entry.key.length === this.#definition.prefix.length + DEPTH;
  }
}
