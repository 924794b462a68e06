// Duty: the bounds that JavaScript needs before it has loaded the addon, or in each call.
// Generated from crates/core/src/model/limits.rs and the files below it by `npm run generate`: do not edit.

/** Waiting times before the retries of a message of Deno's queue. */
export const BACKOFF_DEFAULT_MS: readonly number[] = [100, 1000, 5000, 30000, 60000];

/** Entries that a page reads without another thread, those of value indexes among them. */
export const BRIEF_SCAN_ENTRIES_MAX = 128;

/** The default of `busyTimeout`. */
export const BUSY_TIMEOUT_MS_DEFAULT = 5000;

/** The largest `cacheSize`. */
export const CACHE_BYTES_MAX = 68719476736;

/** The smallest `cacheSize`. */
export const CACHE_BYTES_MIN = 65536;

/** The longest duration: a hundred years. */
export const DURATION_MS_MAX = 3155760000000;

/** Encoded bytes of a filter; the addon checks it again. */
export const FILTER_BYTES_MAX = 262144;

/** First part of the keys of the entries about messages whose results are kept. */
export const JOB_ENTRIES = "openkv:jobs";

/** The line of the context of a message that says for how many ms its result is kept. */
export const KEEP_RESULT = "openkv-keep-result";

/** Bytes of the frame of an inline commit. */
export const INLINE_BYTES_MAX = 65536;

/** Writes of the batch of an inline commit. */
export const INLINE_WRITES_MAX = 16;

/** Characters of a key in a message. */
export const KEY_PRINT_CHARS_MAX = 100;

/** The default of the `ttl` of a lease. */
export const LEASE_TTL_MS_DEFAULT = 10000;

/** The smallest `ttl` of a lease. */
export const LEASE_TTL_MS_MIN = 100;

/** The largest cost of a take from a limiter. */
export const LIMITER_COST_MAX = 1000000000;

/** The largest `limit` of a limiter. */
export const LIMITER_LIMIT_MAX = 1000000000;

/** The largest `mmapSize`. */
export const MMAP_BYTES_MAX = 2147418112;

/** Waiting times before the retries of a message of a named queue. */
export const NAMED_BACKOFF_DEFAULT_MS: readonly number[] = [1000, 5000, 10000];

/** The largest `maxOpen`. */
export const OPEN_DATABASES_MAX = 1000000;

/** The largest `limit` of `paginate`. */
export const PAGE_ENTRIES_MAX = 1000;

/** The largest `keyBytesMax` of a database on PostgreSQL. */
export const POSTGRES_KEY_BYTES_MAX = 2600;

/** How long the progress of a message is kept whose result is not. */
export const PROGRESS_KEPT_MS = 3600000;

/** Entries of a page that `sort: true` sorts. */
export const SORT_ENTRIES_MAX = 10000;

/** The last time of a Date. */
export const TIME_MS_MAX = 8640000000000000;

/** Nesting of a value, in containers. */
export const VALUE_DEPTH_MAX = 1000;
