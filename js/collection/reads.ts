// Duty: the reads of a collection, from a handle or from a transaction.

import { checkOptions, shown } from "../arguments/check.js";
import { misuse } from "../model/errors.js";
import { NativePromise } from "../model/native-promise.js";
import { type Definition, keyOf } from "./definition.js";
import { type Document, Documents, type Reader, type Source, documentOf } from "./documents.js";

/** Keys of one read: no handle takes fewer by default. */
const READ_KEYS = 10;

export class CollectionReads {
  readonly #definition: Definition;
  readonly #source: Source;

  constructor(definition: Definition, source: Source) {
    this.#definition = definition;
    this.#source = source;
  }

  async get(id: unknown): Promise<Document | null> {
    const entry = await this.#source.reader.get(keyOf(this.#definition, "get", id));
    return documentOf(this.#definition, "get", entry);
  }

  async getMany(ids: readonly unknown[]): Promise<(Document | null)[]> {
    if (!Array.isArray(ids)) throw misuse(`getMany: an array of ids: received ${shown(ids)}`);
    const keys = ids.map((id) => keyOf(this.#definition, "getMany", id));
    const steps: ReturnType<Reader["getMany"]>[] = [];
    for (let at = 0; at < keys.length; at += READ_KEYS) {
      steps.push(this.#source.reader.getMany(keys.slice(at, at + READ_KEYS)));
    }
    const entries = (await NativePromise.all(steps)).flat();
    return entries.map((entry) => documentOf(this.#definition, "getMany", entry));
  }

  find(where: unknown): Promise<Document | null> {
    return this.where(where).first();
  }

  async findMany(where: unknown, options?: unknown): Promise<Document[]> {
    const { limit } = checkOptions("findMany", options, ["limit"]);
    const documents = this.where(where);
    return await (limit === undefined ? documents : documents.limit(limit)).toArray();
  }

  where(where: unknown): Documents {
    const all = { where, orderBy: undefined, limit: undefined, reverse: false };
    return new Documents(this.#definition, this.#source, all);
  }

  list(): Documents {
    return this.where(undefined);
  }

  count(where?: unknown): Promise<number> {
    return this.where(where).count();
  }
}
