// Duty: the handlers of openkv/next are those that Next.js declares; run.mjs compiles it. Nothing runs it.

import type { CacheHandler as UseCache } from "next/dist/server/lib/cache-handlers/types.js";
import type { CacheHandler as Isr } from "next/dist/server/lib/incremental-cache/index.js";
import { createIsrCacheHandler, createUseCacheHandler } from "openkv/next";

export const useCache: UseCache = createUseCacheHandler({ path: ":memory:" });
export const isr: typeof Isr = createIsrCacheHandler({ path: ":memory:", base: "pages" });
// @ts-expect-error: there is no such option.
createIsrCacheHandler({ file: ":memory:" });
