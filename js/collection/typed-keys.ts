// Duty: a handle that knows only the keys of some collections, and their values.

import { shown } from "../arguments/check.js";
import { bytesOf } from "../codec/key-bytes.js";
import { printGiven } from "../codec/key-text.js";
import { invalid, misuse } from "../model/errors.js";
import { type Handle, type KvCollection, definitionOf, isCollection } from "./collection.js";
import { type Definition, isPart, prepare, present } from "./definition.js";
import type {
  KvCommitResult,
  KvEntryKey,
  KvEntryMaybe,
  KvExpireOptions,
  KvKey,
} from "../model/types.js";

/** The methods of a handle that work on single keys. */
export interface KeyHandle extends Handle {
  set(key: KvKey, value: unknown, options?: KvExpireOptions): Promise<KvCommitResult>;
  delete(key: KvKey): Promise<void>;
}

export class TypedKeys {
  readonly #kv: KeyHandle;
  readonly #definitions: readonly Definition[];
  readonly collections: Readonly<Record<string, KvCollection>>;

  constructor(kv: KeyHandle, collections: unknown) {
    if (typeof collections !== "object" || collections === null) {
      throw misuse(`kv.schema: expected an object of collections: received ${shown(collections)}`);
    }
    for (const [name, given] of Object.entries(collections)) {
      if (isCollection(given)) continue;
      throw misuse(
        `kv.schema: ${name} must be a collection of kv.collection(): received ${shown(given)}`,
      );
    }
    this.#kv = kv;
    this.collections = { ...(collections as Record<string, KvCollection>) };
    this.#definitions = Object.values(this.collections).map(definitionOf);
  }

  async get(key: KvEntryKey): Promise<KvEntryMaybe<unknown>> {
    const definition = this.#ownerOf("get", key);
    const entry = (await this.#kv.get(key)) as KvEntryMaybe<unknown>;
    if (entry.versionstamp === null) return entry;
    return { ...entry, value: present(definition, "get", entry.value) };
  }

  async set(key: KvEntryKey, value: unknown, options?: KvExpireOptions): Promise<KvCommitResult> {
    const definition = this.#ownerOf("set", key);
    const { stored } = prepare(definition, "set", value, key[key.length - 1]);
    return await this.#kv.set(key, stored, options);
  }

  async delete(key: KvEntryKey): Promise<void> {
    this.#ownerOf("delete", key);
    await this.#kv.delete(key);
  }

  /** The collection whose documents have such keys. */
  #ownerOf(method: string, key: unknown): Definition {
    const parts = Array.isArray(key) && key.every(isPart) ? key : [];
    const above = bytesOf(parts.slice(0, -1));
    const owner =
      parts.length === 0
        ? undefined
        : this.#definitions.find(({ prefix }) => bytesOf(prefix) === above);
    if (owner !== undefined) return owner;
    const known = this.#definitions.map(({ prefix }) => printGiven([...prefix, "…"])).join(", ");
    throw invalid(`${method}: no collection has the key ${printGiven(key)}: known are ${known}`);
  }
}
