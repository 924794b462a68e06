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

interface Choice {
  readonly where: unknown;
  readonly limit: number | undefined;
  readonly reverse: boolean;
}

/** Documents are below the prefix by one part. */
const DEPTH = 1;
/** Documents of a page without a limit. */
const PAGE_DOCUMENTS = 100;

export class Documents implements AsyncIterable<Document> {
  readonly #definition: Definition;
  readonly #reader: Reader;
  readonly #choice: Choice;

  constructor(
    definition: Definition,
    reader: Reader,
    choice: Choice = { where: undefined, limit: undefined, reverse: false },
  ) {
    this.#definition = definition;
    this.#reader = reader;
    this.#choice = choice;
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
    return new Documents(this.#definition, this.#reader, { ...this.#choice, ...choice });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Document> {
    for await (const entry of this.#reader.list(this.#selector(), this.#options())) {
      const document = documentOf(this.#definition, "list", entry);
      if (document !== null) yield document;
    }
  }

  async first(): Promise<Document | null> {
    for await (const document of this.limit(1)) return document;
    return null;
  }

  async toArray(): Promise<Document[]> {
    const documents: Document[] = [];
    for await (const document of this) documents.push(document);
    return documents;
  }

  count(): Promise<number> {
    const { where } = this.#choice;
    return this.#reader.count(this.#selector(), { where, depth: DEPTH });
  }

  async page(options?: unknown): Promise<{ documents: Document[]; cursor: string | null }> {
    const { cursor } = checkOptions("page", options, ["cursor"]);
    const { limit = PAGE_DOCUMENTS, ...rest } = this.#choice;
    const listed = this.#reader.list(this.#selector(), { ...rest, depth: DEPTH, cursor });
    const documents: Document[] = [];
    for (let next = await listed.next(); next.done !== true; next = await listed.next()) {
      const document = documentOf(this.#definition, "page", next.value);
      if (document !== null) documents.push(document);
      if (documents.length < limit) continue;
      const end = listed.cursor;
      return { documents, cursor: (await listed.next()).done === true ? null : end };
    }
    return { documents, cursor: null };
  }

  #selector(): KvListSelector {
    return { prefix: this.#definition.prefix };
  }

  #options(): object {
    return { ...this.#choice, depth: DEPTH };
  }
}
