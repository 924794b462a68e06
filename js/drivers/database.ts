// Duty: what all drivers share: the handle that they are given or open, and the keys below their base.

import { openKv, type Kv, type KvKey, type OpenKvOptions } from "openkv";

/** The options that every driver has. */
export interface DatabaseOptions {
  /**
   * What `openKv` takes: a file, `":memory:"`, or the URL of a server. The driver opens it at its first
   * call, with `limits: "wide"`, and closes it. Default: that of `openKv`.
   */
  path?: string | URL | null | undefined;
  /** Options of `openKv` for `path`, as `{ accessToken }`. */
  open?: OpenKvOptions | undefined;
  /** Instead of `path`: an open handle, which the driver does not close. */
  kv?: Kv | Promise<Kv> | undefined;
  /**
   * The driver's entries have keys that extend this one; a string is a key of one part. Default: the
   * name of the driver.
   */
  base?: KvKey | string | undefined;
}

/** The database of a driver: a handle that was given, or one that is opened at the first call. */
export class Database {
  /** The key that all keys of the driver extend. */
  readonly base: KvKey;
  readonly #options: DatabaseOptions;
  #opening: Promise<Kv> | undefined;

  constructor(options: DatabaseOptions, name: string) {
    const { kv, path, open, base = name } = options;
    if (kv !== undefined && (path !== undefined || open !== undefined)) {
      throw new TypeError(
        `openkv/${name}: give either kv, an open handle, or path and open, not both`,
      );
    }
    this.#options = options;
    this.base = typeof base === "string" ? [base] : [...base];
  }

  /** The handle. An opening that failed is tried again by the next call. */
  kv(): Promise<Kv> {
    if (this.#options.kv !== undefined) return Promise.resolve(this.#options.kv);
    if (this.#opening === undefined) {
      const { path, open } = this.#options;
      const opening = openKv(path, { limits: "wide", ...open });
      opening.catch(() => {
        if (this.#opening === opening) this.#opening = undefined;
      });
      this.#opening = opening;
    }
    return this.#opening;
  }

  /** The key of these parts below the base. */
  key(...parts: KvKey): KvKey {
    return [...this.base, ...parts];
  }

  /** Closes the handle if the driver has opened it; the next call opens it again. */
  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    await (await opening?.catch(() => undefined))?.close();
  }
}

/** The options of `set` for a time to live in milliseconds; none, 0 or less: the entry does not expire. */
export function expiry(ttlMs: number | undefined | null): { expireIn: number } | undefined {
  return ttlMs === undefined || ttlMs === null || !(ttlMs > 0)
    ? undefined
    : { expireIn: Math.ceil(ttlMs) };
}
