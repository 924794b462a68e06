// Duty: a store of express-session. A session is the entry [...base, id] and expires with its cookie.

import session from "express-session";
import process from "node:process";
import type { KvKey } from "openkv";
import { Database, type DatabaseOptions } from "./database.js";

const NAME = "session";
const SECOND_MS = 1000;
/** How long a session is kept whose cookie ends with the browser, in seconds. */
const TTL_SECONDS_DEFAULT = 86_400;

/** Options of {@link OpenKvSessionStore}. */
export interface OpenKvSessionStoreOptions extends DatabaseOptions {
  /** How long a session is kept whose cookie has no `maxAge`, in seconds. Default: 86,400, a day. */
  ttl?: number | undefined;
}

type Callback<T = void> = (error: any, result?: T) => void;
type Sessions = Record<string, session.SessionData>;

/**
 * A store for the middleware of express-session. `touch` changes only the expiry of the entry. `close`
 * closes the handle if the store has opened it.
 *
 * @example
 * app.use(session({ secret, store: new OpenKvSessionStore({ path: "sessions.sqlite3" }) }));
 */
export class OpenKvSessionStore extends session.Store {
  readonly #database: Database;
  readonly #ttlMs: number;

  constructor(options: OpenKvSessionStoreOptions = {}) {
    super();
    const { ttl = TTL_SECONDS_DEFAULT } = options;
    if (!(Number.isFinite(ttl) && ttl > 0)) {
      throw new TypeError(
        `openkv/${NAME}: ttl must be seconds, a number above 0: received ${String(ttl)}`,
      );
    }
    this.#database = new Database(options, NAME);
    this.#ttlMs = Math.ceil(ttl * SECOND_MS);
  }

  override get(id: string, callback: Callback<session.SessionData | null>): void {
    answer(callback, async () => {
      const kv = await this.#database.kv();
      return withExpiry(await kv.get<any>(this.#key(id), { withExpiry: true }));
    });
  }

  override set(id: string, data: session.SessionData, callback?: Callback): void {
    answer(callback, async () => {
      const kv = await this.#database.kv();
      // What a session is for its other stores: JSON.
      await kv.set(this.#key(id), JSON.parse(JSON.stringify(data)), this.#expiry(data));
    });
  }

  override touch(id: string, data: session.SessionData, callback?: Callback): void {
    answer(callback, async () => {
      await (await this.#database.kv()).touch(this.#key(id), this.#expiry(data));
    });
  }

  override destroy(id: string, callback?: Callback): void {
    answer(callback, async () => {
      await (await this.#database.kv()).delete(this.#key(id));
    });
  }

  override all(callback: Callback<Sessions>): void {
    answer(callback, async () => {
      const kv = await this.#database.kv();
      const sessions: Sessions = Object.create(null);
      const prefix = this.#database.base;
      for await (const entry of kv.list<any>({ prefix }, { withExpiry: true, depth: 1 })) {
        sessions[String(entry.key.at(-1))] = withExpiry(entry)!;
      }
      return sessions;
    });
  }

  override length(callback: Callback<number>): void {
    answer(callback, async () => {
      return await (await this.#database.kv()).count({ prefix: this.#database.base });
    });
  }

  override clear(callback?: Callback): void {
    answer(callback, async () => {
      await (await this.#database.kv()).deleteMany({ prefix: this.#database.base });
    });
  }

  /** Closes the handle if the store has opened it. */
  async close(): Promise<void> {
    await this.#database.close();
  }

  #key(id: string): KvKey {
    return this.#database.key(id);
  }

  #expiry({ cookie }: session.SessionData): { expireAt: Date } | { expireIn: number } {
    return cookie?.expires ? { expireAt: new Date(cookie.expires) } : { expireIn: this.#ttlMs };
  }
}

/** A stored session; its cookie expires as the entry does, which `touch` may have changed. */
function withExpiry(entry: { value: any; expireAt: Date | null }): session.SessionData | null {
  const { value, expireAt } = entry;
  if (value?.cookie?.expires && expireAt !== null) value.cookie.expires = expireAt.toISOString();
  return value;
}

/** Calls back outside of the promise, so that an error of the callback is not its rejection. */
function answer<T>(callback: Callback<T> | undefined, run: () => Promise<T>): void {
  run().then(
    (result) => callback && process.nextTick(callback, null, result),
    (error) => callback && process.nextTick(callback, error),
  );
}
