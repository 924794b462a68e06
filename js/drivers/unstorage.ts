// Duty: a driver of unstorage. A key `a:b:c` is the key [...base, "a", "b", "c"], so that a base or a depth
// is a range of the database.

import process from "node:process";
import type { Kv, KvChanges, KvEntryKey, KvKey } from "openkv";
import type { Driver, StorageMeta, TransactionOptions, WatchCallback } from "unstorage";
import { Database, type DatabaseOptions } from "./database.js";

const NAME = "unstorage";
const SEPARATOR = ":";
const SECOND_MS = 1000;

/** Options of {@link unstorageDriver}. */
export interface UnstorageDriverOptions extends DatabaseOptions {
  /** The time to live of items that are set without one, in seconds. Default: they do not expire. */
  ttl?: number | undefined;
}

/**
 * A driver for `createStorage` and `storage.mount` of unstorage.
 *
 * Items of `setItemRaw` are stored as they are: bytes, Maps, bigints. `getMeta` has `ttl`, the seconds
 * until the expiry, and `versionstamp`. `watch` tells the changes of all processes. `dispose` closes the
 * handle if the driver has opened it.
 *
 * @example
 * const storage = createStorage({ driver: unstorageDriver({ path: "data.sqlite3" }) });
 * await storage.setItem("users:ada", { name: "Ada" }, { ttl: 60 });
 */
export function unstorageDriver(
  options: UnstorageDriverOptions = {},
): Driver<UnstorageDriverOptions, Promise<Kv>> {
  const database = new Database(options, NAME);
  expiry(options.ttl);
  const keyOf = (key: string): KvKey => database.key(...partsOf(key));
  const nameOf = (key: KvEntryKey): string => key.slice(database.base.length).join(SEPARATOR);
  const ttlOf = (given: TransactionOptions | undefined): { expireIn: number } | undefined =>
    expiry(given?.["ttl"] ?? options.ttl);
  const watches = new Set<AbortController>();

  const get = async (key: string): Promise<any> =>
    (await (await database.kv()).get(keyOf(key))).value;
  const getText = async (key: string): Promise<any> => textOf(await get(key));
  const set = async (key: string, value: unknown, given?: TransactionOptions): Promise<void> => {
    await (await database.kv()).set(keyOf(key), value, ttlOf(given));
  };

  return {
    name: NAME,
    options,
    flags: { maxDepth: true, ttl: true },
    getInstance: () => database.kv(),
    async hasItem(key: string): Promise<boolean> {
      return (await (await database.kv()).get(keyOf(key))).versionstamp !== null;
    },
    getItem: getText,
    getItemRaw: get,
    async getItems(items: { key: string }[]): Promise<{ key: string; value: any }[]> {
      return await Promise.all(items.map(async ({ key }) => ({ key, value: await getText(key) })));
    },
    setItem: set,
    setItemRaw: set,
    async setItems(
      items: { key: string; value: string; options?: TransactionOptions }[],
      common?: TransactionOptions,
    ): Promise<void> {
      await Promise.all(
        items.map(({ key, value, options }) => set(key, value, { ...common, ...options })),
      );
    },
    async removeItem(key: string): Promise<void> {
      await (await database.kv()).delete(keyOf(key));
    },
    async getMeta(key: string): Promise<StorageMeta | null> {
      const kv = await database.kv();
      const { versionstamp, expireAt } = await kv.get(keyOf(key), { withExpiry: true });
      if (versionstamp === null) return null;
      if (expireAt === null) return { versionstamp };
      return { versionstamp, ttl: Math.ceil((expireAt.getTime() - Date.now()) / SECOND_MS) };
    },
    async getKeys(base: string, given?: { maxDepth?: number | undefined }): Promise<string[]> {
      const parts = partsOf(base);
      const depth = given?.maxDepth === undefined ? undefined : given.maxDepth + 1 - parts.length;
      if (depth !== undefined && depth < 1) return [];
      const kv = await database.kv();
      const names: string[] = [];
      const prefix = database.key(...parts);
      for await (const { key } of kv.list({ prefix }, { keysOnly: true, depth })) {
        names.push(nameOf(key));
      }
      return names;
    },
    async clear(base: string): Promise<void> {
      await (await database.kv()).deleteMany({ prefix: database.key(...partsOf(base)) });
    },
    async dispose(): Promise<void> {
      for (const watch of watches) watch.abort();
      watches.clear();
      await database.close();
    },
    async watch(callback: WatchCallback): Promise<() => void> {
      const stop = new AbortController();
      const kv = await database.kv();
      watches.add(stop);
      const changes = kv.watch({ prefix: database.base }, { signal: stop.signal });
      void follow(changes, (type, key) =>
        callback(type === "set" ? "update" : "remove", nameOf(key)),
      );
      return () => {
        watches.delete(stop);
        stop.abort();
      };
    },
  };
}

export default unstorageDriver;

/** As in other drivers, 0 seconds are no time to live. */
function expiry(seconds: unknown): { expireIn: number } | undefined {
  if (seconds === undefined || seconds === null || seconds === Number.POSITIVE_INFINITY) {
    return undefined;
  }
  if (typeof seconds !== "number" || !(seconds >= 0)) {
    throw new TypeError(
      `openkv/${NAME}: ttl must be seconds, a number of at least 0: received ${String(seconds)}`,
    );
  }
  return seconds === 0 ? undefined : { expireIn: Math.ceil(seconds * SECOND_MS) };
}

/** The parts of a key, or of a base, which may end with a separator or be none. */
function partsOf(key: string | undefined): string[] {
  return (key ?? "").split(SEPARATOR).filter((part) => part !== "");
}

/** An item of `setItemRaw` as `getItem` gives it: bytes are text. */
function textOf(value: unknown): unknown {
  return ArrayBuffer.isView(value) ? new TextDecoder().decode(value as Uint8Array) : value;
}

/** Tells the changes of a feed until it ends. A feed that fails is a warning of the process, and a listener too. */
async function follow(
  feed: ReadableStream<KvChanges>,
  tell: (type: "set" | "delete", key: KvEntryKey) => void,
): Promise<void> {
  const reader = feed.getReader();
  const read = async (): Promise<KvChanges | undefined> => {
    try {
      return (await reader.read()).value;
    } catch (error) {
      process.emitWarning(`openkv/${NAME}: a watch has ended: ${(error as Error).message}`);
      return undefined;
    }
  };
  for (let batch = await read(); batch !== undefined; batch = await read()) {
    for (const { type, key } of batch.changes) {
      try {
        tell(type, key);
      } catch (error) {
        process.emitWarning(`openkv/${NAME}: a listener has failed: ${String(error)}`);
      }
    }
  }
}
