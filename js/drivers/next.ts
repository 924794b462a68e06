// Duty: the two cache handlers of Next.js: of `use cache`, and of ISR, route handlers and fetch. All processes
// of an application share one database. Below the base:
//
//   ["use-cache", key]        an entry of `use cache`; Next.js has its build in the key
//   ["isr", build, key]       a page, a response or a fetch of one build
//   ["tag", tag]              when the tag was revalidated
//
// A tag is read with each entry, so a revalidation counts in all processes at once. A cache that fails is a
// cache that misses: only a revalidation rejects. A build uses no database.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { types } from "node:util";
import type { KvKey } from "openkv";
import { Database, type DatabaseOptions } from "./database.js";
import { keyPart } from "./key-part.js";

const NAME = "next";
const SECOND_MS = 1000;
/** The longest life of entries and tags: what nobody replaces, as a page of an old build, goes. */
const KEPT_MS_MAX = 30 * 24 * 60 * 60 * SECOND_MS;
const RETRIES_MAX = 100;
const TAGS_HEADER = "x-next-cache-tags";

/** An entry of `use cache`, as Next.js declares it. */
export interface UseCacheEntry {
  value: ReadableStream<Uint8Array>;
  tags: string[];
  /** Seconds for which a client uses it. */
  stale: number;
  /** When it was made, in milliseconds since the epoch. */
  timestamp: number;
  /** Seconds after which it is absent. */
  expire: number;
  /** Seconds after which it is served once more, while a new one is made. */
  revalidate: number;
}

/** A handler of `cacheHandlers`, as Next.js declares it. */
export interface UseCacheHandler {
  get(key: string, softTags: string[]): Promise<UseCacheEntry | undefined>;
  set(key: string, pendingEntry: Promise<UseCacheEntry>): Promise<void>;
  refreshTags(): Promise<void>;
  getExpiration(tags: string[]): Promise<number>;
  updateTags(tags: string[], durations?: { expire?: number }): Promise<void>;
}

/** What Next.js tells a new handler of `cacheHandler`. */
export interface IsrContext {
  serverDistDir?: string;
  revalidatedTags?: string[];
}

/** A handler of `cacheHandler`, as Next.js declares it. */
export interface IsrHandler {
  get(key: string, context: { kind: string; tags?: string[]; softTags?: string[] }): Promise<any>;
  set(
    key: string,
    value: any,
    context: {
      fetchCache?: boolean;
      cacheControl?: { revalidate: number | false; expire?: number };
    },
  ): Promise<void>;
  revalidateTag(tags: string | string[], durations?: { expire?: number }): Promise<void>;
  resetRequestCache(): void;
}

/** When a tag was revalidated, in milliseconds since the epoch. */
interface Tag {
  /** Older entries are absent from this time on. */
  expired?: number;
  /** Older entries are served once more, while a new one is made. */
  stale?: number;
}
type Stored = Omit<UseCacheEntry, "value"> & { value: Uint8Array };
interface Page {
  value: Record<string, any> | null;
  lastModified: number;
  cacheControl?: { revalidate: number | false; expire?: number };
}
type Durations = { expire?: number } | undefined;

/**
 * The default export of a file of `cacheHandlers` in next.config.
 *
 * @example
 * export default createUseCacheHandler({ path: "cache.sqlite3" });
 */
export function createUseCacheHandler(options: DatabaseOptions = {}): UseCacheHandler {
  const tags = new Tags(new Database(options, NAME));
  const { database } = tags;
  const keyOf = (key: string): KvKey => database.key("use-cache", keyPart(key));
  /** The sets of this process that are under way. */
  const pending = new Map<string, Promise<void>>();

  const store = async (key: string, pendingEntry: Promise<UseCacheEntry>): Promise<void> => {
    const { value: stream, ...entry } = await pendingEntry;
    if (entry.expire === 0) return;
    const value = new Uint8Array(await new Response(stream).arrayBuffer());
    const leftMs = entry.timestamp + entry.expire * SECOND_MS - Date.now();
    const expireIn = Math.max(0, Math.ceil(Math.min(leftMs, KEPT_MS_MAX)));
    await (await database.kv()).set(keyOf(key), { ...entry, value }, { expireIn });
  };

  return {
    async get(key, softTags) {
      if (isBuild()) return undefined;
      await pending.get(key);
      return await orMiss(undefined, async () => {
        const { value: stored } = await (await database.kv()).get<Stored>(keyOf(key));
        if (stored === null) return undefined;
        const state = await tags.stateOf([...stored.tags, ...softTags], stored.timestamp);
        if (state === "expired") return undefined;
        const { value, ...entry } = stored;
        if (state === "stale") entry.revalidate = -1;
        return { ...entry, value: new Response(value).body as UseCacheEntry["value"] };
      });
    },
    async set(key, entry) {
      if (isBuild()) return;
      const done = orMiss(undefined, () => store(key, entry));
      pending.set(key, done);
      await done;
      if (pending.get(key) === done) pending.delete(key);
    },
    async refreshTags() {},
    // Soft tags are given to `get`, which reads them with those of the entry.
    getExpiration: async () => Infinity,
    updateTags: (names, durations) => tags.revalidate(names, durations),
  };
}

/**
 * The default export of the file of `cacheHandler` in next.config.
 *
 * @example
 * export default createIsrCacheHandler({ path: "cache.sqlite3" });
 */
export function createIsrCacheHandler(
  options: DatabaseOptions = {},
): new (
  context: IsrContext,
) => IsrHandler {
  const tags = new Tags(new Database(options, NAME));
  const { database } = tags;

  return class OpenkvCacheHandler implements IsrHandler {
    readonly #build: string;
    readonly #revalidated: readonly string[];

    constructor({ serverDistDir, revalidatedTags }: IsrContext) {
      this.#build = buildOf(serverDistDir);
      this.#revalidated = revalidatedTags ?? [];
    }

    async get(...[key, context]: Parameters<IsrHandler["get"]>): Promise<Page | null> {
      if (isBuild()) return null;
      return await orMiss(null, async () => {
        const { value: page } = await (await database.kv()).get<Page>(this.#keyOf(key));
        if (page === null) return null;
        const names =
          context.kind === "FETCH"
            ? [...(context.tags ?? []), ...(context.softTags ?? [])]
            : tagsOf(page);
        if (names.some((name) => this.#revalidated.includes(name))) return null;
        // A page has no form that is stale by a tag alone, so the next request renders it.
        const state = await tags.stateOf(names, page.lastModified);
        return state === "fresh" ? { ...page, value: withBuffers(page.value) } : null;
      });
    }

    async set(...[key, value, context]: Parameters<IsrHandler["set"]>): Promise<void> {
      if (isBuild()) return;
      await orMiss(undefined, async () => {
        const cacheControl = context.fetchCache ? undefined : context.cacheControl;
        const expireMs = (cacheControl?.expire ?? Infinity) * SECOND_MS;
        const page: Page = {
          value,
          lastModified: Date.now(),
          ...(cacheControl && { cacheControl }),
        };
        await (await database.kv()).set(this.#keyOf(key), page, {
          expireIn: Math.ceil(Math.min(expireMs, KEPT_MS_MAX)),
        });
      });
    }

    async revalidateTag(names: string | string[], durations?: Durations): Promise<void> {
      await tags.revalidate([names].flat(), durations);
    }

    resetRequestCache(): void {}

    #keyOf(key: string): KvKey {
      return database.key("isr", this.#build, keyPart(key));
    }
  };
}

/** The tags of an application. */
class Tags {
  readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  /** What the revalidations of tags mean for an entry of this time. */
  async stateOf(names: readonly string[], time: number): Promise<"fresh" | "stale" | "expired"> {
    const kv = await this.database.kv();
    const now = Date.now();
    const found = await Promise.all(
      [...new Set(names)].map(async (name) => (await kv.get<Tag>(this.#keyOf(name))).value ?? {}),
    );
    const isExpired = ({ expired }: Tag): boolean =>
      expired !== undefined && expired >= time && expired <= now;
    if (found.some(isExpired)) return "expired";
    return found.some(({ stale }) => stale !== undefined && stale >= time) ? "stale" : "fresh";
  }

  async revalidate(names: readonly string[], durations: Durations): Promise<void> {
    if (names.length === 0) return;
    const kv = await this.database.kv();
    await kv.transaction(
      async (tx) => {
        const now = Date.now();
        for (const name of new Set(names)) {
          const { value } = await tx.get<Tag>(this.#keyOf(name));
          const next: Tag = { ...value };
          if (durations === undefined) next.expired = now;
          else next.stale = now;
          if (durations?.expire !== undefined) next.expired = now + durations.expire * SECOND_MS;
          tx.set(this.#keyOf(name), next, { expireIn: 2 * KEPT_MS_MAX });
        }
      },
      { maxRetries: RETRIES_MAX },
    );
  }

  #keyOf(name: string): KvKey {
    return this.database.key("tag", keyPart(name));
  }
}

function isBuild(): boolean {
  return process.env["NEXT_PHASE"] === "phase-production-build";
}

/** The ids of builds by their folders: Next.js makes a handler for each request. */
const builds = new Map<string | undefined, string>();

/** The id of the build in this folder; `next dev` has none. */
function buildOf(serverDistDir: string | undefined): string {
  let id = builds.get(serverDistDir);
  if (id === undefined) {
    const file = join(serverDistDir ?? "", "..", "BUILD_ID");
    id = existsSync(file) ? readFileSync(file, "utf8") : "development";
    builds.set(serverDistDir, id);
  }
  return id;
}

function tagsOf({ value }: Page): string[] {
  const names: unknown = value?.["headers"]?.[TAGS_HEADER];
  return typeof names === "string" ? names.split(",") : [];
}

/** The value with Buffers for its bytes, as Next.js has stored them. */
function withBuffers(value: Page["value"]): Page["value"] {
  const from = (part: unknown): unknown => {
    if (types.isUint8Array(part)) return Buffer.from(part.buffer, part.byteOffset, part.byteLength);
    if (types.isMap(part)) return new Map(Array.from(part, ([name, each]) => [name, from(each)]));
    return part;
  };
  if (value === null) return null;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, from(part)]));
}

/** Does it; tells of an error, and answers `otherwise`. */
async function orMiss<T>(otherwise: T, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    console.error("[openkv/next] the cache is not used:", error);
    return otherwise;
  }
}
