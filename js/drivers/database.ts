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
    if (kv !== undefined && (typeof kv !== "object" || kv === null)) {
      throw new TypeError(`openkv/${name}: kv must be a handle of openKv, or a promise of one`);
    }
    this.#options = options;
    const parts: KvKey = typeof base === "string" ? [base] : base;
    // Below an empty key is everything, which clear() would delete.
    if (!Array.isArray(parts) || parts.length === 0) {
      throw new TypeError(
        `openkv/${name}: base must be a string, or a key of at least one part, as ["cache", 1]`,
      );
    }
    this.base = [...parts];
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
