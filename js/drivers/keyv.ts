// Duty: a store of keyv. With a namespace, keyv 5 puts it before the key itself, `namespace:key`, and the key is
// [...base, "namespace:key"]. keyv 6, and keyv 5 with `useKeyPrefix: false`, leave it to the store: the key is
// [...base, namespace, key].

import { EventEmitter } from "node:events";
import type { KvEntryKey, KvKey, KvListSelector } from "openkv";
import type { KeyvStorageAdapter, KeyvStorageCapability } from "keyv";
import { Database, type DatabaseOptions } from "./database.js";

const NAME = "keyv";
/** keyv 5 writes it between the namespace and the key; `;` is the next character. */
const SEPARATOR = ":";
const BEHIND_SEPARATOR = ";";
/** The last time that a date can be. */
const TIME_MAX = 8.64e15;

/** Options of {@link OpenKvStore}. */
export interface OpenKvStoreOptions extends DatabaseOptions {}

/** An entry of `setMany`: with `expires`, a time, of keyv 6; with `ttl`, milliseconds from now, of keyv 5. */
interface Entry {
  key: string;
  value?: any;
  expires?: number | undefined;
  ttl?: number | undefined;
}

/**
 * A store for `new Keyv({ store })` of keyv 6 and 5, and so for cache-manager. Entries expire in the
 * database; `iterator`, `clear` and namespaces are ranges of it. Keyv objects that share a store have one
 * namespace, so make a store for each: a `kv` that is given is shared. `disconnect` closes the handle if
 * the store has opened it.
 *
 * @example
 * const cache = new Keyv({ store: new OpenKvStore({ path: "data.sqlite3" }), namespace: "users" });
 * await cache.set("ada", { name: "Ada" }, 60_000);
 */
export class OpenKvStore extends EventEmitter implements KeyvStorageAdapter {
  /** keyv sets it. */
  namespace: string | undefined;
  /** keyv 5 iterates over stores of known dialects only; a file of openkv is one of SQLite. */
  readonly opts: OpenKvStoreOptions & { dialect: "sqlite" };
  readonly #database: Database;
  /** Whether `capabilities` were read, which keyv 5 does not know: times are times, and not to live. */
  #isSix = false;

  constructor(options: OpenKvStoreOptions = {}) {
    super();
    this.#database = new Database(options, NAME);
    this.opts = { ...options, dialect: "sqlite" };
  }

  /** keyv 6 reads it before all else, and then gives times of expiry. */
  get capabilities(): KeyvStorageCapability {
    this.#isSix = true;
    const method = { exists: true, methodType: "async" as const };
    return {
      compatible: true,
      store: "keyvStorage",
      expires: true,
      methods: Object.fromEntries(METHODS.map((name) => [name, method])) as any,
    };
  }

  async get<Value>(key: string): Promise<Value | undefined> {
    const { value, versionstamp } = await (await this.#database.kv()).get<any>(this.#key(key));
    return versionstamp === null ? undefined : value;
  }

  async getMany<Value>(keys: string[]): Promise<(Value | undefined)[]> {
    return await Promise.all(keys.map((key) => this.get<Value>(key)));
  }

  /** `expires`: for keyv 6 a time, for keyv 5 milliseconds from now. */
  async set(key: string, value: unknown, expires?: number): Promise<boolean> {
    const kv = await this.#database.kv();
    await kv.set(this.#key(key), value, this.#expiry(expires));
    return true;
  }

  /** Of each entry whether it is stored. If none is, the error is that of the call, else an event. */
  async setMany(entries: Entry[]): Promise<boolean[]> {
    const settled = await Promise.allSettled(
      entries.map(({ key, value, expires, ttl }) =>
        this.set(key, value, this.#isSix ? expires : ttl),
      ),
    );
    const failed = settled.filter((one) => one.status === "rejected");
    if (failed.length > 0 && failed.length === entries.length) throw failed[0]!.reason;
    for (const { reason } of failed) this.emit("error", reason);
    return settled.map(({ status }) => status === "fulfilled");
  }

  async has(key: string): Promise<boolean> {
    return (await (await this.#database.kv()).get(this.#key(key))).versionstamp !== null;
  }

  async hasMany(keys: string[]): Promise<boolean[]> {
    return await Promise.all(keys.map((key) => this.has(key)));
  }

  async delete(key: string): Promise<boolean> {
    const { count } = await (await this.#database.kv()).deleteMany([this.#key(key)]);
    return count > 0;
  }

  /** For keyv 6 of each key whether it was there, for keyv 5 whether any was. */
  async deleteMany(keys: string[]): Promise<any> {
    const deleted = await Promise.all(keys.map((key) => this.delete(key)));
    return this.#isSix ? deleted : deleted.includes(true);
  }

  async clear(): Promise<void> {
    const kv = await this.#database.kv();
    await Promise.all(this.#ranges().map((range) => kv.deleteMany(range)));
  }

  async *iterator<Value>(): AsyncGenerator<[string, Awaited<Value> | undefined], void> {
    const kv = await this.#database.kv();
    for (const range of this.#ranges()) {
      for await (const { key, value } of kv.list<any>(range)) {
        if (this.#isMine(key)) yield [key.at(-1) as string, value];
      }
    }
  }

  async disconnect(): Promise<void> {
    await this.#database.close();
  }

  #key(key: string): KvKey {
    const { namespace } = this;
    const isIn = !namespace || (!this.#isSix && key.startsWith(namespace + SEPARATOR));
    return isIn ? this.#database.key(key) : this.#database.key(namespace, key);
  }

  #ranges(): KvListSelector[] {
    const { base } = this.#database;
    if (!this.namespace) return [{ prefix: base }];
    const below = { prefix: [...base, this.namespace] };
    if (this.#isSix) return [below];
    const start = [...base, this.namespace + SEPARATOR];
    return [below, { start, end: [...base, this.namespace + BEHIND_SEPARATOR] }];
  }

  /** A range also has the entries of stores below it; their keys have more parts. */
  #isMine(key: KvEntryKey): boolean {
    const { length } = this.#database.base;
    const parts = this.namespace && key[length] === this.namespace ? 2 : 1;
    return key.length === length + parts;
  }

  #expiry(given: number | undefined): { expireAt: number } | { expireIn: number } | undefined {
    if (given === undefined || given === null) return undefined;
    const ms = Math.ceil(given);
    const expireAt = this.#isSix ? Math.max(ms, 0) : Date.now() + ms;
    // Also of a time that is none.
    if (!(expireAt <= TIME_MAX)) return undefined;
    if (this.#isSix) return { expireAt };
    return ms > 0 ? { expireIn: ms } : undefined;
  }
}

export default OpenKvStore;

const METHODS = [
  "get",
  "set",
  "delete",
  "clear",
  "has",
  "getMany",
  "setMany",
  "deleteMany",
  "hasMany",
  "disconnect",
  "iterator",
];
