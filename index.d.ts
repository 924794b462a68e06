// The public declarations of openkv, written by hand. Everything here is API; js/ implements it and
// __test__/types checks that it does.

/// <reference lib="esnext.disposable" />

/**
 * One part of a key. Parts sort by type first: bytes < strings < bigints < numbers < `false` <
 * `true`; then by value, strings in UTF-8 order.
 *
 * Any `ArrayBufferView` counts as its bytes and is read back as a `Uint8Array`. A symbol must be
 * that of {@link Kv.commitVersionstamp}, and the last part of a key that is set.
 */
export type KvKeyPart = Uint8Array | string | number | bigint | boolean | symbol | KvUuidV7;

/**
 * A key: an array of parts, from the general to the particular. Keys are ordered part by part; a
 * key sorts before its extensions. At most 2048 bytes when encoded. A written key is not empty.
 *
 * @example
 * const key: KvKey = ["users", "alice", 42];
 */
export type KvKey = readonly KvKeyPart[];

/** One part of a key that was read: the form in which a {@link KvKeyPart} is returned. */
export type KvEntryKeyPart = Uint8Array | string | number | bigint | boolean;

/**
 * A key that was read: a {@link KvKey} whose parts are never symbols or placeholders.
 *
 * @example
 * const { key } = await kv.get<User>(["users", "alice"]);
 * console.log(`read ${key[1]}`);
 * await kv.delete(key);
 */
export type KvEntryKey = readonly KvEntryKeyPart[];

/**
 * The consistency of a read. On a local database both levels are the same: every read sees all
 * commits that were acknowledged before it started. Behind a URL, `"strong"` reads go to the server that
 * takes the writes; `"eventual"` reads may be older: they go to the nearest server, or to the replica of
 * the handle (docs/remote.md#replicas).
 */
export type KvConsistencyLevel = "strong" | "eventual";

/** Options of every asynchronous call. */
export interface KvCallOptions {
  /**
   * Cancels the call. If it is aborted before the call, nothing happens and the call rejects with
   * its `reason`. If it is aborted later, the call rejects with the `reason` at once: a read has no
   * further effect, and a write may still happen or not; read to find out. Long work ends within
   * one of its steps, at a server too; the commits of a `deleteMany` up to then stay. A list
   * rejects every further `next()` with the reason; the stream of a watch ends.
   *
   * @example
   * const signal = AbortSignal.timeout(500);
   * const count = await kv.count({ prefix: ["users"] }, { signal });
   */
  signal?: AbortSignal | undefined;
}

/** An entry that exists. */
export interface KvEntry<T> {
  /** A new array; the caller may change it. */
  key: KvEntryKey;
  value: T;
  /** Twenty hexadecimal digits, larger for every later commit. */
  versionstamp: string;
}

/** An entry that may be absent: then value and versionstamp are `null`. */
export type KvEntryMaybe<T> = KvEntry<T> | { key: KvEntryKey; value: null; versionstamp: null };

/** A commit that happened. */
export interface KvCommitResult {
  ok: true;
  /** The versionstamp that all entries of this commit carry. */
  versionstamp: string;
}

/** The result of enqueueing a message. */
export interface KvEnqueued {
  /**
   * The message's id, as its consumer sees it; the id of the existing message if this one was
   * `deduplicated`. `null` where Deno's queue has no such ids: in a file in common with Deno, and
   * behind a server that is not openkv's.
   */
  id: string | null;
  /** True if its `deduplicationKey` was taken and nothing was added. */
  deduplicated: boolean;
}

/** A commit of one message. */
export interface KvEnqueueResult extends KvCommitResult, KvEnqueued {}

/**
 * The number that is stored after a `sum`, `min` or `max`, or the length of the array after an
 * `append` or `prepend`.
 */
export type KvCalculated = KvU64 | bigint | number;

/** A commit of an {@link AtomicOperation}. */
export interface KvAtomicResult extends KvCommitResult {
  /**
   * With `commit({ values: true })`: for each `sum`, `min`, `max`, `append` and `prepend` of the
   * operation, in the order of their calls, the number that is stored after it, or the length of
   * the array. Several changes of one key have a result each. Other mutations have none.
   */
  values?: KvCalculated[];
  /** If the operation has messages: the result of each, in the order of their calls. */
  messages?: KvEnqueued[];
}

/** A commit that did not happen, because a check failed. Nothing was written. */
export interface KvCommitError {
  ok: false;
}

/**
 * A {@link KvCommitError} with the reason.
 *
 * @example
 * const result = await kv.atomic().check(from, to).set(["moved"], true).commit();
 * if (!result.ok && result.failed.includes(0)) console.log("from has changed");
 */
export interface KvCommitRefusal extends KvCommitError {
  /**
   * The indexes, from 0, of all checks that failed, in the order in which the operation was given
   * them. The messages of {@link AtomicOperation.ack} are counted behind all checks: with two checks, 2 is
   * the first message. Empty for {@link Kv.touch} and {@link Kv.persist}, which have no checks, and behind a
   * server that is not openkv's and does not say which of several checks failed.
   */
  failed: number[];
  /** The unique indexes that refuse the commit, if it has failed because of them; `failed` is empty then. */
  violations?: KvViolation[];
}

/** Two entries of which a unique index allows one. */
export interface KvViolation {
  /** The name of the index. */
  index: string;
  /** The key that was written. */
  key: KvEntryKey;
  /** The key that has the value. */
  other: KvEntryKey;
}

/**
 * A condition of a commit: the entry still has this versionstamp, or with `null` there is no entry.
 * An entry from {@link Kv.get} is a check.
 */
export interface AtomicCheck {
  key: KvKey;
  versionstamp: string | null;
}

/**
 * One change of one key, for {@link AtomicOperation.mutate}.
 *
 * - `set` stores the value. `expireIn` and `expireAt` are those of {@link KvExpireOptions}.
 * - `delete` removes the entry, if there is one.
 * - `sum`, `min`, `max` combine a `KvU64` with the stored `KvU64`, and store the operand if there
 *   is no entry. A sum wraps around at 2^64. `sum` also adds bigint to bigint and number to number,
 *   and a bigint of 0…2^64 − 1 to a `KvU64`, which stays one. Any other pair rejects the commit
 *   with a `TypeError`.
 * - `min` and `max` with a number, `append` and `prepend` are the methods of those names: {@link
 *   AtomicOperation.min}, {@link AtomicOperation.append}.
 */
export type KvMutation = { key: KvKey } & (
  | ({ type: "set"; value: unknown } & KvExpireOptions)
  | { type: "delete" }
  | { type: "sum"; value: KvU64 | bigint | number }
  | { type: "min"; value: KvU64 }
  | { type: "max"; value: KvU64 }
  | ({ type: "min" | "max"; value: number } & KvExpireOptions)
  | ({ type: "append" | "prepend"; value: readonly unknown[] } & KvExpireOptions)
);

/**
 * The keys that a list covers: the keys that extend `prefix` (never the prefix itself), those from
 * `start` (included) to `end` (excluded), or the part of a prefix from `start` or up to `end`.
 */
export type KvListSelector =
  | { prefix: KvKey }
  | { prefix: KvKey; start: KvKey }
  | { prefix: KvKey; end: KvKey }
  | { start: KvKey; end: KvKey };

/** The change of one key by a commit. */
export type KvChange<T> =
  | {
      type: "set";
      key: KvEntryKey;
      value: T;
      versionstamp: string;
      /** When the entry expires, as the commit has set it. Absent if it does not expire. */
      expireAt?: Date;
    }
  | {
      type: "delete";
      key: KvEntryKey;
      value: null;
      versionstamp: string;
      /** The entry had expired, and no call has deleted it. Absent for every other deletion. */
      expired?: true;
    };

/** A batch of a feed ({@link Kv.watch} over a selector): whole commits, in their order. */
export interface KvChanges<T = unknown> {
  /**
   * Never empty, unless `initial` is `"last"`. No key occurs twice in one commit. Deletions of absent keys are included. An
   * expired entry is a deletion with `expired`, as soon as it is swept. Changes of only the expiry
   * (`touch`, `persist`) are not included.
   */
  changes: KvChange<T>[];
  /**
   * The feed has yielded everything up to this commit. Pass it as `since` to continue after this
   * batch.
   */
  versionstamp: string;
  /**
   * With the option `initial`, the batch is a part of the present entries: `"last"` is its last
   * part, the following batches are changes. A reader cannot continue after `"more"`: it begins
   * again.
   */
  initial?: "more" | "last";
}

/** A version of an entry ({@link Kv.history}): what a commit has made of it. */
export type KvVersion<T = unknown> = {
  key: KvEntryKey;
  /**
   * The commit that made this version. The version counts until the commit of the version before it in the list.
   */
  versionstamp: string;
  /** The time of the commit. Absent if the commit is older than the history. */
  committedAt?: Date;
} & (
  | {
      /** `"set"`: the commit has stored the value; `"expiry"`: it has changed only the expiry of the entry. */
      type: "set" | "expiry";
      value: T;
      /** When the entry expires or has expired. Absent if it does not expire. */
      expireAt?: Date;
    }
  | {
      /** The commit has deleted the entry, or has removed it because it had expired. */
      type: "delete";
      value: null;
    }
);

/** Options of {@link Kv.history}. */
export interface KvHistoryOptions extends KvCallOptions {
  /** Most versions to yield, a positive integer. Default: all. */
  limit?: number | undefined;
  /** Only versions of commits before this one: the `versionstamp` of the last version of an earlier call goes on there. */
  before?: string | undefined;
}

/** Options of {@link Kv.list}. */
export interface KvListOptions<T = unknown> extends KvCallOptions {
  /** Most entries to yield, a positive integer. Default: all. */
  limit?: number | undefined;
  /**
   * {@link KvListIterator.cursor} of an earlier list with the same selector: the list continues
   * after it.
   */
  cursor?: string | undefined;
  /** Lists from the last key to the first. Default: false. */
  reverse?: boolean | undefined;
  /** Default: `"strong"`. */
  consistency?: KvConsistencyLevel | undefined;
  /**
   * Most entries per read, a positive integer; above 500 counts as 500, above 1000 is an error.
   * Each read sees one state of the database. Default: grows from 32 to 500.
   */
  batchSize?: number | undefined;
  /** Only entries whose value matches; see {@link KvFilter}. Default: all. */
  where?: KvFilter<T> | undefined;
  /** Entries without `value`; the value is neither read nor sent. Default: false. */
  keysOnly?: boolean | undefined;
  /**
   * Only entries whose key has at most this many parts behind the prefix, a positive integer.
   * Deeper entries are skipped without being read. Requires a `prefix`. Default: all.
   */
  depth?: number | undefined;
  /** Entries with `expireAt`, see {@link KvExpiry}. Default: false. */
  withExpiry?: boolean | undefined;
  /**
   * Lists in the order of values instead of keys: a path, or paths with their orders, the most significant
   * first. Rejects with `TypeError` unless a value index has the order (see {@link KvValueIndexOptions}), or
   * `sort` is true. Not together with `depth`. `reverse` reverses it.
   *
   * An entry whose value changes between two reads of the list can come twice, or not at all.
   */
  orderBy?: KvOrder | undefined;
  /** Without an index for `orderBy` the entries are sorted in memory: each page reads the whole range. Default: false. */
  sort?: boolean | undefined;
}

/** The order of a list: a path as in {@link KvFilter}, or several with their orders. */
export type KvOrder = string | { readonly [path: string]: "asc" | "desc" };

/** An entry of a list with `keysOnly: true`. */
export interface KvKeyEntry {
  /** A new array; the caller may change it. */
  key: KvEntryKey;
  /** Twenty hexadecimal digits, larger for every later commit. */
  versionstamp: string;
}

/** The property that `withExpiry: true` adds to an entry. */
export interface KvExpiry {
  /** When the entry expires; `null` if it does not expire or is absent. */
  expireAt: Date | null;
}

/** An operand of a filter: a value, or a time ({@link KvFilterNow}). */
export type KvFilterValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Date
  | Uint8Array
  | KvFilterNow;

/**
 * The time of the call plus `$offset` milliseconds, compared with a `Date`, a number or bigint of milliseconds since
 * 1970, or a string in ISO 8601 (`toISOString()`).
 */
export type KvFilterNow = { $now: true; $offset?: number } | { $now: { $offset?: number } };

/**
 * Conditions on a value of type `V`. All operators must hold. If `V` is `any` or `unknown`, every
 * operand is accepted.
 */
export interface KvFilterComparison<V = unknown> {
  /** The same value. Numbers and bigints compare exactly; other types never equal each other. */
  $eq?: FilterEqual<V>;
  /** Not `$eq`. */
  $ne?: FilterEqual<V>;
  /**
   * Greater, among comparable types: numbers and bigints, strings by UTF-8, dates, booleans, bytes.
   */
  $gt?: FilterOrdered<V>;
  $gte?: FilterOrdered<V>;
  $lt?: FilterOrdered<V>;
  $lte?: FilterOrdered<V>;
  /** Between the first and the second, both included. */
  $between?: readonly [FilterOrdered<V>, FilterOrdered<V>];
  /** One of these. */
  $in?: readonly FilterEqual<V>[];
  /** None of these. */
  $nin?: readonly FilterEqual<V>[];
  /** A string with this part, bytes with this part, an array or `Set` with this element. */
  $contains?: FilterPart<V>;
  $notContains?: FilterPart<V>;
  $startsWith?: FilterAffix<V>;
  $endsWith?: FilterAffix<V>;
  /**
   * As `$eq`, `$contains` and so on, for strings without regard to case (Unicode's full case
   * folding).
   */
  $eqi?: FilterText<V>;
  $nei?: FilterText<V>;
  $containsi?: FilterText<V>;
  $notContainsi?: FilterText<V>;
  $startsWithi?: FilterText<V>;
  $endsWithi?: FilterText<V>;
  /** True: the value is `null`, `undefined` or absent. */
  $null?: boolean;
  /** True: as `$null`, or an empty string, array, object, `Map`, `Set` or bytes. */
  $empty?: boolean;
  /** Not `$empty`. */
  $notEmpty?: boolean;
  /** True: the value is present, `null` included. */
  $exists?: boolean;
}

/** A {@link KvFilterComparison}, and combinations of comparisons. */
export interface KvFilterCondition<V = unknown> extends KvFilterComparison<V> {
  $and?: readonly KvFilterCondition<V>[];
  $or?: readonly KvFilterCondition<V>[];
  $not?: KvFilterCondition<V>;
}

/**
 * Conditions on values, evaluated in Rust on their stored bytes. A property name is a path: dots
 * step into objects, Maps and arrays (by index or, without such an index, into the elements, one of
 * which must match); a backslash makes a dot or dollar part of the name. A value behind a path
 * means equality. Operators at the top apply to the whole value. All conditions must hold. At most
 * 32 levels and 1000 conditions and operands.
 *
 * `T` is the type of the values. TypeScript checks paths of up to three names and their operands;
 * it does not check longer paths, nor keys of a `Map` or `Record`. If `T` is `unknown`, it checks
 * the operators, and a path has to begin with a visible ASCII character. `KvFilter<any>` is checked
 * at run time.
 *
 * @example
 * const adults: KvFilter<{ age: number; address: { city: string } }> = {
 *   age: { $gte: 18 },
 *   "address.city": { $in: ["Rome", "Oslo"] },
 * };
 */
export type KvFilter<T = unknown> = 0 extends 1 & T
  ? { [path: string]: any }
  : KvFilterComparison<T> & {
      $and?: readonly KvFilter<T>[];
      $or?: readonly KvFilter<T>[];
      $not?: KvFilter<T>;
    } & (IsFree<T> extends true
        ? { [P in FreePath]?: FilterOperand<unknown> }
        : { [P in FilterPaths<T, "", FilterDepth> as P[0]]?: FilterOperand<P[1]> });

/** The operand of a path: a value, which means equality, or conditions. */
type FilterOperand<V> = FilterEqual<V> | KvFilterCondition<V>;

/** Whether a type says nothing of its values: `any`, `unknown`, `object`, `{}`. */
type IsFree<V> = unknown extends V
  ? true
  : [V] extends [object]
    ? [object] extends [V]
      ? true
      : false
    : false;

/** The operands that a `V` can be equal to; `null` for what may be missing. */
type FilterEqual<V> = IsFree<V> extends true ? KvFilterValue : FilterEqualTo<V>;
type FilterEqualTo<V> = V extends null | undefined
  ? null
  : V extends string | boolean
    ? V
    : V extends number
      ? V | bigint
      : V extends bigint | KvU64
        ? number | bigint
        : V extends Date
          ? Date | KvFilterNow
          : V extends ArrayBufferView
            ? Uint8Array
            : never;

/** The operands that a `V` has an order with. */
type FilterOrdered<V> = IsFree<V> extends true ? NonNullable<KvFilterValue> : FilterOrderedBy<V>;
type FilterOrderedBy<V> = V extends string
  ? string | KvFilterNow
  : V extends boolean
    ? boolean
    : V extends number | bigint | KvU64
      ? number | bigint | KvFilterNow
      : V extends Date
        ? Date | KvFilterNow
        : V extends ArrayBufferView
          ? Uint8Array
          : never;

/** The operands that a `V` can contain. */
type FilterPart<V> = IsFree<V> extends true ? KvFilterValue : FilterPartOf<V>;
type FilterPartOf<V> = V extends string
  ? string
  : V extends ArrayBufferView
    ? Uint8Array
    : V extends readonly (infer Item)[]
      ? FilterEqual<Item>
      : V extends ReadonlyMap<unknown, unknown>
        ? never
        : V extends ReadonlySet<infer Item>
          ? FilterEqual<Item>
          : never;

/** The operands that a `V` can begin and end with. */
type FilterAffix<V> = IsFree<V> extends true ? string | Uint8Array : FilterAffixOf<V>;
type FilterAffixOf<V> = V extends string ? string : V extends ArrayBufferView ? Uint8Array : never;
type FilterText<V> = IsFree<V> extends true ? string : V extends string ? string : never;

/** Names of a path that are checked, and one less with each step. */
type FilterDepth = [1, 1, 1];

/** Values that a path does not step into. */
type FilterLeaf =
  | string
  | number
  | bigint
  | boolean
  | symbol
  | null
  | undefined
  | Date
  | RegExp
  | ArrayBufferView
  | ArrayBuffer
  | Blob
  | ReadonlySet<unknown>
  | ((...given: never) => unknown);

/** The paths into a `T` with their types, as pairs; `Start` is a prefix of them. */
type FilterPaths<T, Start extends string, Depth extends readonly unknown[]> =
  IsFree<T> extends true
    ? [FreeFrom<Start>, any]
    : T extends ReadonlyMap<unknown, infer Item>
      ? [FreeFrom<Start>, Item extends FilterLeaf ? Item : any]
      : T extends FilterLeaf
        ? never
        : Depth extends readonly [unknown, ...infer Rest]
          ? T extends readonly (infer Item)[]
            ? // `${number}` would also be "0.1", which are two steps.
                | [`${Start}${bigint}`, Item]
                | FilterPaths<Item, `${Start}${bigint}.`, Rest>
                | (Item extends readonly unknown[] ? never : FilterPaths<Item, Start, Depth>)
            : { [K in keyof T & (string | number)]-?: FilterName<T[K], K, Start, Rest> }[keyof T &
                (string | number)]
          : [FreeFrom<Start>, any];

/** The paths that begin with one name. */
type FilterName<
  V,
  K extends string | number,
  Start extends string,
  Rest extends readonly unknown[],
> = string extends K
  ? [FreeFrom<Start>, V extends FilterLeaf ? V : any]
  : V extends (...given: never) => unknown
    ? never
    : [`${Start}${Escaped<`${K}`>}`, V] | FilterPaths<V, `${Start}${Escaped<`${K}`>}.`, Rest>;

/** A name with a backslash before what would mean something else in a path. */
type Escaped<K extends string> = K extends `$${infer Rest}`
  ? `\\$${EscapedDots<Rest>}`
  : EscapedDots<K>;
type EscapedDots<K extends string> = K extends `${infer A}.${infer B}`
  ? `${A}\\.${EscapedDots<B>}`
  : K;

/** Any path that continues after `Start`; at the beginning of a filter, no operator. */
type FreeFrom<Start extends string> = Start extends "" ? FreePath : `${Start}${string}`;
type FreePath = `${FreePathStart}${string}`;
// biome-ignore format: the characters in rows
type FreePathStart =
  | "a" | "b" | "c" | "d" | "e" | "f" | "g" | "h" | "i" | "j" | "k" | "l" | "m"
  | "n" | "o" | "p" | "q" | "r" | "s" | "t" | "u" | "v" | "w" | "x" | "y" | "z"
  | "A" | "B" | "C" | "D" | "E" | "F" | "G" | "H" | "I" | "J" | "K" | "L" | "M"
  | "N" | "O" | "P" | "Q" | "R" | "S" | "T" | "U" | "V" | "W" | "X" | "Y" | "Z"
  | "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "_" | "-" | "\\"
  | "!" | '"' | "#" | "%" | "&" | "'" | "(" | ")" | "*" | "+" | "," | "/" | ":"
  | ";" | "<" | "=" | ">" | "?" | "@" | "[" | "]" | "^" | "`" | "{" | "|" | "}" | "~";

/** Options of {@link Kv.paginate}. An unknown name is a `TypeError`. */
export interface KvPageOptions<T = unknown> extends KvCallOptions {
  /** Most entries of the page, 1 to 1000. Default: 100. */
  limit?: number | undefined;
  /** The `cursor` of the previous page. */
  cursor?: string | null | undefined;
  /** Lists from the last key to the first. Default: false. */
  reverse?: boolean | undefined;
  /** Only entries whose value matches this filter. */
  where?: KvFilter<T> | undefined;
  /** As that of {@link KvListOptions}. */
  orderBy?: KvOrder | undefined;
  /** As that of {@link KvListOptions}. */
  sort?: boolean | undefined;
}

/**
 * A selector and the options of a page in one object.
 *
 * @deprecated Give {@link Kv.paginate} a selector and {@link KvPageOptions}, as `list`, `count` and
 *   `deleteMany` take them.
 */
export interface KvPaginateOptions<T = unknown> extends KvPageOptions<T> {
  prefix?: KvKey | undefined;
  start?: KvKey | undefined;
  end?: KvKey | undefined;
}

/** One page. */
export interface KvPage<T> {
  entries: KvEntry<T>[];
  /** Where the next page continues; `null` if there is none. */
  cursor: string | null;
  /** Whether there is at least one more entry. */
  hasMore: boolean;
}

/** Options of {@link Kv.deleteMany}. */
export interface KvDeleteManyOptions<T = unknown> extends KvCallOptions {
  /** Only entries whose value matches this filter. */
  where?: KvFilter<T>;
  /**
   * Most entries to delete, a positive integer: those with the lowest keys, or the first of an
   * array.
   */
  limit?: number;
  /**
   * Deletes all in one commit. Rejects with `TypeError`, and deletes nothing, if there are more
   * than `limits.mutationsMax` entries to delete. Default: false.
   */
  atomic?: boolean | undefined;
  /**
   * The first argument is one key: deletes its entry, and those of all keys that extend it.
   * Default: false.
   */
  descendants?: boolean | undefined;
}

/**
 * The entries of a list, in key order. The list is its own iterator: after `break` it continues
 * where it stopped. Overlapping calls of `next()` resolve in order, each with a different entry.
 */
export class KvListIterator<T, E = KvEntry<T>> implements AsyncIterableIterator<E> {
  private constructor();

  /**
   * The position after the last yielded entry: pass it as `cursor` to a later list. `""` when the
   * list is exhausted. The same string as Deno KV's.
   *
   * @throws Error before the first `next()`, unless the list was itself opened with a cursor.
   *
   * @example
   * const page = kv.list({ prefix: ["posts"] }, { limit: 20 });
   * for await (const { value } of page) show(value);
   * const rest = kv.list({ prefix: ["posts"] }, { cursor: page.cursor });
   */
  get cursor(): string;

  /**
   * Returns the next entry.
   *
   * Rejects with `TypeError` when a bound, the cursor or the consistency is invalid, with
   * {@link BadResource} when the handle was closed and no entry is buffered.
   */
  next(): Promise<IteratorResult<E, undefined>>;

  /**
   * Returns all remaining entries, in memory at once: give a large list a `limit`. Rejects as
   * {@link next}.
   *
   * @example
   * const users = await kv.list<User>({ prefix: ["users"] }).toArray();
   */
  toArray(): Promise<E[]>;

  [Symbol.asyncIterator](): this;
}

/**
 * An unsigned 64-bit integer, which {@link AtomicOperation.sum}, `min` and `max` change without a
 * read before.
 *
 * Under Deno with `--unstable-kv` this is `Deno.KvU64` itself. An instance of another copy of this
 * package counts as an instance of this copy. Values that are read are instances of this class.
 *
 * @example
 * await kv.set(["visits"], new KvU64(0n));
 * await kv.atomic().sum(["visits"], 1n).commit();
 * (await kv.get<KvU64>(["visits"])).value?.value; // 1n
 */
export class KvU64 {
  /**
   * @throws TypeError when `value` is not a bigint.
   * @throws RangeError when it is negative or does not fit in 64 bits.
   */
  constructor(value: bigint);
  readonly value: bigint;
}

/**
 * A placeholder for a UUID of version 7 that the commit makes. {@link Kv.uuidv7} returns it; it can
 * be any part of a key that is written, and anywhere inside a value. One placeholder becomes the
 * same UUID in everything that one commit writes; two placeholders become different ones. UUIDs of
 * later commits of a database sort after those of earlier commits, whatever clocks do. Committed
 * again, a placeholder becomes a new UUID.
 *
 * It has no text: to build a string or JSON from it is a `TypeError`.
 */
export class KvUuidV7 {
  private constructor();

  /**
   * Returns the UUID that it became in the commit of that result.
   *
   * @throws TypeError when the commit did not use it.
   */
  uuidIn(result: KvCommitResult): string;
  toString(): string;
  readonly [Symbol.toStringTag]: string;
}

/**
 * When a written entry expires. At most one of the two: both are a `TypeError`.
 *
 * @example
 * const midnight = new Date(new Date().setHours(24, 0, 0, 0));
 * await kv.set(["coupon"], "ABC", { expireAt: midnight });
 */
export interface KvExpireOptions {
  /**
   * Time from the commit to the expiry: milliseconds, a non-negative integer, or a text (`"1h"`). 0: the
   * entry is absent at once.
   */
  expireIn?: KvDuration | undefined;
  /**
   * The time of the expiry: a date, or milliseconds since the epoch. If it has passed, the entry is
   * absent at once, and replaces the previous entry. `null` means the same as leaving it out.
   */
  expireAt?: Date | number | null | undefined;
}

/** Options of {@link AtomicOperation.sum}; the bounds have the type of the operand. */
export interface KvSumOptions<N extends number | bigint = number | bigint> extends KvExpireOptions {
  /** The smallest result. Default: none. */
  min?: N | undefined;
  /** The largest result. Default: none. */
  max?: N | undefined;
  /**
   * Stores the bound in place of a result beyond it, and keeps a `KvU64` within 0…2^64 − 1.
   * Default: false, which fails the commit.
   */
  clamp?: boolean | undefined;
}

/**
 * A duration: an integer of milliseconds, or a text of numbers with units (`ms`, `s`, `m`, `h`, `d`): `"30s"`,
 * `"1h30m"`, `"7d"`.
 */
export type KvDuration = number | string;

/** Options of {@link Kv.lease}. */
export interface KvLeaseOptions {
  /**
   * How long the lease is held without a renewal: after this time another caller gets the lease of a process that
   * has died or hangs. At least 100 ms. It is renewed three times in this time. Default: 10 s.
   */
  ttl?: KvDuration | undefined;
  /**
   * How long to wait for the lease while another caller has it: a duration, `true` for as long as it takes, or
   * `false` for not at all. Default: true.
   */
  wait?: KvDuration | boolean | undefined;
  /** Ends the wait: the call rejects with the reason. It has no effect on a lease that is held. */
  signal?: AbortSignal | undefined;
}

/**
 * A lease that this caller holds, from {@link Kv.lease}. It is renewed in the background until it is released or
 * lost, or the handle is closed. It does not keep the process alive.
 */
export interface KvLease extends AsyncDisposable {
  /** Its key. */
  readonly key: KvKey;
  /**
   * The fencing token: the versionstamp of the acquisition, 20 hexadecimal digits. Each later acquisition of the key
   * has a greater one, also after a release; texts of this form compare as their numbers do.
   */
  readonly token: string;
  /**
   * Aborted when the lease is not held any more: it was released; its entry has expired or was changed; or it was not
   * renewed within its `ttl` by the monotonic clock of this process. Its reason is a {@link KvError} with the code
   * `CONFLICT` if the lease was lost. A process that hangs learns of this late: what must not happen without the
   * lease belongs into a commit with {@link AtomicOperation.checkLease}.
   */
  readonly signal: AbortSignal;
  /** Lets go of the lease, for the next caller. Resolves to whether it was held until then. */
  release(): Promise<boolean>;
}

/** Options of {@link Kv.limiter}. */
export interface KvLimiterOptions {
  /** The points in `per`, from 0, which allows none, to 1000000000. */
  limit: number;
  /** The time of the limit. */
  per: KvDuration;
  /**
   * How it counts. `"fixed"`: a window of `per` begins with the first take, and has `limit` points. `"sliding"`: as
   * fixed windows one after the other, with the points of the previous one counted by the part of it that the last
   * `per` still covers, as if they were spread evenly. `"token-bucket"`: a bucket of `limit` points, filled evenly
   * with `limit` points in `per`. Default: `"fixed"`.
   */
  algorithm?: "fixed" | "sliding" | "token-bucket" | undefined;
}

/** The answer of a limiter. */
export interface KvLimit {
  /** Whether the points were there. */
  allowed: boolean;
  /** The `limit` of the limiter. */
  limit: number;
  /** The points that are left. */
  remaining: number;
  /**
   * Milliseconds until the same take is allowed, if no other one comes before; 0 if it is allowed; `Infinity` if it
   * has more points than `limit`.
   */
  retryAfter: number;
  /** Milliseconds until all points are back, if none are taken; 0 if all are there. */
  resetAfter: number;
}

/** A limiter of one key, from {@link Kv.limiter}. */
export interface KvLimiter {
  /**
   * Takes `cost` points, 1 to 1000000000, or none if there are not enough. Default: 1. One commit, which reads
   * nothing before. Rejects with `TypeError` if the key holds a value that no limiter has stored; else as {@link
   * AtomicOperation.commit}.
   */
  take(cost?: number): Promise<KvLimit>;
  /** What {@link take} would answer. Takes nothing; it is a commit too, which changes no entry. */
  peek(cost?: number): Promise<KvLimit>;
  /** Gives all points back: deletes the entry. Rejects as {@link take}. */
  reset(): Promise<void>;
}

/** Options of {@link Kv.once}. */
export interface KvOnceOptions {
  /** How long the result is kept. Default: until its entry is deleted. */
  ttl?: KvDuration | undefined;
  /** The `ttl` of the lease under which the function runs. Default: 10 s. */
  leaseTtl?: KvDuration | undefined;
  /**
   * Ends the wait for another caller's run. A function that runs already is not ended: it gets the signal of its
   * lease.
   */
  signal?: AbortSignal | undefined;
}

/** Options of {@link Kv.createIndex}. */
export interface KvIndexOptions extends KvCallOptions {
  /** Default: `"fulltext"`. For `"value"` see {@link KvValueIndexOptions}. */
  type?: "fulltext" | undefined;
  /** The index covers the keys that extend this one. No two indexes have the same prefix. */
  prefix: KvKey;
  /**
   * Paths into the values, at most 32: names separated by dots (`"details.maker"`), which step into
   * objects, Maps and arrays (by index or, without one, into every item). Text under them is
   * strings, numbers, bigints and arrays and Sets of these.
   */
  fields: readonly string[];
  /**
   * How text becomes terms: `"auto"` takes words, folds case and diacritics, and finds any part of a
   * text in a script without spaces between words (Chinese, Japanese, Korean, Thai, Lao, Khmer,
   * Myanmar); `"unicode61"` takes what is between spaces and signs, in every script; `"porter"` also
   * reduces English words to their stems; `"ascii"` folds ASCII only; `"trigram"` finds any three or
   * more characters in a row, also inside words, and nothing for a term with fewer.
   *
   * Default: `"auto"`. Without this option an existing index of `"unicode61"`, the default of earlier
   * versions, is the same index; `tokenize: "auto", replace: true` builds it again.
   */
  tokenize?: "auto" | "unicode61" | "porter" | "ascii" | "trigram" | undefined;
  /**
   * Lengths in characters (1 to 32, at most 4 of them) of indexed beginnings of terms: queries like
   * `ab*` of these lengths are as fast as whole terms. Default: none.
   */
  prefixLengths?: readonly number[] | undefined;
  /** A name, 1 to 256 bytes. Default: made from the prefix. */
  name?: string | undefined;
  /**
   * If the prefix has an index with another description, drops it in the same commit. Searches find
   * older entries again when the new index is built. Default: false, an error.
   */
  replace?: boolean | undefined;
}

/** A full-text index, as {@link Kv.listIndexes} returns it. */
export interface KvIndexInfo {
  type: "fulltext";
  name: string;
  prefix: KvEntryKey;
  fields: readonly string[];
  tokenize: "auto" | "unicode61" | "porter" | "ascii" | "trigram";
  prefixLengths: readonly number[];
  /** `"building"` while entries older than the index are still being added. */
  state: "building" | "ready";
  /** The number of those that have been read. */
  indexed: number;
  /** The number of entries with text in any of the fields. */
  documents: number;
}

/** The progress of building an index. */
export interface KvIndexProgress {
  /** The number of read entries that are older than the index. */
  indexed: number;
  /**
   * About how many there are in all: the entries under the prefix, counted once during the
   * building; `null` until then. Never less than `indexed`, and equal to it when `done`.
   */
  total: number | null;
  /** The index is complete. */
  done: boolean;
}

/** A full-text index that was created or existed. */
export interface KvIndex {
  readonly type: "fulltext";
  readonly name: string;
  readonly prefix: KvEntryKey;
  readonly fields: readonly string[];
  readonly tokenize: "auto" | "unicode61" | "porter" | "ascii" | "trigram";
  readonly prefixLengths: readonly number[];
  /** As of the last `progress` or `ready`. */
  readonly state: "building" | "ready";
  /**
   * Yields the progress of the building when it changes, and `done: true` at the end. Each use is a
   * new iterator.
   */
  readonly progress: AsyncIterableIterator<KvIndexProgress>;
  /**
   * Resolves when the index is complete. Rejects with {@link KvError} of code `CONFLICT` if the
   * index is dropped before, with {@link BadResource} if the handle is closed; the next opening of
   * the file for writing continues the building.
   */
  ready(options?: KvCallOptions): Promise<void>;
}

/** A path of a value index, with its order. */
export interface KvIndexPath {
  readonly path: string;
  readonly order: "asc" | "desc";
}

/** The definition of a value index. An unknown name is a `TypeError`. */
export interface KvValueIndexOptions extends KvCallOptions {
  type: "value";
  /** The index covers the keys that extend this one. A prefix can have several value indexes. */
  prefix: KvKey;
  /** The paths, as in {@link KvFilter}, at most 8, the most significant first; each with an order (default `"asc"`). */
  on:
    | string
    | { path: string; order?: "asc" | "desc" | undefined }
    | readonly (string | { path: string; order?: "asc" | "desc" | undefined })[];
  /**
   * No two entries have the same values under all paths; an entry where one of them is absent or `null` is no
   * part of this. A write that would break it rejects with {@link KvUniqueError}, or, if it has checks, resolves
   * with {@link KvCommitRefusal.violations}.
   * Default: false.
   */
  unique?: boolean | undefined;
  /** Each element of an array or Set under the first path has an entry. Such an index has no order. Default: false. */
  multi?: boolean | undefined;
  /** An entry without a value under the first path is not in the index. Default: false. */
  sparse?: boolean | undefined;
  /** A name, 1 to 256 bytes, that no other index has. Default: made from the prefix and the paths. */
  name?: string | undefined;
  /** If another value index has the name, drops it in the same commit. Default: false, an error. */
  replace?: boolean | undefined;
}

/** A value index, as {@link Kv.listIndexes} returns it. */
export interface KvValueIndexInfo {
  type: "value";
  name: string;
  prefix: KvEntryKey;
  on: readonly KvIndexPath[];
  unique: boolean;
  multi: boolean;
  sparse: boolean;
  /**
   * `"building"` while entries older than the index are still being added; `"failed"` if a unique index met
   * two entries with one value, or a value that cannot be unique: it is not used, and refuses nothing.
   */
  state: "building" | "ready" | "failed";
  /** The number of older entries that have been read. */
  indexed: number;
  /** Of a failed index: the entry that does not fit, and the one with the same value; `null` if the value itself cannot be unique. */
  failure: { key: KvEntryKey; other: KvEntryKey | null } | null;
}

/** A value index that was created or existed. */
export interface KvValueIndex {
  readonly type: "value";
  readonly name: string;
  readonly prefix: KvEntryKey;
  readonly on: readonly KvIndexPath[];
  readonly unique: boolean;
  readonly multi: boolean;
  readonly sparse: boolean;
  /** As of the last `progress` or `ready`. */
  readonly state: "building" | "ready" | "failed";
  /** As {@link KvIndex.progress}; throws as `ready` rejects. */
  readonly progress: AsyncIterableIterator<KvIndexProgress>;
  /** As {@link KvIndex.ready}. Rejects with {@link KvUniqueError} if two entries have a value of a unique index. */
  ready(options?: KvCallOptions): Promise<void>;
}

/** What a list reads, as {@link Kv.explain} returns it. */
export interface KvExplanation {
  /**
   * How the entries are found: `"index"` by value indexes, `"scan"` by their keys, `"sort"` by their keys, or by value
   * indexes for `where`, and then sorted in memory. Lists never read a full-text index; {@link Kv.search} does.
   */
  method: "index" | "scan" | "sort";
  /** What is read of value indexes: one branch, or one for each alternative of an `$or`; none without an index. */
  branches: KvExplainedBranch[];
  /**
   * Why no index is read, or with `"sort"` why none has the order; `null` if indexes do all that `where` and `orderBy`
   * ask for, or if there is neither.
   */
  reason: string | null;
  /** The number of entries of indexes that were read. */
  indexEntries: number;
  /** The number of entries that were read, with their values if `where` or `orderBy` needs them. */
  visited: number;
  /** The number of those that `where` or `depth` leaves out. */
  filtered: number;
  /** The number of entries that the list yields. */
  returned: number;
  /**
   * False if the explanation ended behind 100,000 read entries, of indexes and of the database together: the
   * numbers are those until then.
   */
  complete: boolean;
}

/** What a list reads of one value index. */
export interface KvExplainedBranch {
  /** The name of the index. */
  index: string;
  /** The first paths of the index, with the values that are read, in words. None: the whole index is read. */
  bounds: { path: string; ranges: string[] }[];
}

/** Options of {@link Kv.search}. An unknown name is a `TypeError`. */
export interface KvSearchOptions<T = unknown> extends KvCallOptions {
  /** Most entries, 1 to 1000, counted after the filter. Default: 20. */
  limit?: number | undefined;
  /** Entries to skip first, at most 1,000,000; not together with `cursor`. Default: 0. */
  offset?: number | undefined;
  /**
   * {@link KvSearchResult.cursor} of a result for the same query: the search continues after it.
   */
  cursor?: string | null | undefined;
  /** Only entries whose value matches this filter. */
  where?: KvFilter<T> | undefined;
  /**
   * Adds {@link KvSearchEntry.highlights}: `true`, or an object with the text before a match
   * (default `<b>`), after it (`</b>`) and in place of omitted text (`…`), each at most 256 bytes,
   * and the most terms of a snippet (1 to 64, default 32). The text between is as it was stored:
   * escape it before it becomes HTML.
   */
  highlight?:
    | boolean
    | {
        before?: string | undefined;
        after?: string | undefined;
        ellipsis?: string | undefined;
        terms?: number | undefined;
      }
    | undefined;
}

/** An entry that a search found. */
export interface KvSearchEntry<T> extends KvEntry<T> {
  /** BM25: larger is better. Comparable within one result only. */
  score: number;
  /** With `highlight`: a snippet of each field with a match. */
  highlights?: Record<string, string>;
}

/** A page of a search. */
export interface KvSearchResult<T> {
  /** Best first; equal scores in the order in which they were indexed. */
  entries: KvSearchEntry<T>[];
  /** Where the next page continues; `null` at the end. */
  cursor: string | null;
  hasMore: boolean;
  /** False while the index is being built: older entries may be missing. */
  complete: boolean;
}

/** Options of {@link Kv.enqueue}. */
export interface KvEnqueueOptions {
  /**
   * The time from the commit to the first delivery, in milliseconds, at most 30 days. Default: 0.
   */
  delay?: KvDuration | undefined;
  /**
   * The keys under which the value is stored when the last delivery has failed, at most ten.
   * Default: none.
   */
  keysIfUndelivered?: readonly KvKey[] | undefined;
  /**
   * Waiting times before each new delivery of a failed message, in milliseconds: at most
   * `limits.backoffIntervalsMax` of them (five unless {@link openKv} says otherwise), each at most
   * `limits.backoffIntervalMsMax` (an hour). Default: `[100, 1000, 5000, 30000, 60000]`, as far as
   * these limits allow it.
   */
  backoffSchedule?: readonly KvDuration[] | undefined;
}

/**
 * A backoff schedule whose intervals double: `base`, twice `base`, and so on, up to `max`. It is the list of
 * these intervals from the enqueue on.
 *
 * @example
 * const backoffSchedule = { type: "exponential", base: 500, max: 60_000, jitter: 0.5, attempts: 6 };
 * await kv.queue("mail").enqueue({ to: "ada" }, { backoffSchedule });
 */
export interface KvExponentialBackoff {
  type: "exponential";
  /** The first interval, 1 ms to `limits.backoffIntervalMsMax`. */
  base: KvDuration;
  /** The longest interval, `base` to `limits.backoffIntervalMsMax`. Default: the latter. */
  max?: KvDuration | undefined;
  /**
   * Each interval is shorter by a random share of up to this, 0 to 1, so that messages that fail together
   * are not tried again together. Default: 0.
   */
  jitter?: number | undefined;
  /**
   * The number of deliveries, the first included: 1 to one more than `limits.backoffIntervalsMax`. Default: as many
   * as possible.
   */
  attempts?: number | undefined;
}

/** Options of {@link KvQueue.enqueue}. An unknown name is a `TypeError`. */
export interface KvQueueEnqueueOptions {
  /**
   * The time from the commit to the first delivery, in milliseconds, at most 30 days. Default: 0.
   */
  delay?: KvDuration | undefined;
  /** The time of the first delivery: a date, or ms since the epoch. Not together with `delay`. */
  at?: Date | number | undefined;
  /**
   * Waiting times before each new delivery of a failed message, in milliseconds; their number and
   * length are limited as in {@link KvEnqueueOptions}. A message that fails when none is left is
   * dead. Or a rule for them, {@link KvExponentialBackoff}. Default: `[1000, 5000, 10000]`.
   */
  backoffSchedule?: readonly KvDuration[] | KvExponentialBackoff | undefined;
  /** The keys under which its value is stored when it dies, at most ten. Default: none. */
  keysIfUndelivered?: readonly KvKey[] | undefined;
  /**
   * While a message with this key is in the queue, neither done nor dead, another one adds nothing:
   * `deduplicated` of the result is true. The message of a running handler is in the queue too: a
   * handler that enqueues its own key again acknowledges its message in the same commit, by {@link
   * AtomicOperation.ack} (docs/queues.md, "Chains").
   * Not empty, at most 1024 bytes in UTF-8. Default: none.
   */
  deduplicationKey?: string | undefined;
  /**
   * What the message does if its `deduplicationKey` is taken. `"drop"`: it adds nothing. `"replace"`: the
   * message that waits gets the value and all options of this one, but keeps its id and when it is due.
   * `"debounce"`: its due time too, so that a `delay` begins anew. A message that a consumer has is not
   * changed: with `"replace"` and `"debounce"` this one is added beside it, and has the key from then on.
   * `"again"`: if a consumer has the other message, this one is added, has the key, and is delivered once that one
   * is done, dead or cancelled; else it adds nothing. `id` of the result is that of the message which stands.
   * Default: `"drop"`.
   */
  deduplication?: "drop" | "replace" | "debounce" | "again" | undefined;
  /**
   * Its group. The groups of a queue take turns, and each keeps the limits of {@link KvQueue.setLimits}. A
   * `deduplicationKey` counts in its group. 1 to 256 bytes in UTF-8 without control characters. Default: none.
   */
  group?: string | undefined;
  /**
   * 0 to 9: of the due messages, those with the highest priority are delivered first. Default: 0.
   */
  priority?: number | undefined;
  /** How long a dead message is kept, in milliseconds. Default: that of {@link Kv.queue}. */
  deadRetention?: KvDuration | undefined;
  /**
   * The longest time of its handlers, in ms, 1 to 86400000, as the `timeout` of {@link KvQueue.listen}, in place
   * of that one. {@link KvQueue.receive} has no handler, so it has no effect there. Default: the listener's.
   */
  timeout?: KvDuration | undefined;
  /**
   * How long what is known of the message is kept: its result for {@link KvQueue.result}, and the entries from
   * which {@link KvQueue.events} reads. Without it nothing is kept. Default: that of {@link Kv.queue}.
   */
  keepResult?: KvDuration | undefined;
}

/** When a schedule is due, for {@link KvQueue.schedule}: by a cron pattern, or at an interval. */
export type KvScheduleTiming = (
  | {
      /**
       * Five fields (minute, hour, day of the month, month, weekday), six with seconds in front, or seven with
       * years behind: `*`, lists, ranges, steps, names (`MON`, `JAN`), `L` (the last day), `W` (the nearest
       * weekday), `#` (`MON#1`, the first Monday), and `@daily` and the like. At most 256 bytes.
       */
      cron: string;
      /** The IANA name of the time zone of the pattern. Default: `"UTC"`. */
      timeZone?: string | undefined;
    }
  | {
      /**
       * The interval in ms or with a unit (`"5m"`), from 10 ms to 31536000000 ms (a year). The due times are its multiples
       * since 1970, in UTC.
       */
      every: KvDuration;
      /** Added to each due time, in ms or with a unit (`"30s"`), less than `every`. Default: 0. */
      offset?: KvDuration | undefined;
    }
) & {
  /**
   * What happens for due times that no process could keep for 10 s or longer, because none had the database open:
   * `"skip"`: they give no message; `"once"`: one message for all of them; `"all"`: each gives its message.
   * Default: `"once"`.
   */
  missed?: "skip" | "once" | "all" | undefined;
};

/** What each message of a schedule is, beside its value: the options of an enqueue without a due time. */
export type KvScheduleOptions = Omit<KvQueueEnqueueOptions, "delay" | "at">;

/** A schedule, as {@link KvQueue.schedules} lists it. */
export interface KvSchedule<T = any> {
  name: string;
  /** Its pattern; absent if it has an interval. */
  cron?: string;
  /** The time zone of the pattern. */
  timeZone?: string;
  /** Its interval in ms; absent if it has a pattern. */
  every?: number;
  /** What is added to the multiples of the interval, in ms. */
  offset?: number;
  missed: "skip" | "once" | "all";
  /** Its next due time. */
  nextAt: Date;
  /** The priority of its messages. */
  priority: number;
  /** The value of its messages. */
  value: T;
}

/** A message that a consumer has, for {@link AtomicOperation.ack}. */
export interface KvMessageInfo<T = any> {
  /** Its number as text; no other message of the database ever has the same. */
  readonly id: string;
  readonly value: T;
  /** How often it has been delivered, this time included. */
  readonly attempts: number;
  /** How often it can be delivered again if it fails. With 0 it is dead after this failure. */
  readonly attemptsLeft: number;
  readonly enqueuedAt: Date;
  /** Its group, or `null`. */
  readonly group: string | null;
  /** The schedule that has made it, and the due time for which; `null` for a message that was enqueued. */
  readonly schedule: { readonly name: string; readonly dueAt: Date } | null;
}

/** A message, as the handler of {@link KvQueue.listen} gets it. */
export interface KvHandledMessage<T = any> extends KvMessageInfo<T> {
  /**
   * Aborts when the handler should stop, because its outcome has no effect any more: `reason.name` is
   * `"TimeoutError"` after the `timeout` of the message or of the listener, `"Cancelled"` after {@link
   * KvQueue.cancel}, in whichever process, and `"LockLost"` if another consumer may have the message.
   */
  readonly signal: AbortSignal;
  /**
   * Tells how far the handler is: any value that can be stored. {@link KvQueue.progress} reads the last one,
   * and {@link KvQueue.events} yields it. It is kept as long as the result, or for an hour if none is kept.
   * Rejects as {@link Kv.set}.
   */
  progress(value: unknown): Promise<void>;
}

/**
 * A message from {@link KvQueue.receive}. Until its lock expires, no other consumer gets it; the
 * lock is not renewed automatically. Each method resolves to whether the message was still yours:
 * `false` if its lock expired and another consumer got it, or if it was settled before; nothing has
 * happened then.
 *
 * They reject with {@link BadResource} on a closed handle and with {@link KvError} if the database
 * cannot write; the message is then still yours, while its lock holds.
 */
export interface KvMessage<T = any> extends KvMessageInfo<T> {
  /**
   * Acknowledges the message: it is removed. Resolves when that is durable.
   *
   * @param result Kept in the same commit for {@link KvQueue.result}, if the message has `keepResult`.
   */
  ack(result?: unknown): Promise<boolean>;
  /** As {@link KvHandledMessage.progress}. */
  progress(value: unknown): Promise<void>;
  /**
   * Reports a failure: the message is delivered again after the next interval of its
   * `backoffSchedule`, or after `delay` ms instead. Both use up an interval; if none is left, the
   * message dies.
   *
   * @param options.error Kept with the dead letter: an `Error`, or any value as text.
   * @param options.retry With `false` no other attempt can help: the message dies now. Not together with
   *   `delay`. Default: true.
   */
  nack(options?: {
    delay?: KvDuration | undefined;
    error?: unknown;
    retry?: boolean | undefined;
  }): Promise<boolean>;
  /** Sets the expiry of its lock to `ms` from now, 100 to 86400000 (a day). */
  extend(ms: KvDuration): Promise<boolean>;
}

/** The number of messages of a queue in each state. */
export interface KvQueueStats {
  /** Due, and without a consumer. */
  pending: number;
  /** Not due yet: delayed, or waiting for the next retry. */
  delayed: number;
  /** With a consumer whose lock holds. */
  processing: number;
  /** Dead and kept. */
  dead: number;
  /** All of them. */
  total: number;
  /** Whether the queue is {@link KvQueue.pause | paused}. */
  paused: boolean;
}

/** How a message has ended, for {@link KvQueue.result}. */
export type KvJobResult<R = any> =
  /** Its handler has returned `value`, or a receiver has acknowledged it with that. */
  | { state: "completed"; value: R; at: Date }
  /** It has failed, and no retry is left. */
  | { state: "dead"; error: { name: string; message: string }; at: Date }
  /** {@link KvQueue.cancel} has removed it. */
  | { state: "cancelled"; at: Date };

/** What has happened to a message with `keepResult`, as {@link KvQueue.events} yields it. */
export interface KvJobEvent<R = any> {
  /**
   * `"failed"`: a delivery has failed, and a retry follows. `"dead"`: no retry is left. `"enqueued"` comes
   * with the commit of the enqueue, `"completed"` with that of the acknowledgement.
   */
  type: "enqueued" | "started" | "progress" | "failed" | "completed" | "dead" | "cancelled";
  /** The id of the message. */
  id: string;
  at: Date;
  /** The number of the delivery; absent for `"enqueued"` and `"cancelled"`. */
  attempts?: number;
  /** The result of `"completed"`, or the value of `"progress"`. */
  value?: R;
  /** The error of `"failed"` and `"dead"`. */
  error?: { name: string; message: string };
  /** That of the commit; `since` continues behind it. */
  versionstamp: string;
}

/** A message as {@link KvQueue.peek} shows it. */
export interface KvPeekedMessage<T = any> {
  /** The id of the message. */
  id: string;
  value: T;
  /** As in {@link KvQueueStats}. */
  state: "pending" | "delayed" | "processing";
  /** 0 to 9; the highest is delivered first. */
  priority: number;
  /** Its group, or `null`. */
  group: string | null;
  /** The number of deliveries so far. */
  attempts: number;
  enqueuedAt: Date;
  /** When it is due, or was due before its last delivery. */
  dueAt: Date;
  /** The end of its consumer's lock; `null` unless its state is `"processing"`. */
  lockedUntil: Date | null;
}

/** A message for which no interval of its `backoffSchedule` was left. */
export interface KvDeadMessage<T = any> {
  /** The id of the message. */
  id: string;
  value: T;
  /**
   * The error of its last delivery; the name is `"LockExpired"` if the lock of its consumer
   * expired.
   */
  error: { name: string; message: string };
  attempts: number;
  enqueuedAt: Date;
  firstAttemptAt: Date;
  lastAttemptAt: Date;
  diedAt: Date;
}

/**
 * The dead messages of a queue. All methods reject with `TypeError` for a wrong argument and with
 * {@link BadResource} on a closed handle.
 */
export interface KvDeadLetters<T = any> {
  /**
   * Returns a page of dead letters, in the order of their deaths. `cursor` continues behind the
   * page, and is `null` at the end.
   *
   * @param options.limit 1 to 1000. Default: 100.
   *
   * @example
   * const { messages, cursor } = await kv.queue("mail").dead.list({ limit: 20 });
   */
  list(options?: {
    limit?: number | undefined;
    cursor?: string | null | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<{ messages: KvDeadMessage<T>[]; cursor: string | null }>;
  /** Returns one of them, or `null` if there is none with this id. */
  get(id: string, options?: KvCallOptions): Promise<KvDeadMessage<T> | null>;
  /**
   * Puts a dead letter back into its queue, due now, with its id, its whole `backoffSchedule` and
   * no attempts. Resolves to whether there was one.
   */
  requeue(id: string, options?: KvCallOptions): Promise<boolean>;
  /**
   * Puts all dead letters back into the queue, as `requeue` does, those that died first. Resolves to their number. It
   * works in bounded steps: writers wait for one of them at most. Those that die after the call stay.
   */
  requeueAll(options?: KvCallOptions): Promise<number>;
  /** Deletes a dead letter. Resolves to whether there was one. */
  delete(id: string, options?: KvCallOptions): Promise<boolean>;
  /**
   * Deletes the dead letters that died more than `olderThan` ms ago, or all of them without
   * `olderThan`. Resolves to their number. It works in bounded steps: writers wait for one of them
   * at most.
   */
  purge(options?: {
    olderThan?: KvDuration | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<number>;
}

/**
 * A named queue. Messages are delivered at least once, to one consumer at a time, in any process on
 * the file: by priority, then due time, then in the order of enqueueing.
 */
export interface KvQueue<T = any> {
  readonly name: string;
  /** Its dead letters. */
  readonly dead: KvDeadLetters<T>;

  /**
   * Adds a message. Resolves with its id when it is durable. If its `deduplicationKey` was taken,
   * nothing is added: then `deduplicated` is true, and the id is that of the existing message.
   * Rejects as {@link Kv.set}.
   *
   * @example
   * await kv.queue("mail").enqueue({ to: "ada" }, { delay: 5000, priority: 9 });
   */
  enqueue(value: T, options?: KvQueueEnqueueOptions & KvCallOptions): Promise<KvEnqueueResult>;

  /**
   * Handles messages until `signal` aborts or the handle closes. A message is done when the handler
   * returns or its promise resolves. If the handler throws or rejects, or the process dies, the
   * message is delivered again as its `backoffSchedule` says, and is dead when no interval is left, or at
   * once after a {@link KvDoNotRetry}; the error is kept with it, and reported as `options.onError` says. While a handler runs, the
   * lock of its message is renewed, so no other consumer gets it. Listeners in all processes share
   * the work in turn.
   *
   * Resolves after `signal` aborts or the handle closes, when the running handlers have ended, at most
   * `drain` ms later, and what they settled is durable. Keeps the process alive until then.
   *
   * Rejects with {@link BadResource} on a closed handle, with `TypeError` for a wrong argument, with
   * {@link KvError} of code `DENIED` on a read-only one.
   *
   * @param options.concurrency Messages handled at a time, 1 to 1000. Default: 10.
   * @param options.lockDuration The time after which the message of a dead consumer is delivered
   *   again, in ms, 100 to 86400000 (a day). Default: 5000, less than that of {@link receive}: the
   *   lock is renewed while the handler runs, so it only has to outlast a pause of the process.
   * @param options.timeout The longest time of a handler, in ms, 1 to 86400000. Then the `signal` of its
   *   message aborts, and the message fails with an error of the name `"TimeoutError"`; how the handler ends
   *   has no effect any more. Default: none.
   * @param options.drain How long the end waits for running handlers, in ms, 0 to 86400000. The message
   *   of a handler that runs for longer is delivered again when its lock expires. Default:
   *   `lockDuration`.
   * @param options.onError Called with the error of a handler, and its message, at each failure.
   *   Default: the first failure of a listener is a warning of the process; later ones are not
   *   reported.
   * @param options.signal Ends the listening.
   *
   * @example
   * const stop = new AbortController();
   * const listening = kv.queue("mail").listen(async (mail) => await send(mail), {
   *   concurrency: 4,
   *   signal: stop.signal,
   * });
   */
  listen(
    handler: (value: T, message: KvHandledMessage<T>) => unknown,
    options?: KvListenOptions<T>,
  ): Promise<void>;

  /**
   * Takes one message; resolves to `null` if none is due. With `wait`, waits that many ms for one,
   * without polling.
   *
   * Rejects with {@link BadResource} if the handle is closed or closes meanwhile, with the reason
   * of `signal` if it aborts, with `TypeError` for a wrong argument, with {@link KvError} of code
   * `DENIED` on a read-only handle.
   *
   * @param options.lockDuration The duration of the lock, in ms, 100 to 86400000 (a day). Default:
   *   30000, more than that of {@link listen}: only {@link KvMessage.extend} renews this lock, so
   *   it has to outlast the work.
   * @param options.wait 0 to 86400000. Default: 0.
   *
   * @example
   * const message = await kv.queue("mail").receive({ wait: 10_000 });
   * if (message !== null) {
   *   await send(message.value);
   *   await message.ack();
   * }
   */
  receive(options?: KvReceiveOptions): Promise<KvMessage<T> | null>;

  /**
   * Returns a page of its messages without taking them: they stay where they are, and no consumer
   * notices. They are in the order of delivery: first the pending ones, as {@link receive} gives them,
   * by priority, since when they are due, and id; then the delayed ones, by the time at which they are
   * due, priority and id; then those that a consumer has, by the end of their lock, priority and id.
   * `cursor` continues behind the page, and is `null` at the end. All pages have the order and the states of
   * the moment of the first; a message that is taken, settled or enqueued between two pages may be in both
   * or in neither. {@link dead} has the dead ones.
   *
   * Rejects as {@link Kv.get}; with {@link KvError} of code `UNSUPPORTED` on a server of Deno's
   * protocol alone.
   *
   * @param options.state Only messages in this state.
   * @param options.limit 1 to 1000. Default: 100.
   *
   * @example
   * const { messages } = await kv.queue("mail").peek({ state: "processing" });
   * for (const { id, attempts, lockedUntil } of messages) console.log(id, attempts, lockedUntil);
   */
  peek(options?: KvPeekOptions): Promise<{ messages: KvPeekedMessage<T>[]; cursor: string | null }>;

  /**
   * Deletes a message that waits: it is due, delayed, or waits for its next retry. It leaves no dead
   * letter, and no value under its `keysIfUndelivered`; its `deduplicationKey` is free again. Resolves
   * to false, without an effect, if the queue has no such message or if a consumer has it. To delete one
   * in a consumer's hands, acknowledge it there. {@link KvDeadLetters.delete} is for dead ones.
   *
   * Rejects as {@link Kv.set}; with `TypeError` for an id that is none; with {@link KvError} of code
   * `UNSUPPORTED` on a server that does not know it.
   *
   * @param id As {@link enqueue}, {@link receive} and {@link peek} give it.
   *
   * @example
   * const { id } = await kv.queue("mail").enqueue({ to: "ada" }, { delay: 60_000 });
   * console.log(await kv.queue("mail").delete(id)); // true
   */
  delete(id: string, options?: KvCallOptions): Promise<boolean>;

  /**
   * Sets a schedule: the queue gets a message with this value at each due time. The schedule is kept in the database,
   * and each due time gives one message, however many processes have the database open and whichever of them
   * restarts. A message is made by any process that has the database open for writing; none needs a listener for
   * it. Resolves when it is durable, to whether it has changed anything: to set the same schedule
   * again changes nothing, so every process may set it at its start. Another timing, value or option under the same name
   * replaces the schedule; the next due time is then the first of the new timing after now.
   *
   * Rejects as {@link enqueue}, with {@link KvError} of code `UNSUPPORTED` on a server that does not know schedules, and
   * with `TypeError` for a pattern that is invalid or never fires, an unknown time zone, and an interval that is out of
   * bounds.
   *
   * @param name 1 to 256 bytes in UTF-8 without control characters; other queues may have schedules of the same name.
   *
   * @example
   * await kv.queue("mail").schedule(
   *   "report",
   *   { cron: "0 8 * * MON-FRI", timeZone: "Europe/Berlin" },
   *   { kind: "report" },
   * );
   */
  schedule(
    name: string,
    timing: KvScheduleTiming,
    value: T,
    options?: KvScheduleOptions & KvCallOptions,
  ): Promise<boolean>;

  /**
   * Removes a schedule. Messages that it has made stay. Resolves to whether there was one. Rejects as {@link enqueue}.
   */
  unschedule(name: string, options?: KvCallOptions): Promise<boolean>;

  /**
   * Returns a page of its schedules, by their next due time. `cursor` continues behind the page, and is `null` at the
   * end. A schedule that becomes due between two pages may be in both. Rejects as {@link Kv.get}.
   *
   * @param options.limit 1 to 1000. Default: 100.
   *
   * @example
   * const { schedules } = await kv.queue("mail").schedules();
   * for (const { name, cron, nextAt } of schedules) console.log(name, cron, nextAt);
   */
  schedules(
    options?: KvSchedulesOptions,
  ): Promise<{ schedules: KvSchedule<T>[]; cursor: string | null }>;

  /** Counts its messages, without reading them. Rejects as {@link Kv.get}. */
  stats(options?: KvCallOptions): Promise<KvQueueStats>;

  /**
   * Pauses the queue, for all processes and across restarts, until {@link resume}: once this resolves, no
   * consumer gets a message. Messages are enqueued as ever. Handlers that run are not affected, and how they
   * end counts; retries wait. Without an effect on a queue that is paused. {@link stats} says whether it is.
   *
   * Rejects as {@link Kv.set}; with {@link KvError} of code `UNSUPPORTED` on a server that does not know it.
   *
   * @param options.group Pauses the messages of this group alone: {@link groups} says so, and {@link stats} does not.
   *
   * @example
   * await kv.queue("mail").pause();
   * console.log((await kv.queue("mail").stats()).paused); // true
   * await kv.queue("mail").resume();
   */
  pause(options?: KvGroupOptions): Promise<void>;
  /**
   * Ends a {@link pause}: the waiting consumers of all processes get messages again.
   *
   * @param options.group Ends the pause of this group; that of the queue stays.
   */
  resume(options?: KvGroupOptions): Promise<void>;

  /**
   * Gives the queue its limits, in place of those that it had, for all processes and across restarts: how many of
   * its messages consumers have at the same time, how many are delivered in a time, and the same of each of its
   * groups. Nothing polls: a consumer gets a message when a place is free or the rate allows it. A
   * consumer that dies frees its place when its lock ends. `{}` takes all limits away. Resolves when it is durable, to
   * whether it has changed anything.
   *
   * Rejects as {@link pause}, and with `TypeError` for a limit that is out of bounds.
   *
   * @example
   * await kv.queue("mail").setLimits({
   *   rate: { limit: 100, per: "1m" },
   *   group: { concurrency: 1, rate: { limit: 5, per: "1m" } },
   * });
   * await kv.queue("mail").enqueue({ to: "ada" }, { group: "customer 7" });
   */
  setLimits(limits: KvQueueLimits, options?: KvCallOptions): Promise<boolean>;
  /** The limits of the queue, with durations in ms. Rejects as {@link Kv.get}. */
  limits(options?: KvCallOptions): Promise<KvQueueLimits & { group: KvGroupLimits }>;

  /**
   * Returns a page of the groups that have messages which wait, by their turns. `cursor` continues behind the page,
   * and is `null` at the end. Rejects as {@link Kv.get}.
   *
   * @param options.limit 1 to 1000. Default: 100.
   */
  groups(options?: KvGroupsOptions): Promise<{ groups: KvGroup[]; cursor: string | null }>;

  /**
   * Deletes the messages that wait, and resolves to their number: those that are due, and with `delayed` also
   * those that are delayed or wait for a retry. Messages that consumers have, and those that are enqueued after
   * the call, stay. What is deleted becomes no dead letter. It works in bounded steps: writers wait for one of
   * them at most. Rejects as {@link pause}.
   *
   * @param options.delayed Default: false.
   * @param options.group Deletes the messages of this group alone.
   */
  drain(options?: KvDrainOptions): Promise<number>;

  /**
   * Removes a message, whether it waits or a consumer has it, and resolves to whether there was one. Nothing
   * that its consumer does settles it any more: an `ack` in a commit refuses that. The `signal` of a running
   * handler aborts, in whichever process: at once if the handler has read its signal. Rejects as
   * {@link pause}.
   *
   * @example
   * const { id } = await kv.queue("video").enqueue({ file: "a.mp4" }, { keepResult: "1h" });
   * console.log(await kv.queue("video").cancel(id)); // true
   * console.log((await kv.queue("video").result(id))?.state); // cancelled
   */
  cancel(id: string, options?: KvCallOptions): Promise<boolean>;

  /**
   * How a message with `keepResult` has ended: what its handler has returned, or its last error. Resolves to
   * `null` if it has not ended, or if nothing is kept of it (any more). A message that is requeued has its
   * earlier end until it ends again. Rejects as {@link Kv.get}.
   *
   * @param options.wait Ms to wait for the end, without polling, 0 to 86400000. Default: 0.
   *
   * @example
   * const sums = kv.queue<number[]>("sums");
   * const { id } = await sums.enqueue([1, 2], { keepResult: "1h" });
   * const end = await sums.result(id, { wait: 10_000 });
   * if (end?.state === "completed") console.log(end.value);
   */
  result<R = any>(id: string, options?: KvResultOptions): Promise<KvJobResult<R> | null>;

  /** The last value that a handler has reported by {@link KvHandledMessage.progress}; `undefined` without one. */
  progress<P = any>(id: string, options?: KvCallOptions): Promise<P | undefined>;

  /**
   * What happens to the messages with `keepResult`, in the order of the commits, in all processes: from now
   * on, or after `since`. It is a change feed (see {@link Kv.watch}), and costs a writer as much. Ends when
   * the handle closes or `signal` aborts.
   *
   * @example
   * for await (const { type, id } of kv.queue("mail").events()) console.log(type, id);
   */
  events<R = any>(options?: KvEventsOptions): ReadableStream<KvJobEvent<R>>;
}

/** The options of {@link KvQueue.pause} and {@link KvQueue.resume}. */
export interface KvGroupOptions extends KvCallOptions {
  /** Only this group, 1 to 256 bytes. Default: the whole queue. */
  group?: string | undefined;
}

/** The options of {@link KvQueue.drain}. */
export interface KvDrainOptions extends KvGroupOptions {
  delayed?: boolean | undefined;
}

/** The options of {@link KvQueue.groups}. */
export interface KvGroupsOptions extends KvCallOptions {
  limit?: number | undefined;
  cursor?: string | null | undefined;
}

/** What may run of a group, for {@link KvQueue.setLimits}. */
export interface KvGroupLimits {
  /** Messages that consumers have at the same time, 1 to 1000000. Default: any number. */
  concurrency?: number | undefined;
  /** `limit` deliveries in `per`, those of retries too, counted as {@link Kv.limiter} does. Default: any number. */
  rate?:
    | {
        limit: number;
        per: KvDuration;
        algorithm?: "fixed" | "sliding" | "token-bucket" | undefined;
      }
    | undefined;
}

/** What may run of a queue, for {@link KvQueue.setLimits}. */
export interface KvQueueLimits extends KvGroupLimits {
  /** Of each of its groups. */
  group?: KvGroupLimits | undefined;
}

/** A group with messages that wait. */
export interface KvGroup {
  name: string;
  /** Due, and without a consumer. */
  pending: number;
  /** Not due yet. */
  delayed: number;
  /** With a consumer whose lock holds. */
  processing: number;
  /** Whether it is paused. */
  paused: boolean;
}

/** The options of {@link KvQueue.result}. */
export interface KvResultOptions extends KvCallOptions {
  wait?: KvDuration | undefined;
}

/** The options of {@link KvQueue.events}. */
export interface KvEventsOptions extends KvCallOptions {
  /** The versionstamp of the last event that was handled. */
  since?: string | undefined;
}

/** The options of {@link KvQueue.listen}. */
export interface KvListenOptions<T = unknown> extends KvCallOptions {
  concurrency?: number | undefined;
  lockDuration?: KvDuration | undefined;
  timeout?: KvDuration | undefined;
  drain?: KvDuration | undefined;
  onError?: ((error: unknown, message: KvMessageInfo<T>) => unknown) | undefined;
}

/** The options of {@link KvQueue.receive}. */
export interface KvReceiveOptions extends KvCallOptions {
  lockDuration?: KvDuration | undefined;
  wait?: KvDuration | undefined;
}

/** The options of {@link KvQueue.peek}. */
export interface KvPeekOptions extends KvCallOptions {
  state?: "pending" | "delayed" | "processing" | undefined;
  limit?: number | undefined;
  cursor?: string | null | undefined;
}

/** The options of {@link KvQueue.schedules}. */
export interface KvSchedulesOptions extends KvCallOptions {
  limit?: number | undefined;
  cursor?: string | null | undefined;
}

/** Options of {@link AtomicOperation.enqueue} for a named queue. */
export interface KvNamedEnqueueOptions extends KvQueueEnqueueOptions {
  /** The queue's name, as in {@link Kv.queue}. */
  queue: string;
}

/** Names the type parameter of {@link AtomicOperation}. No value has it. */
declare const checked: unique symbol;

/**
 * Checks, mutations and messages that are committed together or not at all. Every method but
 * `commit` returns the operation, so calls can be chained. Keys and values are encoded when they
 * are passed: later changes of the objects have no effect.
 *
 * Nothing happens before {@link AtomicOperation.commit}; the operation is not a promise, and
 * awaiting it is a `TypeError`. As in Deno, values that cannot be stored and invalid options throw
 * at the call; an invalid key, and a value, message or `expireIn` over its limit, reject the
 * commit.
 *
 * @example
 * const from = await kv.get<number>(["account", "a"]);
 * const result = await kv.atomic()
 *   .check(from)
 *   .set(["account", "a"], from.value! - 10)
 *   .commit();
 * if (!result.ok) console.log("another writer was faster: read again and retry");
 */
export class AtomicOperation<Checked extends boolean = true> {
  private constructor();

  /** Whether a check may refuse the commit; for types only. */
  readonly [checked]?: Checked;

  /**
   * Adds checks; the commit happens only if all of them hold.
   *
   * @throws TypeError when one is null or undefined.
   */
  check(...checks: AtomicCheck[]): AtomicOperation;

  /**
   * Adds mutations, which happen in order.
   *
   * @throws TypeError when a `type` is unknown, a `value` is missing or too much, or cannot be
   *   stored.
   */
  mutate(...mutations: KvMutation[]): this;

  /**
   * Adds `n` to the stored number. The entry keeps its expiry, unless the options set another one.
   * (After `mutate({ type: "sum" })` it has none, as in Deno.)
   *
   * A bigint can be added to a {@link KvU64}, which stays a `KvU64`, and to a bigint of any size,
   * exactly. A number can be added to a number. Without an entry `n` itself is stored: a bigint
   * within 0…2^64 − 1 as a `KvU64` if there are no bounds, else unchanged. Without bounds a `KvU64`
   * wraps around at 2^64 when a bigint of that range is added, as in Deno; any other result that
   * does not fit it fails the commit, as does one beyond `min` or `max`, and a number that is not
   * finite.
   *
   * @throws TypeError when `n` is no bigint, finite number or `KvU64`, for an unknown option, and for
   *   a bound of another type than `n`; RangeError when `min` is above `max`.
   *
   * @example
   * await kv.atomic().sum(["visits"], 1n).sum(["temperature"], -0.5).commit();
   * await kv.atomic().sum(["stock"], -5n, { min: 0n }).commit(); // RangeError below 0n
   * await kv.atomic().sum(["attempts", ip], 1n, { expireIn: 60_000 }).commit();
   */
  sum(key: KvKey, n: bigint | KvU64, options?: KvSumOptions<bigint>): this;
  sum(key: KvKey, n: number, options?: KvSumOptions<number>): this;
  /** Keeps the smaller of the stored number and `n`, by the rules of {@link sum}. */
  min(key: KvKey, n: bigint | number | KvU64, options?: KvExpireOptions): this;
  /** Keeps the larger of the stored number and `n`, by the rules of {@link sum}. */
  max(key: KvKey, n: bigint | number | KvU64, options?: KvExpireOptions): this;

  /**
   * Adds items to the end of the stored array, or stores them if there is no entry. This happens
   * inside the commit: nothing is read before, and concurrent appends all take effect. The entry
   * keeps its expiry, unless the options set another one. The commit fails with `TypeError` if the
   * stored value is no array, or the result is over `limits.valueBytesMax`.
   *
   * @throws TypeError when `items` is no array, or cannot be stored, and for an unknown option.
   *
   * @example
   * await kv.atomic().append(["log"], [{ at: new Date(), what: "login" }]).commit();
   */
  append(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this;

  /** Adds items to the beginning of the stored array; otherwise as {@link append}. */
  prepend(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this;

  /**
   * Stores a value.
   *
   * @param options When the entry expires. Default: never.
   * @throws TypeError when the value cannot be stored, or for an option that {@link
   *   KvExpireOptions} does not allow.
   */
  set(key: KvKey, value: unknown, options?: KvExpireOptions): this;

  /** Removes an entry, if there is one. */
  delete(key: KvKey): this;

  /**
   * Sets the expiry of an entry, to `expireIn` milliseconds after the commit or to `expireAt`; does
   * nothing if there is no entry. Its value and its versionstamp do not change: checks on it hold,
   * and watches yield nothing.
   *
   * @throws TypeError when neither is given, for a value that {@link KvExpireOptions} does not
   *   allow, or for an unknown option.
   */
  touch(key: KvKey, options: KvExpireOptions): this;

  /** Removes the expiry of an entry; otherwise as {@link touch}. */
  persist(key: KvKey): this;

  /**
   * Adds a message for {@link Kv.listenQueue}, or with `queue` for that named queue, enqueued when
   * the commit happens.
   *
   * @throws TypeError when the message cannot be stored or an option is invalid.
   *
   * @example
   * await kv.atomic()
   *   .set(["orders", 7], order)
   *   .enqueue({ order: 7 }, { queue: "mail", deduplicationKey: "order 7" })
   *   .commit();
   */
  enqueue(value: unknown, options?: KvEnqueueOptions | KvNamedEnqueueOptions): this;

  /**
   * Acknowledges messages by the commit: they are removed, and everything else of the operation happens,
   * or nothing happens. If a message is not the consumer's any more, because its lock expired and another
   * consumer got it, the commit resolves to `{ ok: false }`, and `failed` has its index behind those of all
   * checks. A handler of {@link KvQueue.listen} returns afterwards as usual. The messages' own
   * deduplication keys are free for the messages that the operation enqueues.
   *
   * @param messages From {@link KvQueue.receive}, or those that the handler of {@link KvQueue.listen} gets.
   * @throws TypeError for something else.
   *
   * @example
   * await kv.queue("orders").listen(async (order, message) => {
   *   await kv.atomic()
   *     .sum(["sold", order.item], 1)
   *     .enqueue({ invoice: order.id }, { queue: "mail" })
   *     .ack(message)
   *     .commit();
   * });
   */
  ack(...messages: KvMessageInfo[]): AtomicOperation;

  /**
   * Sets a schedule by the commit, as {@link KvQueue.schedule} does. In `messages` of the result it has a place like an
   * enqueued message: `deduplicated` says that it has changed nothing.
   *
   * @param options Those of {@link KvQueue.schedule}, and `queue`.
   * @throws TypeError as {@link KvQueue.schedule}; what only the database knows is an error of the commit.
   *
   * @example
   * await kv.atomic()
   *   .set(["customers", 7], { report: true })
   *   .schedule("report 7", { cron: "0 8 * * MON" }, { customer: 7 }, { queue: "reports" })
   *   .commit();
   */
  schedule(
    name: string,
    timing: KvScheduleTiming,
    value: unknown,
    options: KvScheduleOptions & { queue: string },
  ): this;

  /** Removes a schedule by the commit, as {@link KvQueue.unschedule} does; without an effect if there is none. */
  unschedule(name: string, options: { queue: string }): this;

  /**
   * Inserts a document of a collection, as {@link KvCollection.insert} does: under a check that its id is free.
   *
   * @throws KvValidationError if the schema refuses the document; KvConflictError if the operation inserts one of the same
   *   id already; TypeError for something that is no collection.
   *
   * @example
   * await kv.atomic().insert(orders, order).sum(["sold", order.item], 1).enqueue(order.id).commit();
   */
  insert<T, Input, Id>(
    collection: KvCollection<T, Input, Id>,
    value: Input,
    options?: KvExpireOptions & { id?: Id },
  ): AtomicOperation;

  /**
   * Adds a check that a lease is held: if it has expired, was released or belongs to another caller at the commit,
   * nothing happens.
   *
   * @param lease From {@link Kv.lease}, or that of the function of {@link Kv.once}.
   * @throws TypeError for something else.
   *
   * @example
   * await using lease = await kv.lease(["jobs", "report"]);
   * const { ok } = await kv.atomic().checkLease(lease).set(["report"], "done").commit();
   */
  checkLease(lease: KvLease): AtomicOperation;

  /**
   * Commits the operation: everything happens, or nothing. Resolves to `{ ok: false }` if a check
   * failed. A second call commits it again. An empty operation commits too, and takes a
   * versionstamp.
   *
   * Without {@link check} the type of the result has no refusal: `const { versionstamp } = await
   * kv.atomic().set(key, value).commit()`. A variable keeps the type of its declaration: give one to
   * which checks are added later the type of operations with checks, `const op: AtomicOperation =
   * kv.atomic()`.
   *
   * Rejects with `TypeError` for an invalid key or check, for a limit, and for a `sum`, `min` or
   * `max` over something that is not a number of its kind; with {@link BadResource} when the handle
   * is closed; with {@link KvError} when the database cannot write. Nothing was written then; only
   * after `OUTCOME_UNKNOWN` the write may have happened.
   *
   * @param options.values Whether the result has `values`, the calculated results, of the state of
   *   this commit. Behind a server that is not openkv's, `UNSUPPORTED`. Default: false.
   *
   * @example
   * const result = await kv.atomic().sum(["ticket"], 1).commit({ values: true });
   * if (result.ok) console.log("your number is", result.values[0]);
   */
  commit(
    this: AtomicOperation<false>,
    options: { values: true } & KvCallOptions,
  ): Promise<KvAtomicResult & { values: KvCalculated[] }>;
  commit(
    this: AtomicOperation<false>,
    options?: { values?: boolean | undefined } & KvCallOptions,
  ): Promise<KvAtomicResult>;
  // With a `this` as well: else the compiler prefers these for an operation without checks.
  commit(
    this: AtomicOperation<boolean>,
    options: { values: true } & KvCallOptions,
  ): Promise<(KvAtomicResult & { values: KvCalculated[] }) | KvCommitRefusal>;
  commit(
    this: AtomicOperation<boolean>,
    options?: { values?: boolean | undefined } & KvCallOptions,
  ): Promise<KvAtomicResult | KvCommitRefusal>;
}

/** The kinds of operations that {@link KvMetrics} counts. */
export type KvOperationName =
  | "get"
  | "getWithExpiry"
  | "list"
  | "count"
  | "ttl"
  | "search"
  | "set"
  | "delete"
  | "touch"
  | "enqueue"
  | "atomic"
  | "deleteMany"
  | "settle"
  | "extend"
  | "backup"
  | "checkpoint"
  | "vacuum";

/** Counters of one kind of operation, since the database was opened in this process. */
export interface KvOperationMetrics {
  /** Operations that were answered, errors included. */
  count: number;
  /** Operations that ended with an error. A failed check is no error. */
  errors: number;
  /** Times in ms; `null` until one was measured. One of 32 reads is measured. */
  latency: {
    samples: number;
    sumMs: number;
    p50Ms: number;
    p90Ms: number;
    p99Ms: number;
    maxMs: number;
  } | null;
}

/**
 * The result of {@link Kv.metrics}: counters of this process and, from `queues` on, of the file.
 */
export interface KvMetrics {
  operations: Record<KvOperationName, KvOperationMetrics>;
  /** Writes that were committed. */
  commits: number;
  /** Writes whose check failed. */
  conflicts: number;
  /** Writes that were refused or failed. */
  rejections: number;
  transactions: {
    /** Transactions that failed as a whole. */
    failures: number;
    /** Writes that shared one transaction (group commit); `null` before the first. */
    writes: {
      count: number;
      sum: number;
      p50: number;
      p90: number;
      p99: number;
      max: number;
    } | null;
  };
  /** Open watches over keys. */
  watches: number;
  /** Open watches over a range. */
  feeds: number;
  /** Listeners of queues. */
  listeners: number;
  /** Reads of pages by SQLite's page caches; `hitRate` is `null` before the first. */
  cache: { hits: number; misses: number; hitRate: number | null };
  /**
   * Messages of each queue that has any; `""` is the queue of {@link Kv.enqueue}. At most 1000
   * queues.
   */
  queues: Record<string, { pending: number; delayed: number; processing: number; dead: number }>;
  /** Search indexes by name. */
  indexes: Record<string, { documents: number; building: boolean }>;
  /** Bytes of the database; 0 for `:memory:`. */
  databaseBytes: number;
  /** Bytes of the log beside the file. */
  walBytes: number;
  /**
   * Commits that this process has not looked at yet. Only of a database on PostgreSQL, while a watch,
   * a feed or a listener is open in this process.
   */
  lagCommits?: number;
  /** What this process does as the leader of a database on PostgreSQL, once it has begun to lead. */
  leader?: KvLeaderMetrics;
  /**
   * Requests of this process to the object store of the database, and bytes of the objects that were read and sent. Only
   * of a database in an object store.
   */
  bucket?: {
    requests: { get: number; put: number; list: number; delete: number };
    bytes: { get: number; put: number };
  };
  /** How far the replica is: of a handle with the option `replica`, and of a read server. */
  replica?: KvReplicaMetrics;
  /** The archivers of this process, or of the server; left out without any. */
  archives?: KvArchiveMetrics[];
  /** The slowest operations of the last hour, the slowest first: at most 64, of 10 ms or more. */
  slowest: KvSlowOperation[];
}

/** An operation that was slow, or several that were answered together. */
export interface KvSlowOperation {
  /** The kind of the operation, or of the first one. */
  operation: KvOperationName;
  /** Its key, or its first key, as a literal: `["users",42n]`. */
  key?: string;
  /**
   * In place of a key: the parts that all of its keys have in common, as a literal, or the first parts of a
   * key of more than 64 bytes.
   */
  prefix?: string;
  /** Operations that were answered together. */
  times: number;
  /** Whether it ended with an error. */
  failed: boolean;
  /** Its time in milliseconds, its waiting included. */
  durationMs: number;
  /** When it ended, in milliseconds since the epoch. */
  atMs: number;
}

/** What an archiver has done since it was started, and how far it is. */
export interface KvArchiveMetrics {
  /** Its target; empty for the archiver of a server. */
  to: string;
  /** `waiting`: for another archiver. `failing`: it tries again. `stopped`: it has ended with an error. */
  state: "starting" | "waiting" | "running" | "failing" | "stopped";
  /** Milliseconds since it had everything, or since it began. */
  lagMs: number | null;
  /** The last archived commit. */
  versionstamp: string | null;
  /** Objects that it has written. */
  objects: number;
  /** Bytes of these objects. */
  bytes: number;
  /** Snapshots among these objects. */
  snapshots: number;
  /** Attempts that have failed. */
  failures: number;
  /** How often the log no longer reached back to the archived commits. */
  gaps: number;
  /** Objects that the retention has removed. */
  pruned: number;
  /** When the newest snapshot was taken, in milliseconds since the epoch. */
  snapshotMs: number | null;
}

/** How far a replica is. */
export interface KvReplicaMetrics {
  /** As in {@link KvReplicaStatus}. */
  state: "bootstrapping" | "following" | "disconnected" | "failed";
  /** Whether reads are answered from it. */
  usable: boolean;
  /** Milliseconds since it had everything; `null`: not since it was opened. */
  lagMs: number | null;
  /** The number of the commit up to which it has every change. */
  version: number;
  /** Complete copies since it was opened. */
  copies: number;
}

/** What a process has done as the leader of a database on PostgreSQL, and what it does now. */
export interface KvLeaderMetrics {
  /** Whether it leads now: no other process has taken over. */
  leading: boolean;
  /** The epoch of its last lead. */
  epoch: number;
  /** Epochs that it has begun: one for each lead, and one for each lost connection. */
  epochs: number;
  batches: {
    /** Batches that were sent. One that is sent again counts again. */
    begun: number;
    /** Writes in these batches. */
    writes: number;
    /** Batches that are durable; of one without a commit, that the database has confirmed. */
    durable: number;
    /** Decisions that were discarded, because a batch before them has failed or was in doubt. */
    discarded: number;
    /** Batches in flight now. */
    inFlight: number;
  };
  /** Batches that may be in flight at present, as measured. */
  depth: number;
  /** Writes in batches that have begun or may begin, and have no answer yet. */
  waiting: { writes: number; bytes: number };
  /** Writes that were refused, because too many waited. */
  refused: number;
}

/** The result of {@link Kv.stats}. */
export interface KvStats {
  /** Entries that have not expired; only with `entries: true`. */
  entries?: number;
  /** Bytes of the database: used and free pages, in the file and in its log. */
  databaseBytes: number;
  /** Bytes of the log beside the file. */
  walBytes: number;
  /** Bytes of a page. */
  pageSize: number;
  /** Free pages, for later writes; {@link Kv.vacuum} gives them back to the system. */
  freePages: number;
  /**
   * Whether other writes come between the steps of {@link Kv.vacuum}. `false` for files that Deno or an older version has
   * created: the first vacuum writes such a file anew, and the next ones have steps.
   */
  vacuumInSteps: boolean;
  /** The versionstamp of the last commit. */
  versionstamp: string;
  /**
   * Background work that fails now. The database tries it again, at most two seconds after the last
   * attempt, and removes it from the list when it succeeds. Empty if nothing fails.
   */
  failing: KvFailingPart[];
}

/** A part of {@link KvStats.failing}. */
export interface KvFailingPart {
  /**
   * - `"externalCommits"`: noticing commits of other processes; meanwhile the file is read ten
   *   times a second;
   * - `"announcements"`: the operating system's announcements of writes to the file; meanwhile the
   *   file is polled fifty times a second;
   * - `"streams"`: reading the states of watches and the changes of feeds;
   * - `"agenda"`: looking for due work in the file: messages, expired entries, indexes to build;
   * - `"sweep"`: deleting expired entries;
   * - `"indexes"`: building search indexes.
   */
  part: string;
  /** When it first failed. */
  since: Date;
  /** The error of the last attempt. */
  error: Error;
}

/** An entry as a transaction reads it. */
export interface KvTransactionEntry<T = unknown> {
  key: KvEntryKey;
  value: T;
  /** `null` for a write of the transaction itself: the commit assigns its versionstamp. */
  versionstamp: string | null;
}

/** As {@link KvTransactionEntry}, or absent: then value and versionstamp are `null`. */
export type KvTransactionEntryMaybe<T = unknown> =
  | KvTransactionEntry<T>
  | { key: KvEntryKey; value: null; versionstamp: null };

/** An entry of a list with `keysOnly: true` in a transaction. */
export interface KvTransactionKeyEntry {
  key: KvEntryKey;
  /** As that of {@link KvTransactionEntry}. */
  versionstamp: string | null;
}

/** The entries of a list in a transaction, in key order. */
export interface KvTransactionListIterator<E> extends AsyncIterableIterator<E> {
  /**
   * As {@link KvListIterator.cursor}; valid in this transaction, in others and in {@link Kv.list}.
   */
  readonly cursor: string;
  /** As {@link KvListIterator.toArray}. */
  toArray(): Promise<E[]>;
}

/** One page in a transaction; otherwise a {@link KvPage}. */
export interface KvTransactionPage<T> {
  entries: KvTransactionEntry<T>[];
  cursor: string | null;
  hasMore: boolean;
}

/** Options of {@link Kv.transaction}. */
export interface KvTransactionOptions {
  /**
   * How often the function runs again after a conflict; `Infinity`: until it succeeds or `signal`
   * aborts. Default: 10.
   */
  maxRetries?: number | undefined;
  /**
   * The pause before the function runs again, in milliseconds, 0 to 3600000 (an hour): after the
   * first conflict a random time below `initial`, after each further conflict below twice as much,
   * never more than `max`. Default: `{ initial: 2, max: 250 }`.
   */
  retryDelay?: { initial?: KvDuration | undefined; max?: KvDuration | undefined } | undefined;
  /** Ends the transaction between two steps; it rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** The result of a transaction. */
export interface KvTransactionResult<T> extends KvCommitResult {
  /** If it enqueued messages: the result of each, in the order of the calls. */
  messages?: KvEnqueued[];
  /** The return value of the function in the committed attempt. */
  value: T;
}

/**
 * The argument of the function of {@link Kv.transaction}. Reads are remembered, so a key reads the
 * same each time, and include the transaction's own writes. Writes happen at the end, in one
 * commit. After the function has returned, every method throws a `TypeError`.
 */
export interface KvTransaction {
  /** As {@link Kv.get}. An entry that is read twice is one object: change a copy. */
  get<T = unknown>(
    key: KvKey,
    options?: { consistency?: KvConsistencyLevel | undefined; signal?: AbortSignal | undefined },
  ): Promise<KvTransactionEntryMaybe<T>>;

  /**
   * As {@link Kv.getMany}: keys that were not read before are read in one state of the database.
   */
  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: KvConsistencyLevel | undefined; signal?: AbortSignal | undefined },
  ): Promise<{ [K in keyof T]: KvTransactionEntryMaybe<T[K]> }>;

  /**
   * As {@link Kv.list}. The commit fails after any change in the listed range, up to where the list
   * was left: also if a key has appeared there. Entries that `where` or `depth` skip are read too:
   * their changes are conflicts, and they count towards `checkedRowsMax`. If a value index finds the
   * entries for `where`, these are only the entries that it finds. With `orderBy` they are those up to
   * where the list was left in its order, and a key comes once; with `sort` all entries of the range
   * are read. `expireAt` of the transaction's own writes is as if it were committed now.
   *
   * @throws TypeError when the selector has no usable combination of bounds, or for an option that
   *   is not known or of the wrong type.
   */
  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<T> & { keysOnly: true; withExpiry: true },
  ): KvTransactionListIterator<KvTransactionKeyEntry & KvExpiry>;
  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<T> & { keysOnly: true },
  ): KvTransactionListIterator<KvTransactionKeyEntry>;
  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<T> & { keysOnly?: false | undefined; withExpiry: true },
  ): KvTransactionListIterator<KvTransactionEntry<T> & KvExpiry>;
  list<T = unknown>(
    selector: KvListSelector,
    options?: KvListOptions<T> & { keysOnly?: false | undefined },
  ): KvTransactionListIterator<KvTransactionEntry<T>>;
  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<T>,
  ): KvTransactionListIterator<KvTransactionEntry<T> | KvTransactionKeyEntry>;

  /** Counts the entries, or those that match; all are read, as by {@link list}. */
  count<T = unknown>(
    selector: KvListSelector,
    options?: { where?: KvFilter<T> | undefined; depth?: number | undefined } & KvCallOptions,
  ): Promise<number>;

  /** As {@link Kv.paginate}, by {@link list}. */
  paginate<T = unknown>(
    selector: KvListSelector,
    options?: KvPageOptions<T>,
  ): Promise<KvTransactionPage<T>>;
  /** @deprecated Write `paginate(selector, options)`. */
  paginate<T = unknown>(options: KvPaginateOptions<T>): Promise<KvTransactionPage<T>>;

  /** As {@link AtomicOperation.set}. */
  set(key: KvKey, value: unknown, options?: KvExpireOptions): this;
  /** As {@link AtomicOperation.delete}. */
  delete(key: KvKey): this;
  /** As {@link AtomicOperation.sum}; it is no read, so concurrent sums do not conflict. */
  sum(key: KvKey, n: bigint | KvU64, options?: KvSumOptions<bigint>): this;
  sum(key: KvKey, n: number, options?: KvSumOptions<number>): this;
  /** As {@link AtomicOperation.min}. */
  min(key: KvKey, n: bigint | number | KvU64, options?: KvExpireOptions): this;
  /** As {@link AtomicOperation.max}. */
  max(key: KvKey, n: bigint | number | KvU64, options?: KvExpireOptions): this;
  /** As {@link AtomicOperation.append}. */
  append(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this;
  /** As {@link AtomicOperation.prepend}. */
  prepend(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this;
  /** As {@link AtomicOperation.touch}. */
  touch(key: KvKey, options: KvExpireOptions): this;
  /** As {@link AtomicOperation.persist}. */
  persist(key: KvKey): this;
  /** As {@link AtomicOperation.mutate}. */
  mutate(...mutations: KvMutation[]): this;
  /** As {@link AtomicOperation.enqueue}. */
  enqueue(value: unknown, options?: KvEnqueueOptions | KvNamedEnqueueOptions): this;

  /**
   * As {@link AtomicOperation.ack}. If a message is not the consumer's any more at the commit, the
   * transaction rejects with {@link KvConflictError}, without another attempt; `messages` has its id.
   */
  ack(...messages: KvMessageInfo[]): this;
  /** As {@link AtomicOperation.schedule}. */
  schedule(
    name: string,
    timing: KvScheduleTiming,
    value: unknown,
    options: KvScheduleOptions & { queue: string },
  ): this;
  /** As {@link AtomicOperation.unschedule}. */
  unschedule(name: string, options: { queue: string }): this;

  /**
   * As {@link AtomicOperation.checkLease}: rejects with {@link KvError} (code `CONFLICT`) if the lease is not held, and
   * the commit happens only if it still is.
   */
  checkLease(lease: KvLease): Promise<void>;
}

/**
 * A schema of the [Standard Schema](https://standardschema.dev) v1: those of zod, valibot, arktype and others.
 */
export interface KvStandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What a schema finds wrong in a document. */
export interface KvSchemaIssue {
  readonly message: string;
  /** The way to the property. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a collection checks documents by: a schema, or a function that returns the document or throws. */
export type KvSchema<Input = any, Output = any> =
  | KvStandardSchema<Input, Output>
  | ((value: Input) => Output);

/** What a schema takes. */
export type KvSchemaInput<S> = S extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly input: infer Input }
    ? Input
    : never
  : S extends (value: infer Input) => unknown
    ? Input
    : never;

/** What a schema returns, and a collection stores. */
export type KvSchemaOutput<S> = S extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : never
  : S extends (value: any) => infer Output
    ? Output
    : never;

/** How documents get their ids; see {@link KvCollectionOptions.id}. */
export type KvCollectionId<T> =
  | "uuidv7"
  | "ulid"
  | (keyof T & string)
  | ((value: T) => KvEntryKeyPart);

/** The type of the ids. */
export type KvIdOf<T, Id> = Id extends "uuidv7" | "ulid"
  ? string
  : Id extends (value: any) => infer Part
    ? Part
    : Id extends keyof T
      ? T[Id]
      : KvEntryKeyPart;

/** Options of {@link Kv.collection}. An unknown name is a `TypeError`. */
export interface KvCollectionOptions<S extends KvSchema, Id, Indexes> {
  /** Checks each document before it is written. It must answer at once: a promise is a `TypeError`. */
  schema: S;
  /**
   * The last part of a document's key. The name of a property, whose value is a string, number, bigint, boolean
   * or `Uint8Array`; a function of the document; or `"uuidv7"` or `"ulid"`, which make a new id for each document.
   * These two names are never properties: write `(user) => user.ulid`.
   */
  id: Id;
  /**
   * The version of the schema, a positive integer. Above 1, the property `__version` of stored documents has it.
   * Default: 1.
   */
  version?: number | undefined;
  /**
   * Makes a document of this version from one of an earlier version, when it is read; the schema checks the result.
   * Default: the document as it is, checked by the schema.
   */
  migrate?: ((old: any, from: number) => unknown) | undefined;
  /**
   * The value indexes of the collection, by name; without `on`, the name is the path. They are made before the first
   * call that writes or lists. An empty object removes those that were declared before. Default: none is made or removed.
   */
  indexes?: Indexes | undefined;
  /**
   * `"sync"`: indexes are created, made again when their definition has changed, and dropped when they are no longer
   * declared. `"check"`: one that is missing or defined otherwise is a {@link KvError} with code `UNSUPPORTED`. `"off"`:
   * nothing is done.
   * Default: `"sync"`.
   */
  indexMode?: "sync" | "check" | "off" | undefined;
}

/** An index of a collection; see {@link KvValueIndexOptions}. */
export interface KvCollectionIndex<Path extends string = string> {
  on?:
    | Path
    | { path: Path; order?: "asc" | "desc" | undefined }
    | readonly (Path | { path: Path; order?: "asc" | "desc" | undefined })[]
    | undefined;
  unique?: boolean | undefined;
  multi?: boolean | undefined;
  sparse?: boolean | undefined;
}

/** The paths of the values of a type, as in {@link KvFilter}. */
export type KvPath<T> = Extract<Exclude<keyof KvFilter<T>, `$${string}`>, string>;

/** The paths by which a collection with these indexes can be ordered. */
export type KvOrderedPath<Indexes> = {
  [Name in keyof Indexes]: Indexes[Name] extends { on: infer On } ? PathIn<On> : Name;
}[keyof Indexes];
type PathIn<On> = On extends string
  ? On
  : On extends { path: infer Path }
    ? Path
    : On extends readonly (infer Item)[]
      ? PathIn<Item>
      : never;

/** A document of a collection. */
export interface KvDocument<T, Id = KvEntryKeyPart> {
  id: Id;
  /** The key of its entry: the prefix of the collection and the id. */
  key: KvEntryKey;
  value: T;
  versionstamp: string;
}

/** A document as a transaction reads it; `versionstamp` is `null` for a write of its own. */
export interface KvTransactionDocument<T, Id = KvEntryKeyPart> {
  id: Id;
  key: KvEntryKey;
  value: T;
  versionstamp: string | null;
}

/** Options of the writes of a {@link KvCollection}. */
export interface KvDocumentWriteOptions extends KvExpireOptions {
  /**
   * The versionstamp that the document has now. If it has another one, or none, the write fails with
   * {@link KvConflictError}. Default: any.
   */
  expectedVersion?: string | undefined;
}

/** Documents that match, as an iterable that can be narrowed. Each method returns a new one. */
export interface KvDocuments<T, D, Ordered = never> extends AsyncIterable<D> {
  /** At most so many, a positive integer. */
  limit(count: number): KvDocuments<T, D, Ordered>;
  /** From the last id to the first, or in the opposite order. */
  reverse(): KvDocuments<T, D, Ordered>;
  /** In the order of a path of an index, or of several paths; not in a transaction. */
  orderBy(path: Ordered & string, order?: "asc" | "desc"): KvDocuments<T, D, Ordered>;
  orderBy(
    paths: [Ordered] extends [never]
      ? never
      : { readonly [Path in Ordered & string]?: "asc" | "desc" },
  ): KvDocuments<T, D, Ordered>;
  /** The first one, or `null`. */
  first(): Promise<D | null>;
  /** All of them, in memory. */
  toArray(): Promise<D[]>;
  /** Their number, without a limit. */
  count(): Promise<number>;
  /** A page of them; `limit` is the size of the page, 100 by default. */
  page(options?: { cursor?: string | undefined }): Promise<{
    documents: D[];
    /** Where the next page begins; `null` if there is none. */
    cursor: string | null;
  }>;
}

/** What a collection and its view of a transaction read. */
export interface KvCollectionReads<T, D, Id, Ordered = never> {
  /** The document of an id, or `null`. */
  get(id: Id): Promise<D | null>;
  /** The documents of some ids, in their order; `null` for an absent one. Ten of them are read in one state. */
  getMany(ids: readonly Id[]): Promise<(D | null)[]>;
  /** The first document, by id, that matches. */
  find(where: KvFilter<T>): Promise<D | null>;
  /** The documents that match, by id. */
  findMany(where: KvFilter<T>, options?: { limit?: number | undefined }): Promise<D[]>;
  /** The documents that match, to be narrowed. */
  where(where: KvFilter<T>): KvDocuments<T, D, Ordered>;
  /** All documents. */
  list(): KvDocuments<T, D, Ordered>;
  /** The number of documents, or of those that match. */
  count(where?: KvFilter<T>): Promise<number>;
}

/**
 * Documents of one kind below a prefix: each is an entry whose key is the prefix and an id. Entries with more
 * parts behind the prefix do not belong to it. {@link Kv.collection} returns it.
 */
export interface KvCollection<
  T = any,
  Input = T,
  Id = any,
  Prefix extends KvEntryKey = KvEntryKey,
  Ordered = any,
> extends KvCollectionReads<T, KvDocument<T, Id>, Id, Ordered> {
  readonly prefix: Prefix;
  /** The key of a document. */
  key(id: Id): [...Prefix, Id];
  /**
   * Resolves when the declared indexes are complete. Rejects with {@link KvUniqueError} if two documents have a value
   * of a unique one.
   */
  ready(): Promise<void>;

  /**
   * Writes a new document. Rejects with {@link KvValidationError} if the schema refuses it, and with
   * {@link KvConflictError} if its id is taken. For a collection that makes ids, `id` gives one.
   */
  insert(value: Input, options?: KvExpireOptions & { id?: Id }): Promise<KvDocument<T, Id>>;
  /** Writes new documents in one commit: all or none. */
  insertMany(values: readonly Input[], options?: KvExpireOptions): Promise<KvDocument<T, Id>[]>;
  /**
   * Changes a document: reads it, adds the properties of `change` or calls it, which answers at once, checks the result by
   * the schema, and commits, again if another writer was faster. Returns `null` if there is none. A property that is `undefined`
   * is removed. Without `expireIn` or `expireAt` the document does not expire any more, as with {@link Kv.set}.
   */
  update(
    id: Id,
    change: Partial<T> | ((value: T) => T),
    options?: KvDocumentWriteOptions,
  ): Promise<KvDocument<T, Id> | null>;
  /** Writes a document, whether there is one of its id or not. */
  upsert(value: Input, options?: KvDocumentWriteOptions & { id?: Id }): Promise<KvDocument<T, Id>>;
  /** Writes a document in place of one of that id; returns `null`, and writes nothing, if there is none. */
  replace(
    id: Id,
    value: Input,
    options?: KvDocumentWriteOptions,
  ): Promise<KvDocument<T, Id> | null>;
  /** Deletes a document; false if there is none. */
  delete(id: Id, options?: { expectedVersion?: string | undefined }): Promise<boolean>;

  /** The document of an id, and again after each change; `null` when it is absent. */
  watch(id: Id, options?: KvCallOptions): ReadableStream<KvDocument<T, Id> | null>;
  /** The changes of the documents, as {@link Kv.watch} has those of a selector. */
  changes(
    options?: { since?: string | undefined } & KvCallOptions,
  ): ReadableStream<KvDocumentChanges<T, Id>>;

  /** The collection as a transaction reads and writes it. */
  in(tx: KvTransaction): KvTransactionCollection<T, Input, Id>;

  /**
   * Writes all documents of earlier versions anew, a step at a time. It can be ended and called again: documents
   * of the present version are not touched. An entry keeps its expiry.
   */
  migrateAll(options?: {
    /**
     * Called after each step with the number of documents so far. The next step waits for its promise; its error ends
     * the migration.
     */
    onProgress?: ((progress: { migrated: number }) => void) | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<{ migrated: number }>;
}

/** A batch of {@link KvCollection.changes}: a {@link KvChanges} whose changes have the ids of documents. */
export interface KvDocumentChanges<T, Id> extends Omit<KvChanges<T>, "changes"> {
  /** Empty if the batch has only changes of other entries below the prefix. */
  changes: (KvChange<T> & { id: Id })[];
}

/** The keys of the documents of a collection. */
export type KvDocumentKey<C> =
  C extends KvCollection<any, any, infer Id, infer Prefix> ? readonly [...Prefix, Id] : never;

/** The one of some collections whose documents have a key. */
type CollectionOf<C, K> = { [N in keyof C]: K extends KvDocumentKey<C[N]> ? C[N] : never }[keyof C];

/** A handle that knows only the keys of some collections ({@link Kv.schema}). */
export interface KvTypedKeys<C extends Record<string, KvCollection>> {
  readonly collections: Readonly<C>;
  /** The entry of a document. */
  get<const K extends KvDocumentKey<C[keyof C]>>(
    key: K,
  ): Promise<
    KvEntryMaybe<CollectionOf<C, K> extends KvCollection<infer T, any, any, any> ? T : never>
  >;
  /** Writes a document, whether there is one or not, checked by the schema of its collection. */
  set<const K extends KvDocumentKey<C[keyof C]>>(
    key: K,
    value: CollectionOf<C, K> extends KvCollection<any, infer Input, any, any> ? Input : never,
    options?: KvExpireOptions,
  ): Promise<KvCommitResult>;
  delete(key: KvDocumentKey<C[keyof C]>): Promise<void>;
}

/** A {@link KvCollection} in a transaction: the commit of the transaction writes. */
export interface KvTransactionCollection<T = any, Input = T, Id = any>
  extends KvCollectionReads<T, KvTransactionDocument<T, Id>, Id> {
  insert(
    value: Input,
    options?: KvExpireOptions & { id?: Id },
  ): Promise<KvTransactionDocument<T, Id>>;
  update(
    id: Id,
    change: Partial<T> | ((value: T) => T),
    options?: KvDocumentWriteOptions,
  ): Promise<KvTransactionDocument<T, Id> | null>;
  upsert(
    value: Input,
    options?: KvDocumentWriteOptions & { id?: Id },
  ): Promise<KvTransactionDocument<T, Id>>;
  replace(
    id: Id,
    value: Input,
    options?: KvDocumentWriteOptions,
  ): Promise<KvTransactionDocument<T, Id> | null>;
  delete(id: Id, options?: { expectedVersion?: string | undefined }): Promise<boolean>;
}

/**
 * The read methods of {@link Kv} and {@link KvTransaction}, for functions that take either. As in a
 * transaction, the versionstamp of an entry may be `null`.
 *
 * @example
 * async function nameOf(kv: KvReader, id: string): Promise<string | undefined> {
 *   return (await kv.get<User>(["users", id])).value?.name;
 * }
 * await nameOf(kv, "ada");
 * await kv.transaction((tx) => nameOf(tx, "ada"));
 */
export type KvReader = Pick<KvTransaction, "get" | "getMany" | "list" | "count" | "paginate">;

/**
 * A handle on a database, from {@link openKv}. Several handles may be open on one file, in one
 * process or many. A handle does not keep the process alive; a pending call, `listenQueue` or read
 * of a watch does.
 *
 * Calls of one handle keep program order: a read sees every write that was called before it,
 * awaited or not, and writes that touch the same key happen in the order of their calls.
 */
export class Kv implements Disposable, AsyncDisposable {
  private constructor();

  /**
   * Reads one entry. An absent or expired entry has value and versionstamp `null`.
   *
   * Rejects with `TypeError` for an invalid key or consistency, `RangeError` when the stored value
   * cannot be read, {@link BadResource} on a closed handle, {@link KvError} when the file cannot be
   * read.
   *
   * @example
   * const { value } = await kv.get<string>(["greeting"]);
   * const { expireAt } = await kv.get(["session"], { withExpiry: true });
   */
  get<T = unknown>(
    key: KvKey,
    options: {
      consistency?: KvConsistencyLevel | undefined;
      withExpiry: true;
      signal?: AbortSignal | undefined;
    },
  ): Promise<KvEntryMaybe<T> & KvExpiry>;
  get<T = unknown>(
    key: KvKey,
    options?: {
      consistency?: KvConsistencyLevel | undefined;
      withExpiry?: boolean | undefined;
      signal?: AbortSignal | undefined;
    },
  ): Promise<KvEntryMaybe<T>>;

  /**
   * Reads up to ten entries (a thousand under wide limits: `limits.rangesMax`) in one state of the database, in the order of the keys. Rejects as
   * {@link get}, and with `TypeError` for more keys.
   *
   * @example
   * const [a, b] = await kv.getMany<[string, number]>([["a"], ["b"]]);
   */
  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options: {
      consistency?: KvConsistencyLevel | undefined;
      withExpiry: true;
      signal?: AbortSignal | undefined;
    },
  ): Promise<{ [K in keyof T]: KvEntryMaybe<T[K]> & KvExpiry }>;
  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: {
      consistency?: KvConsistencyLevel | undefined;
      withExpiry?: boolean | undefined;
      signal?: AbortSignal | undefined;
    },
  ): Promise<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;

  /**
   * As {@link get}, but returns at once and blocks the thread while it reads. For files and
   * `:memory:`.
   *
   * Sees every commit that was answered before, by any process. It cannot wait for a write of this
   * handle whose promise has not resolved: such a write is seen, or not yet.
   *
   * @throws TypeError for an invalid key, consistency or unknown option; RangeError when the stored
   *   value cannot be read; {@link BadResource} on a closed handle; {@link KvError} `UNSUPPORTED` for
   *   a database behind a URL, `UNAVAILABLE` when another process keeps the file busy for longer than
   *   `busyTimeout`.
   *
   * @example
   * const theme = kv.getSync<string>(["settings", "theme"]).value ?? "dark";
   */
  getSync<T = unknown>(
    key: KvKey,
    options?: { consistency?: KvConsistencyLevel | undefined },
  ): KvEntryMaybe<T>;

  /**
   * As {@link getMany}, but returns at once; otherwise as {@link getSync}.
   *
   * @example
   * const [theme, font] = kv.getManySync<[string, string]>([["theme"], ["font"]]);
   */
  getManySync<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: KvConsistencyLevel | undefined },
  ): { [K in keyof T]: KvEntryMaybe<T[K]> };

  /**
   * Stores a value: any value that `structuredClone` accepts, and `Blob` and `File` by content; at
   * most 64 KiB when encoded (`limits.valueBytesMax`). The value is encoded at the call. Resolves
   * when it is durable, as `durability` of {@link openKv} says.
   *
   * If the key ends with the symbol of {@link commitVersionstamp}, the versionstamp of the commit
   * replaces it.
   *
   * Rejects with `TypeError` for an invalid key or option, a value that cannot be stored, or a
   * limit; {@link BadResource} on a closed handle; {@link KvError} when the database cannot write.
   *
   * @param options When the entry expires: `expireIn` milliseconds from now, or at `expireAt`.
   *   Default: never.
   *
   * @example
   * await kv.set(["session", id], { user }, { expireIn: 3_600_000 });
   */
  set(
    key: KvKey,
    value: unknown,
    options?: KvExpireOptions & KvCallOptions,
  ): Promise<KvCommitResult>;

  /** Removes an entry, if there is one. Rejects as {@link set}. */
  delete(key: KvKey, options?: KvCallOptions): Promise<void>;

  /**
   * Returns a placeholder for a UUID of version 7 that the commit makes: {@link KvUuidV7}.
   *
   * @example
   * const id = kv.uuidv7();
   * const result = await kv.set(["users", id], { id, name: "Ada" });
   * console.log(id.uuidIn(result));
   */
  uuidv7(): KvUuidV7;

  /**
   * Returns when an entry expires; `null` if it does not expire or does not exist. Its value is not
   * read. Rejects as {@link get}.
   *
   * @example
   * await kv.set(["session"], "s", { expireIn: 60_000 });
   * const end = await kv.ttl(["session"]);
   * if (end !== null) console.log("expires in", end.expireAt.getTime() - Date.now(), "ms");
   */
  ttl(key: KvKey, options?: KvCallOptions): Promise<{ expireAt: Date } | null>;

  /**
   * Sets the expiry of an entry, to `expireIn` milliseconds from now or to `expireAt`; `ok: false`
   * if there is no entry. Its value is not written again, and its versionstamp stays: checks on it
   * hold, and watches yield nothing. The versionstamp in the result is that of the commit.
   *
   * Rejects with `TypeError` for an invalid key, if neither is given, for a value that {@link
   * KvExpireOptions} does not allow, or an unknown option; else as {@link set}.
   *
   * @example
   * const { ok } = await kv.touch(["session"], { expireIn: 60_000 });
   * if (!ok) console.log("the session has expired");
   */
  touch(
    key: KvKey,
    options: KvExpireOptions & KvCallOptions,
  ): Promise<KvCommitResult | KvCommitRefusal>;

  /**
   * Removes the expiry of an entry, which then stays until it is deleted; otherwise as {@link
   * touch}.
   *
   * @example
   * await kv.persist(["session"]);
   */
  persist(key: KvKey, options?: KvCallOptions): Promise<KvCommitResult | KvCommitRefusal>;

  /**
   * Runs a function and commits its writes, all or nothing, on condition that everything it has
   * read is unchanged: entries, absent entries, and the ranges that it has listed. If another
   * writer has changed something, the function runs again from the start, after a short random
   * pause that grows with each attempt. So it may run several times, and should have no effects but
   * through `tx`. If it throws, the promise rejects with its error, and nothing is written.
   *
   * Without writes it commits nothing: its reads were those of one state of the database, whose
   * versionstamp is that of the result.
   *
   * Rejects with {@link KvConflictError} if every attempt had a conflict; with `TypeError` for an
   * argument or option of the wrong kind, and for more reads than `checksMax` or more listed
   * entries than `checkedRowsMax`; with the reason of an aborted `signal`; else as {@link
   * AtomicOperation.commit}.
   *
   * @example
   * const { value: left } = await kv.transaction(async (tx) => {
   *   const stock = (await tx.get<number>(["stock", "tea"])).value ?? 0;
   *   if (stock === 0) throw new Error("sold out");
   *   tx.set(["stock", "tea"], stock - 1);
   *   return stock - 1;
   * });
   */
  transaction<T>(
    run: (tx: KvTransaction) => T | Promise<T>,
    options?: KvTransactionOptions,
  ): Promise<KvTransactionResult<T>>;

  /**
   * Acquires a lease: a lock that all processes on the database share, and that ends by itself when its holder dies or
   * hangs. Waits for it unless `wait` bounds that, and resolves to `null` after this time. Time is that of the
   * database. The order in which waiting callers get it is not defined.
   *
   * The lease is an entry under `key`, which expires; to overwrite or delete it takes the lease away.
   *
   * Rejects with `TypeError` for an argument or option of the wrong kind, and if the key holds another value; with the
   * reason of an aborted `signal`; with `UNSUPPORTED` if the server behind a URL is not openkv's; else as {@link
   * AtomicOperation.commit}.
   *
   * @example
   * await using lease = await kv.lease(["jobs", "cleanup"], { ttl: "30s" });
   * while (!lease.signal.aborted) {
   *   const { ok } = await kv.atomic().checkLease(lease).sum(["cleaned"], 1).commit();
   *   if (!ok) break; // another process has the lease
   *   if ((await kv.get<number>(["cleaned"])).value === 3) break;
   * }
   */
  lease(
    key: KvKey,
    options: KvLeaseOptions & { wait: KvDuration | false },
  ): Promise<KvLease | null>;
  lease(key: KvKey, options?: KvLeaseOptions & { wait?: true | undefined }): Promise<KvLease>;
  lease(key: KvKey, options?: KvLeaseOptions): Promise<KvLease | null>;

  /**
   * A limiter of the calls of all processes on the database. Its state is an entry under `key`, which expires when all
   * points are back. Making one costs nothing: make one for each key that you limit.
   *
   * @throws TypeError for an argument or option of the wrong kind.
   *
   * @example
   * const { allowed, retryAfter } = await kv.limiter(["login", ip], { limit: 5, per: "1m" }).take();
   * if (!allowed) throw new Error(`too many attempts: try again in ${retryAfter} ms`);
   */
  limiter(key: KvKey, options: KvLimiterOptions): KvLimiter;

  /**
   * Runs a function at most once at a time over all processes on the database, and keeps its result under `key`.
   * Callers meanwhile wait for the result, and later callers get it without a run. If the function throws, the call
   * rejects with its error, nothing is kept, and the next waiting caller runs its function. When the process of a run
   * dies or hangs, another caller runs its function after `leaseTtl`.
   *
   * The function gets the lease: its effects belong into commits with {@link AtomicOperation.checkLease}, and its
   * signal is aborted when the run should end. Rejects with {@link KvError} (code `CONFLICT`) if the lease was lost;
   * the result is not kept then. Otherwise rejects as {@link Kv.lease} and {@link Kv.set}.
   *
   * @example
   * const price = await kv.once(["prices", "tea"], () => askTheShop("tea"), { ttl: "10m" });
   */
  once<T>(
    key: KvKey,
    run: (lease: KvLease) => T | Promise<T>,
    options?: KvOnceOptions,
  ): Promise<Awaited<T>>;

  /**
   * Lists entries in key order.
   *
   * With `where`, `keysOnly`, `depth` or `withExpiry`, Rust selects the entries, in steps that read
   * up to 8192 of them; other reads run between the steps.
   *
   * @throws TypeError when the selector has no usable combination of bounds or an unknown property,
   *   or `where`, `keysOnly`, `depth` or `withExpiry` is of the wrong type. A mistake inside
   *   `where` rejects the first `next()` with its path.
   * @throws Error when `limit` or `batchSize` is not a positive integer.
   *
   * @example
   * for await (const { key, value } of kv.list({ prefix: ["users"] })) console.log(key, value);
   */
  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<T> & { keysOnly: true; withExpiry: true },
  ): KvListIterator<T, KvKeyEntry & KvExpiry>;
  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<T> & { keysOnly: true },
  ): KvListIterator<T, KvKeyEntry>;
  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<T> & { keysOnly?: false | undefined; withExpiry: true },
  ): KvListIterator<T, KvEntry<T> & KvExpiry>;
  list<T = unknown>(
    selector: KvListSelector,
    options?: KvListOptions<T> & { keysOnly?: false | undefined },
  ): KvListIterator<T>;
  list<T = unknown>(
    selector: KvListSelector,
    options: KvListOptions<T>,
  ): KvListIterator<T, KvEntry<T> | KvKeyEntry>;

  /**
   * Counts the entries, or those that match `where` and `depth` as in {@link KvListOptions}, in Rust, in steps of up
   * to 8192 entries; other reads run between the steps. A commit during the count may be counted or not.
   *
   * Rejects with `TypeError` for an invalid selector, `where` or unknown option; with {@link KvError}
   * of code `UNAVAILABLE` after 5 minutes (one minute at a server); else as {@link get}.
   *
   * @example
   * const adults = await kv.count({ prefix: ["users"] }, { where: { age: { $gte: 18 } } });
   */
  count<T = unknown>(
    selector: KvListSelector,
    options?: { where?: KvFilter<T> | undefined; depth?: number | undefined } & KvCallOptions,
  ): Promise<number>;

  /**
   * Explains a list or a count: which value indexes it reads, with which bounds, how many entries it visits, leaves
   * out and returns. It carries the list out, in steps as {@link count} does and without sending entries, and ends
   * behind 100,000 read entries. It takes the options of {@link list}; those that do not change what is read have no
   * effect.
   *
   * Rejects as {@link list} does, also for an `orderBy` without index or `sort`; with {@link KvError} of code
   * `UNSUPPORTED` from a server that has no explanations, and with code `UNAVAILABLE` when it takes longer than 5
   * minutes (one minute at a server).
   *
   * @example
   * const { method, branches, visited } = await kv.explain({ prefix: ["users"] }, { where: { age: { $gte: 18 } } });
   * console.log(method, branches, visited);
   */
  explain<T = unknown>(
    selector: KvListSelector,
    options?: KvListOptions<T>,
  ): Promise<KvExplanation>;

  /**
   * Returns one page of a list. A cursor is a key, so keys that are added or deleted meanwhile
   * shift nothing: no entry that stays is skipped or comes twice.
   *
   * Rejects with `TypeError` for an invalid selector, limit, cursor, `where` or unknown option; else
   * as {@link get}.
   *
   * @example
   * let cursor: string | null = null;
   * do {
   *   const page = await kv.paginate<Post>({ prefix: ["posts"] }, { limit: 20, cursor });
   *   for (const { value } of page.entries) show(value);
   *   cursor = page.cursor;
   * } while (cursor !== null);
   */
  paginate<T = unknown>(selector: KvListSelector, options?: KvPageOptions<T>): Promise<KvPage<T>>;
  /** @deprecated Write `paginate(selector, options)`. */
  paginate<T = unknown>(options: KvPaginateOptions<T>): Promise<KvPage<T>>;

  /**
   * Deletes the entries of keys, or those of a selector. Returns their number, and the versionstamp
   * of the last commit, `null` if nothing was deleted. A large deletion is many commits of up to
   * 2048 entries, between which other writers commit: each of them is all or nothing, the whole is
   * not, unless `atomic: true`.
   *
   * Rejects with `TypeError` for an invalid key, selector or `where`, for an unknown option or
   * property, and for a bound, `where` or `limit` that is present and `undefined`, since more would
   * be deleted without it; else as {@link set}, with the number of entries that were deleted
   * before.
   *
   * @example
   * const { count } = await kv.deleteMany({ prefix: ["sessions"] }, {
   *   where: { seen: { $lt: { $now: true, $offset: -86_400_000 } } },
   * });
   * await kv.deleteMany(["users", 42], { descendants: true }); // the user, and all below it
   */
  deleteMany<T = unknown>(
    which: readonly KvKey[] | KvListSelector,
    options?: KvDeleteManyOptions<T> & { descendants?: false | undefined },
  ): Promise<{ count: number; versionstamp: string | null }>;
  deleteMany<T = unknown>(
    key: KvKey,
    options: KvDeleteManyOptions<T> & { descendants: true },
  ): Promise<{ count: number; versionstamp: string | null }>;

  /**
   * The local copy that this handle reads from; null for one without the option `replica`.
   *
   * @example
   * console.log((await kv.replica?.status())?.lag);
   */
  readonly replica: KvReplica | null;

  /**
   * Starts an operation: checks, mutations and messages that are committed together or not at all.
   */
  // `any`: an operation with checks may be assigned to a variable that was declared without.
  atomic(): AtomicOperation<any>;

  /**
   * Adds a message for {@link listenQueue}. Resolves when it is durable. The message is delivered
   * at least once, to one listener at a time, in this process or another one on the same file.
   * Rejects as {@link set}.
   *
   * @example
   * await kv.enqueue({ send: "mail", to: "alice" }, { delay: 5000 });
   */
  enqueue(value: unknown, options?: KvEnqueueOptions & KvCallOptions): Promise<KvEnqueueResult>;

  /**
   * Handles messages until the handle closes, up to a hundred at a time. A message is done when the
   * handler returns or its promise resolves. If it throws or rejects, the message is delivered
   * again as its `backoffSchedule` says; when no interval is left, its value is stored under its
   * `keysIfUndelivered`. While a handler runs, no other consumer gets its message.
   *
   * Resolves at {@link close}, which waits for the running handlers; after `signal` aborts when they
   * have ended. Either waits at most `drain` ms for them, by default 5000: the message of a handler
   * that runs for longer is delivered again. Keeps the process alive until then.
   *
   * Rejects with `TypeError` when `handler` is no function, with `Error` "Queue already closed" on a
   * closed handle, on an aborted one with the signal's reason.
   */
  listenQueue(
    handler: (value: any) => void | Promise<void>,
    options?: KvCallOptions & { drain?: KvDuration | undefined },
  ): Promise<void>;

  /**
   * Returns the queue of that name. A queue exists when it has a message and need not be created.
   * Deno's queue, that of {@link enqueue} and {@link listenQueue}, is a different one, also from
   * `"default"`.
   *
   * @param name Not empty, at most 256 bytes in UTF-8. Default: `"default"`.
   * @param options.deadRetention How long dead letters of messages that this object enqueues are
   *   kept, in milliseconds, 0 to a hundred years. Default: until a caller deletes them.
   * @param options.keepResult The default of {@link KvQueueEnqueueOptions.keepResult} for messages that this
   *   object enqueues. Default: none.
   * @throws TypeError for a wrong argument, {@link BadResource} on a closed handle.
   *
   * @example
   * const mail = kv.queue<{ to: string }>("mail", { deadRetention: 7 * 86_400_000 });
   */
  queue<T = any>(
    name?: string,
    options?: { deadRetention?: KvDuration | undefined; keepResult?: KvDuration | undefined },
  ): KvQueue<T>;

  /**
   * Watches up to ten keys (`limits.watchedKeysMax`): the stream yields the state of all of them
   * first, then again when one has changed, by any process. Changes that are faster than the reader
   * are merged: the newest state is always yielded, states in between may be left out. Ends when
   * the handle closes and when `signal` aborts.
   *
   * @param options.raw Yields also after a commit without a visible change (a deletion of an absent
   *   key).
   * @throws TypeError for an invalid or an eleventh key, and for `since`, which is for a selector;
   *   {@link BadResource} on a closed handle.
   *
   * @example
   * for await (const [entry] of kv.watch<[Config]>([["config"]])) apply(entry.value);
   */
  watch<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { raw?: boolean | undefined; signal?: AbortSignal | undefined },
  ): ReadableStream<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;

  /**
   * Yields every committed change of the keys that a selector covers, by any process: batches of
   * whole commits, in their order. It contains all writes that this process calls after `watch`, and
   * what others commit once the stream has begun; with `since` all after that versionstamp. It does not
   * contain existing entries. Waits without polling; ends when the handle closes and when `signal`
   * aborts.
   *
   * A batch is read from the file when the reader asks for it, so a slow reader costs no memory. A
   * reader that falls behind by more than the log holds (seven days and 1 GiB; a day if `history`, a
   * replica or an archive turned the log on; or the bounds of the option `log` of {@link openKv})
   * gets the last change of each key of what has left the log, and is too late if a deletion has left
   * it. The first feed turns the log on.
   *
   * @param options.since Continues after this versionstamp, of an earlier batch, entry or commit.
   * @param options.initial Yields the present entries first, as changes of type `set`, in batches
   *   with `initial`; the last of them has no changes if there are no more entries. Then come all
   *   changes that these entries do not show. Excludes `since`.
   * @throws TypeError when the selector has no usable combination of bounds, `since` is no
   *   versionstamp, or an option is unknown; {@link BadResource} on a closed handle.
   *
   * Reading rejects with {@link KvFeedGapError} if the changes after `since` are no longer complete
   * (or `since` is not of this database): read the present state, and watch from there. With {@link
   * KvError} `DENIED` on a read-only handle of a file that does not log changes yet.
   *
   * @example
   * for await (const { changes, versionstamp } of kv.watch({ prefix: ["users"] }, { since })) {
   *   for (const { type, key, value } of changes) {
   *     if (type === "set") copy.set(key, value);
   *     else copy.delete(key);
   *   }
   *   await remember(versionstamp);
   * }
   */
  watch<T = unknown>(
    selector: KvListSelector,
    options?: {
      since?: string | undefined;
      initial?: boolean | undefined;
      signal?: AbortSignal | undefined;
    },
  ): ReadableStream<KvChanges<T>>;

  /**
   * Returns a symbol that the commit replaces by its versionstamp, as the last part of a key that
   * is set.
   *
   * @example
   * await kv.set(["log", kv.commitVersionstamp()], "entries in commit order");
   */
  commitVersionstamp(): symbol;

  /**
   * Creates a full-text index over the entries under a prefix. When the promise has resolved, every
   * commit keeps the index exact: a search finds what was committed before it started. Older
   * entries are indexed in the background, between reads and writes, also after a crash; see {@link
   * KvIndex.progress}. If an index with the same description exists, it is returned, so a program
   * may call this at every start.
   *
   * Rejects with `TypeError` for an invalid option, and when another index has the prefix (see
   * `replace`) or the name; {@link BadResource} on a closed handle; {@link KvError} when the database cannot write, with
   * code `UNSUPPORTED` on PostgreSQL and on a server that is not openkv's.
   *
   * @example
   * const index = await kv.createIndex({ prefix: ["products"], fields: ["name", "details.maker"] });
   * for await (const { indexed, total } of index.progress) console.log(indexed, "of", total);
   */
  createIndex(options: KvIndexOptions): Promise<KvIndex>;
  /**
   * Creates a value index over the entries under a prefix: lists with `where` read only what it names, and
   * lists with `orderBy` come in its order. From then on every commit keeps it exact. Rejects as for a
   * full-text index, but with code `UNSUPPORTED` in files for Deno and on a server that is not openkv's.
   *
   * @example
   * await kv.createIndex({ type: "value", prefix: ["users"], on: "email", unique: true });
   * for await (const entry of kv.list({ prefix: ["users"] }, { where: { email: "ada@example.com" } })) {
   *   console.log(entry.key);
   * }
   */
  createIndex(options: KvValueIndexOptions): Promise<KvValueIndex>;

  /**
   * Returns the documents of one kind below a prefix, typed and checked by a schema (docs/collections.md). It reads
   * and writes nothing by itself.
   *
   * @throws TypeError for a wrong prefix or option.
   *
   * @example
   * const users = kv.collection(["users"], { schema: User, id: "id" });
   * const ada = await users.insert({ id: "ada", email: "ada@example.com", age: 36 });
   * await users.update(ada.id, { age: 37 });
   * for await (const { value } of users.where({ age: { $gte: 18 } })) console.log(value.email);
   */
  collection<
    S extends KvSchema,
    const Id extends KvCollectionId<KvSchemaOutput<S>>,
    const Prefix extends KvEntryKey,
    const Indexes extends Record<string, KvCollectionIndex<KvPath<KvSchemaOutput<S>>>> = Record<
      never,
      never
    >,
  >(
    prefix: Prefix,
    options: KvCollectionOptions<S, Id, Indexes>,
  ): KvCollection<
    KvSchemaOutput<S>,
    KvSchemaInput<S>,
    KvIdOf<KvSchemaOutput<S>, Id>,
    Prefix,
    KvOrderedPath<Indexes>
  >;

  /**
   * Returns a handle for programs that want all keys checked: it takes the keys of the documents of these
   * collections alone, and values that their schemas take.
   *
   * @throws TypeError for something that is no collection.
   *
   * @example
   * const db = kv.schema({ users, orders });
   * await db.set(["users", "ada"], { id: "ada", email: "ada@example.com", age: 36 });
   * const { value } = await db.get(["users", "ada"]);
   */
  schema<C extends Record<string, KvCollection>>(collections: C): KvTypedKeys<C>;

  /**
   * Returns all indexes, in the order of their names. It counts their documents, which
   * takes time in proportion to their number. Rejects as {@link get}.
   *
   * @example
   * for (const { name, state, documents } of await kv.listIndexes()) console.log(name, state);
   */
  listIndexes(options?: KvCallOptions): Promise<(KvIndexInfo | KvValueIndexInfo)[]>;

  /**
   * Drops the index of exactly this prefix, or (a string) of this name; false if there is none. The
   * entries stay. Rejects with `TypeError` for anything else; otherwise as {@link createIndex}.
   *
   * @example
   * await kv.dropIndex(["products"]);
   */
  dropIndex(prefix: KvKey | string, options?: KvCallOptions): Promise<boolean>;

  /**
   * Searches the entries under a prefix that has an index, or extends a prefix that has one. Index
   * and entries are read in one state of the database.
   *
   * The query is FTS5's language: `red bike` (both), `"red bike"` (side by side), `bik*`, `a OR b`,
   * `a NOT b`, `a AND (b OR c)`, `NEAR(a b, 5)`, `^a` (at the start of a field), `name:red`,
   * `details.maker:volvo`, `{name tags}:red`. Words with other characters than letters, digits and
   * `_` are put in double quotes.
   *
   * Rejects with `TypeError` for a malformed query, naming the position and what was expected
   * there, for an unknown field or option, and when no index covers the prefix; {@link BadResource}
   * on a closed handle; {@link KvError} when the file cannot be read, and with code `UNAVAILABLE`
   * when the search takes longer than 5 minutes (one minute at a server).
   *
   * @example
   * const { entries } = await kv.search<Product>(["products"], "name:bik* AND red", {
   *   where: { price: { $lt: 500 } },
   *   highlight: true,
   * });
   * for (const { value, score, highlights } of entries) console.log(value.name, score, highlights);
   */
  search<T = unknown>(
    prefix: KvKey,
    query: string,
    options?: KvSearchOptions<T>,
  ): Promise<KvSearchResult<T>>;

  /**
   * Returns the size of the database. `entries: true` reads every entry, on a thread of its own;
   * all other numbers cost almost nothing. Bytes and pages are 0 for `:memory:`.
   *
   * Rejects with `TypeError` for an unknown option or one of the wrong type; else as {@link get}.
   *
   * @example
   * const { databaseBytes, freePages, pageSize } = await kv.stats();
   * if (freePages * pageSize > databaseBytes / 2) await kv.vacuum();
   */
  stats(options?: {
    entries?: boolean | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<KvStats>;

  /**
   * Returns what this process has done with the database since it opened it, over all its handles,
   * with the depths of queues and the sizes of indexes and files. `format: "prometheus"` returns
   * text in Prometheus' exposition format 0.0.4; every name begins with `openkv_`.
   *
   * Counting takes no measurable time. A call of `metrics` counts the waiting messages and the
   * indexed documents, on a thread of its own: call it every few seconds at most.
   *
   * Rejects with `TypeError` for an unknown option or format; {@link BadResource} on a closed
   * handle; {@link KvError} `UNSUPPORTED` for a database behind a URL whose server is not openkv's.
   *
   * @example
   * const { operations, conflicts } = await kv.metrics();
   * console.log(operations.get.count, operations.set.latency?.p99Ms, conflicts);
   */
  metrics(options?: {
    format?: "object" | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<KvMetrics>;
  metrics(options: { format: "prometheus"; signal?: AbortSignal | undefined }): Promise<string>;

  /**
   * Gives the free pages of the file back to the system, in steps of half a megabyte, between which other writes go on. A
   * vacuum that is ended by its `signal` or a crash keeps what it has given back, and the next one goes on. A file with
   * {@link KvStats.vacuumInSteps} `false` is written anew as a whole: writes of all processes wait meanwhile, reads do
   * not, and the disk needs space for a copy. Does nothing for `:memory:`.
   *
   * Rejects with {@link KvError}: `UNAVAILABLE` when another process writes for longer than
   * `busyTimeout` or the disk is full, `DENIED` on a `readonly` handle; {@link BadResource} on a
   * closed handle.
   *
   * @example
   * const { beforeBytes, afterBytes } = await kv.vacuum();
   * console.log(`freed ${beforeBytes - afterBytes} bytes`);
   */
  vacuum(options?: KvCallOptions): Promise<{ beforeBytes: number; afterBytes: number }>;

  /**
   * Moves the log (`-wal`) into the file, as far as readers allow it; SQLite does so by itself
   * with a commit that finds 4,000 pages in it. Returns how many pages (4096 bytes) the log had, and how many of them are in
   * the file now. `:memory:` has no log: both are 0.
   *
   * Rejects with {@link BadResource} on a closed handle, {@link KvError} when the file cannot be
   * written.
   *
   * @example
   * const { logPages, movedPages } = await kv.checkpoint();
   */
  checkpoint(options?: KvCallOptions): Promise<{ logPages: number; movedPages: number }>;

  /**
   * Copies the database at one point in time into a new file, while it is in use. The copy is
   * verified before it gets its name: it is opened, checked, and its contents are compared.
   *
   * @param path A file that does not exist yet.
   *
   * Rejects with `TypeError` for a path that exists or an invalid option, with `signal`'s reason
   * when it is aborted (nothing is left behind then), with {@link KvError} of code `UNSUPPORTED`
   * where there is no file: `:memory:`, PostgreSQL, and the URL of another server than openkv's; `CORRUPT` when the copy differs from the
   * database, `UNAVAILABLE` and `DENIED` when it cannot be written, {@link BadResource} on a closed
   * handle.
   *
   * @example
   * const { entries, sha256 } = await kv.backup("backups/monday.sqlite3");
   */
  backup(path: string, options?: KvBackupOptions): Promise<KvBackup>;

  /**
   * Archives the database while it is in use: the changes at least every second, and now and then a
   * snapshot, which `openkv restore` puts together again as of any commit or time. Turns the replication
   * log on ({@link OpenKvOptions.log}), which stays on. Resolves once the archive belongs to this archiver;
   * failures later on are in {@link KvArchive.status}, and are tried again. {@link Kv.close} archives what
   * is left, and ends it.
   *
   * `to` is a folder, or a URL: `s3://bucket/path`, `gs://bucket/path`, `az://container/path`. Credentials
   * come from the environment (`AWS_ACCESS_KEY_ID` …), never from the URL. See docs/backup.md.
   *
   * Rejects with `TypeError` for an invalid option, a target that is not empty and no archive, and the
   * archive of another database; with {@link KvError} of code `UNSUPPORTED` for `:memory:`, a file of Deno
   * and a database behind the URL of a server, `UNAVAILABLE` while another archiver writes to the target or
   * when it cannot be reached, `DENIED` when the credentials are refused, {@link BadResource} on a closed
   * handle.
   *
   * @example
   * const kv = await openKv("data.sqlite3");
   * const archive = await kv.archive({ to: "archive", snapshotEvery: "6h", retention: "30d" });
   * await kv.set(["a"], 1);
   * await archive.stop(); // everything is archived
   * const { versionstamp } = archive.status();
   */
  archive(options: KvArchiveOptions): Promise<KvArchive>;

  /**
   * Checks the file: its pages by SQLite's own check, then every key, value and time. The time is
   * in proportion to the size of the file; other calls do not wait. At most 100 findings.
   *
   * @example
   * const { ok, findings } = await kv.check();
   */
  check(options?: KvCallOptions): Promise<{ ok: boolean; findings: string[] }>;

  /**
   * Opens the entries of a moment of the past: right after the commit of a versionstamp, or at a time. What it
   * returns reads them as a reader saw them then, without entries that had expired: `get`, `getMany`, `list`, `count`,
   * `paginate` and their options. It refuses writes with code `DENIED`, and queues and `search` with `UNSUPPORTED`.
   * It needs the option `history` of {@link openKv}. Close it like every handle.
   *
   * Rejects with `TypeError` for something else than a versionstamp or a `Date`, `RangeError` for a moment before the
   * beginning of the history or after the present, with `signal`'s reason when it is aborted, {@link KvError} of code
   * `UNSUPPORTED` for a database without a history or behind the URL of a server, {@link BadResource} on a closed
   * handle. A read rejects with `RangeError` once the history no longer reaches back to the moment.
   *
   * @example
   * const kv = await openKv("data.sqlite3", { history: "7d" });
   * const { versionstamp } = await kv.set(["a"], 1);
   * await kv.set(["a"], 2);
   * const then = await kv.at(versionstamp);
   * const { value } = await then.get(["a"]); // 1
   * await then.close();
   */
  at(when: Date | string, options?: KvCallOptions): Promise<Kv>;

  /**
   * Yields the versions of the entry of a key, the newest first: what each commit has made of it, back to the
   * beginning of the history. The oldest version is the one that the history began with: it has no `committedAt`.
   * Versions are read in pages, as the caller asks for them: versions of later commits are not included, and
   * versions that the history loses meanwhile are left out.
   *
   * An entry that expires is absent from its `expireAt` on, also to {@link Kv.at}, although the version `"delete"` of
   * its removal comes later. A deletion of an absent entry is no version. It needs the option `history` of
   * {@link openKv}; it works on a file, in memory, on PostgreSQL and behind the URL of an openkv server.
   *
   * Throws `TypeError` for a key, `limit` or `before` of another form. `next()` rejects with `signal`'s reason when it
   * is aborted, {@link KvError} of code `UNSUPPORTED` for a database without a history or behind the URL
   * of another server, {@link BadResource} on a closed handle.
   *
   * @example
   * const kv = await openKv("data.sqlite3", { history: "7d" });
   * await kv.set(["price"], 100);
   * await kv.set(["price"], 120);
   * for await (const { value, committedAt } of kv.history(["price"], { limit: 10 })) {
   *   console.log(value, committedAt); // 120, then 100
   * }
   */
  history<T = unknown>(key: KvKey, options?: KvHistoryOptions): AsyncIterableIterator<KvVersion<T>>;

  /**
   * Closes the handle. Writes that were called before are completed, and their promises resolve.
   * Reads in progress may reject with {@link BadResource}; later calls do, also those of handlers that
   * still run. Watches end at once. Listeners take no more messages, and a message that arrives for a
   * waiting {@link KvQueue.receive} goes back. A write that waits for a `Blob` or for a `deleteMany`
   * rejects with {@link BadResource}.
   *
   * Returns at once. The promise resolves when the handlers of listeners have ended, each waited for as
   * long as its `drain` says, when what they settled is durable and, if this was the last handle in the
   * process, when the file is released. It never rejects, and need not be awaited. A handler must not
   * wait for it: both would wait for `drain`. A new opening of the file in this
   * process waits for the release, and the end of the process waits for at most 10 seconds.
   *
   * @throws {@link BadResource} when it is closed already.
   *
   * @example
   * await kv.close();
   * await unlink("app.sqlite3");
   */
  close(): Promise<void>;

  /**
   * Closes the handle, if it is open: `using kv = await openKv()`. Waits for the release of the file
   * for at most 500 ms; `await using` waits without blocking.
   */
  [Symbol.dispose](): void;
  /** Closes the handle, if it is open, and resolves as {@link Kv.close} does. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Options of {@link Kv.archive}. An unknown name is a `TypeError`. */
export interface KvArchiveOptions {
  /** A folder, which is created, or the URL of a place in an object store. */
  to: string;
  /** How often a snapshot is taken: ms, or a text like `"6h"`. A restore begins with one. Default: `"24h"`. */
  snapshotEvery?: KvDuration | undefined;
  /** How long the archive reaches back; older objects are removed. Default: `"30d"`. */
  retention?: KvDuration | undefined;
}

/** A running archiver of {@link Kv.archive}. */
export interface KvArchive {
  /** How far it is. */
  status(): KvArchiveStatus;
  /** Archives what is left, and ends. A second call waits for the same end. */
  stop(): Promise<void>;
}

/** The state of a {@link KvArchive}. */
export interface KvArchiveStatus {
  /** `failing`: the last attempt has failed, and is repeated. `stopped`: it has ended. */
  state: "running" | "failing" | "stopped";
  /** The last archived commit; null before the first look. */
  versionstamp: string | null;
  /** The database had no later commit then. */
  completeAt: Date | null;
  /** Objects that it has written. */
  objects: number;
  /** Bytes of these objects. */
  bytes: number;
  /** The commit of the newest snapshot that it has taken. */
  snapshot: string | null;
  /** When it was taken. */
  snapshotAt: Date | null;
  /** How often the replication log no longer reached back to the archived commits; see docs/backup.md. */
  gaps: number;
  /** Objects that the retention has removed. */
  pruned: number;
  /** Snapshots among the objects. */
  snapshots: number;
  /** Attempts that have failed. */
  failures: number;
  /** Milliseconds since it had everything, or since it began. */
  lagMs: number;
  /** Why it fails or has stopped. */
  error: string | null;
  /** What an operator should know, the oldest first, each once. */
  reports: string[];
}

/** Options of {@link Kv.backup}. An unknown name is a `TypeError`. */
export interface KvBackupOptions {
  /**
   * Called now and then with the number of copied pages (4096 bytes). If it throws, the backup ends
   * and rejects with that error; a copy that was complete by then stays.
   */
  onProgress?: ((progress: { pagesDone: number; pages: number }) => void) | undefined;
  /** Cancels the backup; nothing is left behind. */
  signal?: AbortSignal | undefined;
}

/** Options of {@link restore}. An unknown name is a `TypeError`. */
export interface KvRestoreOptions extends KvBackupOptions {
  /** Replaces an existing file, with its log. Default: false, which refuses. */
  force?: boolean | undefined;
}

/**
 * Replaces a database by a backup. Verifies the backup, copies it beside `path`, verifies the copy,
 * and renames it: at every moment `path` is either the old database or the complete backup. The log
 * of a replaced file is removed with it.
 *
 * @param backup A file from {@link Kv.backup}, or a copy of a closed database.
 * @param path The database; no process may have it open.
 *
 * Rejects with `TypeError` when `path` exists and `force` is not `true`; with {@link KvError}
 * `UNAVAILABLE` when `path` is open, here or in another process, or cannot be written, `CORRUPT` or
 * `UNSUPPORTED` when `backup` is no backup; with the signal's reason when aborted.
 *
 * @example
 * import { restore } from "openkv";
 * await restore("backups/monday.sqlite3", "data/app.sqlite3", { force: true });
 */
export function restore(
  backup: string,
  path: string,
  options?: KvRestoreOptions,
): Promise<KvBackup>;

/** A verified copy. */
export interface KvBackup {
  /** Its size. */
  bytes: number;
  /** Entries in it, expired ones included. */
  entries: number;
  /** Its last commit. */
  versionstamp: string;
  /** SHA-256 of all its rows, in hexadecimal: the same for two files with the same contents. */
  sha256: string;
}

/** Every limit of a handle. The defaults are Deno KV's. Sizes are in encoded bytes. */
export interface KvLimits {
  // Generated from crates/core/src/model/limits.rs by `npm run generate`.
  /** A key of a check, a change or an undelivered message. Default: 2048. */
  keyBytesMax: number;
  /** A bound of a read; one more than a key. Default: 2049. */
  rangeKeyBytesMax: number;
  /** A value, also one that `append` or `sum` makes. Default: 65536. */
  valueBytesMax: number;
  /** A queue message. Default: 65536. */
  messageBytesMax: number;
  /** Keys of one `getMany`. Default: 10. */
  rangesMax: number;
  /** `batchSize` of a list. Default: 1000. */
  rowsMax: number;
  /** Checks of one commit. Default: 100. */
  checksMax: number;
  /** Entries that the lists of one transaction saw. Default: 1000. */
  checkedRowsMax: number;
  /** Changes and messages of one commit. Default: 1000. */
  mutationsMax: number;
  /** Keys of one watch. Default: 10. */
  watchedKeysMax: number;
  /** Keys, values and messages of one commit together. Default: 819200. */
  commitBytesMax: number;
  /** Keys of the changes with a value of one commit together. Default: 81920. */
  commitKeyBytesMax: number;
  /** Keys in `keysIfUndelivered`. Default: 10. */
  undeliveredKeysMax: number;
  /** The delay of a message, in milliseconds. Default: 2592000000. */
  delayMsMax: number;
  /** Intervals in a `backoffSchedule`. Default: 5. */
  backoffIntervalsMax: number;
  /** One interval of a `backoffSchedule`, in milliseconds. Default: 3600000. */
  backoffIntervalMsMax: number;
  // End of the generated limits.
}

/** A clock that a database in memory follows ({@link OpenKvOptions.clock}). */
export interface KvClock {
  /** The time, in whole milliseconds since the epoch. */
  now(): number;
  /**
   * Calls `move` with each new time, until the returned function is called. The promise of `move` resolves
   * when the database has done what is due then.
   */
  follow(move: (nowMs: number) => Promise<void>): () => void;
}

/** Options of {@link openKv}. An unknown name is a `TypeError`. */
export interface OpenKvOptions {
  /**
   * The durability of an acknowledged write. `"full"`: it survives a power loss. `"normal"`: it survives a crash of the
   * process; a power loss may lose the last commits, never the file. Default: `"full"`.
   */
  durability?: "full" | "normal" | undefined;
  /**
   * Opens an existing file and refuses every write with code `DENIED`. In a folder where this
   * process may make no files (a read-only mount, an image, another user's copy) a file without a
   * log is read as it is. If another process changes it meanwhile, reads reject with code `UNAVAILABLE`.
   * A file with a log (`-wal`) is read there if the log's index (`-shm`) is there too, else it is
   * `DENIED`. Default: false.
   */
  readonly?: boolean | undefined;
  /**
   * How long a call waits for another process that holds the file, in milliseconds; then it fails
   * with code `UNAVAILABLE`. Default: 5000. The time includes waiting for earlier writes of this
   * process.
   */
  busyTimeout?: KvDuration | undefined;
  /**
   * For a file only (on PostgreSQL it is `"cbor"`): the encoding of its values. `"cbor"`, the default of a new file, has a form
   * for every value. `"v8"` is the format of Deno KV, so that Deno can open the file too; it has no
   * form for `Blob` and `File` (docs/deno.md#one-file-for-deno-and-openkv). A file keeps the encoding that it was created
   * with; a file of Deno is `"v8"`. Without the option the file's own is used; another one is a
   * `TypeError`.
   */
  encoding?: "cbor" | "v8" | undefined;
  /**
   * For a file or an object store: whether it keeps the counters of {@link Kv.metrics}. With `persistent: true` the counts
   * and latencies go on where earlier openings ended, those of other processes with this option included. They are stored every
   * `flushInterval` milliseconds (default: 10000, at least 100) if there is anything new, and when the last handle is
   * closed; a process that dies loses what it has counted since. A `TypeError` with `readonly`, and `lead: "never"`.
   */
  metrics?:
    | { persistent?: boolean | undefined; flushInterval?: KvDuration | undefined }
    | undefined;
  /**
   * For a file of openkv's own, memory, PostgreSQL, or an object store (in the copy of each process): whether the
   * database keeps a log of all committed changes, in order. A change is kept for `retention`, a duration in
   * milliseconds or with a unit (`"36h"`; default: a day), and older ones go when the log has more than `maxBytes`
   * bytes (default: 1 GiB). The database remembers the setting for all its processes; without the option it stays as
   * it is, which is off in a new database. `history` and the first replica or archive turn it on, and so does the
   * first change feed, for which it keeps seven days; on PostgreSQL feeds read a table of their own instead. `false`
   * turns it off and deletes it, with the history; open feeds that read it then reject with {@link KvFeedGapError}
   * after the next commit, and a new one turns it on again. With `messages` (default: false) the log also has the
   * messages and dead letters of queues, so that a restore from an archive has those of its moment; the end of a
   * delivery is then a commit.
   */
  log?:
    | boolean
    | {
        retention?: KvDuration | undefined;
        maxBytes?: number | undefined;
        messages?: boolean | undefined;
      }
    | undefined;
  /**
   * For a file of openkv's own, memory, PostgreSQL, or an object store (in the copy of each process): for how long the
   * database keeps what is replaced or deleted, for {@link Kv.at}: a duration in milliseconds or with a unit (`"7d"`).
   * It turns on the log. The history begins when it is turned on. The database remembers the setting; `false` turns it
   * off and deletes the history.
   */
  history?: KvDuration | false | undefined;
  /**
   * For a file only: bytes of the page cache of each connection to it, from 65536 to 64 GiB. A handle has one connection;
   * a file has further ones for its writer and its background reads. A read that finds its page here costs less than half of
   * one that asks the operating system. The cache takes memory as it fills. All handles of a process on a file share
   * connections: another value than that of the open ones is a `TypeError`. Default: 16777216, and more while reads miss
   * it, within a bound of the process (docs/operating.md).
   */
  cacheSize?: number | undefined;
  /**
   * For a file only: bytes of the file, from its beginning, that reads take from the memory of the operating system instead of
   * copying them into a cache, at most 2147418112. Faster for files larger than `cacheSize`, **but unsafe where the file can
   * be damaged**: when another program shortens the file, or the disk fails under a read, the process ends with the signal
   * SIGBUS instead of an error (docs/operating.md). All handles of a process on a file agree on it, as on `cacheSize`.
   * Default: 0, which maps nothing.
   */
  mmapSize?: number | undefined;
  /**
   * For a file only: how many databases in files this process keeps open at one time, from 1 to 1000000. Beyond it the
   * ones that were used least recently are parked: their connections are closed, and the next call opens them again
   * (docs/operating.md#many-databases). It is a setting of the process: the last opening that names it counts for all. Default: by
   * the limit of descriptors of the process (`ulimit -n`), 109 with 1024 of them, at most 4096.
   */
  maxOpen?: number | undefined;
  /**
   * For a file or memory: where commits run. With `"auto"`, the default, a small write that is awaited alone commits on the
   * thread of its caller, which saves the way to the writer thread and back (docs/benchmarks.md). It blocks that
   * thread, for about 1 ms in a turn of the event loop at most, by the durations of the last commits. Where the disk takes
   * longer than 0.5 ms to sync, or several callers write, commits run on the writer thread. With `"thread"` they always do.
   */
  lane?: "auto" | "thread" | undefined;
  /**
   * For memory only: the clock of the database, instead of the machine's, for tests: `testClock()` of `openkv/testing` makes
   * one. Expiry, delays, locks, retries and the retention of dead letters are by it. The `wait` of `receive` is in real time.
   */
  clock?: KvClock | undefined;
  /**
   * Limits: `"deno"`, the default, those of Deno KV; `"wide"`, those of docs/limits.md for
   * databases that need not run on Deno; or single limits by name, the others being Deno's.
   * `valueBytesMax` and `messageBytesMax` work up to 64 MiB, and raise `commitBytesMax` with them
   * unless it is given.
   */
  limits?: Partial<KvLimits> | "deno" | "wide" | undefined;
  /**
   * For an `http:` or `https:` URL: the access token, in visible ASCII characters. Default: `OPENKV_ACCESS_TOKEN`,
   * else `DENO_KV_ACCESS_TOKEN` in the environment. Without any, a server that asks for one is a `TypeError`.
   *
   * For a database of servers in an object store: writes, and consumers of queues, go to the server that leads the database,
   * with this token. The process reads its copy and never leads. See docs/bucket.md. Default: none.
   */
  accessToken?: string | undefined;
  /**
   * For a URL only: how long opening, and every later call, may take with all its retries, in
   * milliseconds; then it fails with code `UNAVAILABLE`, or `OUTCOME_UNKNOWN` for a write that may
   * have happened. A watch continues for as long as it is read. Without the option, opening fails with the
   * first reason why the server is not reached (docs/remote.md). Default: 10000.
   */
  timeout?: KvDuration | undefined;
  /**
   * For a URL only: cancels all calls in progress, and closes the handle. Opening, reads, writes
   * that were not sent yet and all later calls reject with the signal's reason; a write that may
   * have happened rejects with {@link KvOutcomeUnknownError}; streams of watches fail with the
   * reason.
   *
   * For the URL of an object store: ends the opening, also while it waits for the lead. Then the opening rejects with the
   * signal's reason, and nothing of it is left. An open handle goes on when the signal aborts.
   *
   * @example
   * const kv = await openKv("s3://my-bucket/shop", { lead: "wait", signal: AbortSignal.timeout(60_000) });
   */
  signal?: AbortSignal | undefined;
  /**
   * For the URL of an openkv server or of PostgreSQL only: a local copy that follows the database, in a file or in
   * memory (`":memory:"`). Reads with `consistency: "eventual"`, watches and feeds are answered from it, also while
   * the server cannot be reached; writes and `"strong"` reads go to the server. It has the value indexes of the database
   * too. Searches of a database on PostgreSQL are answered from it. See {@link KvReplica} and
   * docs/remote.md#replicas. Opening asks the server once, and does not wait for the copy. If the server cannot be reached, a
   * complete copy from before is opened without it, except that of a database on PostgreSQL. A file that is a
   * database of its own is `DENIED`, one of another database ends the replica with `DENIED`, a server
   * without a replication log is `UNSUPPORTED`. Default: no copy.
   *
   * @example
   * const kv = await openKv("https://kv.example.com", { replica: "near.sqlite3" });
   * await kv.replica?.ready();
   * const { value } = await kv.get(["users", 1], { consistency: "eventual" });
   */
  replica?: string | URL | undefined;
  /**
   * With `replica`: the copy has only the keys that extend one of these, at most 100. Other reads go to the
   * server. Default: all keys.
   */
  prefixes?: readonly KvKey[] | undefined;
  /**
   * For a URL only, and on PostgreSQL with `replica`: the consistency of reads that name none, and of counts, searches and `ttl`, which cannot.
   * Transactions always read `"strong"`. For the URL of an object store: whether all reads of the handle may miss the newest
   * commits of another process (`"eventual"`). Default: `"strong"`.
   */
  consistency?: KvConsistencyLevel | undefined;
  /**
   * For the URL of an object store only: the folder in which this process keeps its copy of the database. One process
   * may have it at a time: another one is `UNAVAILABLE`. A copy that is no beginning of the database is replaced.
   * Default: a temporary folder, removed when the handle is closed.
   *
   * @example
   * const kv = await openKv("s3://my-bucket/shop?region=eu-central-1", { cache: "shop-cache" });
   */
  cache?: string | URL | undefined;
  /**
   * For the URL of an object store only: whether this process leads the database, as only one process at a time does,
   * and so writes. `"auto"`: while no other process leads; until then its writes are `UNAVAILABLE`. `"wait"`: opening
   * waits until it leads. `"never"`: it reads, and its writes are `DENIED`; so it is with `readonly`. See
   * docs/bucket.md. Default: `"auto"`; with `accessToken` `"never"`.
   */
  lead?: "auto" | "wait" | "never" | undefined;
  /**
   * With `replica`: how old an eventual read may be, in milliseconds or with a unit (`"5s"`). A read that
   * would be older goes to the server, or rejects with `UNAVAILABLE` while that cannot be reached. The
   * server tells the replica its position every two seconds, or four times within `maxLag`. Default: any age.
   */
  maxLag?: KvDuration | undefined;
}

/** How far a replica is. */
export interface KvReplicaStatus {
  /**
   * `"bootstrapping"`: it connects, or gets a copy of everything. `"following"`. `"disconnected"`: it tries
   * again by itself, and eventual reads go on; also after an opening without the server. `"failed"`: `error` says
   * what to do.
   */
  state: "bootstrapping" | "following" | "disconnected" | "failed";
  /** The commit up to which it has every change; null before the first complete copy. */
  version: string | null;
  /** How long ago it had everything that the server had, in milliseconds; null: not since it was opened. */
  lag: number | null;
  /** Whether it has a complete copy, as the server has confirmed since the opening. */
  ready: boolean;
  /** The number of complete copies since it was opened; a replica that goes on where it was makes none. */
  copies: number;
  /** Why the last copy was needed, for example that the database was restored; null: there was none. */
  copiedBecause: string | null;
  /** The last problem; null while it follows. */
  error: Error | null;
}

/** The local copy of a remote database: `kv.replica` of a handle that was opened with the option `replica`. */
export interface KvReplica {
  /**
   * How far the replica is. It never waits for the server.
   *
   * @example
   * const { state, lag } = await kv.replica!.status();
   */
  status(): Promise<KvReplicaStatus>;
  /**
   * Resolves once the replica has a complete copy of the database. One from before counts as soon as the
   * server has confirmed that it is a copy of its database. It waits for as long as the server cannot be reached; a `signal` ends the wait.
   *
   * Rejects with the replica's error when it has failed: `DENIED` for a file of another database, `CORRUPT`
   * for a file that something else has written to.
   *
   * @example
   * await kv.replica!.ready({ signal: AbortSignal.timeout(10_000) });
   */
  ready(options?: KvCallOptions): Promise<void>;
  /**
   * Resolves once the replica has the commit with this versionstamp, for example one that another process
   * has passed on. A `signal` ends the wait.
   *
   * Rejects with `TypeError` for what is no versionstamp; with the replica's error when it has failed; with
   * `UNAVAILABLE` if the database was restored meanwhile.
   *
   * @example
   * await kv.replica!.reached(versionstamp);
   */
  reached(versionstamp: string, options?: KvCallOptions): Promise<void>;
}

/**
 * Opens a database.
 *
 * @param path
 * - a file path, relative to the working directory; the file and its directories are created
 * - a `file:` URL, as a string or object
 * - an `http:` or `https:` URL: a remote database of a KV Connect server (docs/remote.md); several
 *   servers of one database with commas, like `"https://a.example/shop,https://b.example/shop"`: when
 *   one of them cannot be reached, the client tries the next one
 * - a `postgres:` URL: a database on a PostgreSQL server (docs/postgres.md)
 * - an `s3:`, `gs:`, `az:` or `bucket+file:` URL: a database in an object store (docs/bucket.md)
 * - `":memory:"`: a private database in memory that ends with its handle
 * - left out: the path or URL in `OPENKV_URL`, else `.openkv/kv.sqlite3` beside the nearest
 *   `package.json` or `deno.json` above the working directory
 *
 * Rejects with `TypeError` for an invalid path or option; with {@link KvError} of code `DENIED`,
 * `CORRUPT` or `UNAVAILABLE` when the file or server cannot be opened, `UNSUPPORTED` for a kind of
 * URL that this version does not know, and for a server that speaks another version of KV Connect.
 *
 * @example
 * import { openKv } from "openkv";
 * const kv = await openKv("data/app.sqlite3");
 * await kv.set(["hello"], "world");
 */
export function openKv(path?: string | URL | null, options?: OpenKvOptions): Promise<Kv>;

/**
 * Quotas of one database of a server. A quota that is left out is not bounded, except watches
 * (10,000).
 */
export interface ServerQuotas {
  /**
   * Stored bytes of a database in a file, beyond which writes that store are refused. Free pages, the log beside
   * the file, and the log that feeds and replicas read do not count.
   */
  bytes?: number | undefined;
  /** Requests in a second; this many may come at once. */
  operationsPerSecond?: number | undefined;
  /** Messages in a queue beyond which enqueueing is refused. */
  queueDepth?: number | undefined;
  /** Watches at one time. */
  watches?: number | undefined;
}

/** Options of {@link serve}. An unknown name is a `TypeError`. */
export interface ServeOptions {
  /**
   * A file, which is one database; or a folder of many databases: it exists, or the path ends with
   * a separator. Left out with `engine`.
   */
  path?: string | undefined;
  /**
   * Instead of a path: the `postgres:` URL of a PostgreSQL database, without `kv`, or the URL of a path in an object
   * store, as `s3://bucket/path`. It holds many databases, which any number of servers share (docs/postgres.md,
   * docs/bucket.md).
   */
  engine?: string | undefined;
  /**
   * With an `engine` in an object store: the folder where this server keeps its copies of the databases, for its next
   * start. Without it, they are in a temporary folder, and are removed when the server closes. Each server has a folder of its own.
   */
  cache?: string | undefined;
  /**
   * Makes this a read server: `path` is the file of a replica that follows the database at this URL, or a
   * folder for replicas of all databases of the server at this URL. It answers reads, watches and feeds, and names that server for everything else (docs/server.md#read-servers). It
   * has no tokens of its own: clients present those of the database at this URL.
   */
  replicaOf?: string | undefined;
  /**
   * With `replicaOf`, required: the access token for that database, whose right to read is enough; with a
   * folder the admin token of that server.
   */
  replicaToken?: string | undefined;
  /**
   * With `engine`, required: the URL by which clients reach this server. It names this server in the
   * metadata of databases that it leads, and in errors. With `replicaOf`: the URL that the server of
   * the database names to its clients for eventual reads, while this server follows it; `replicaToken`
   * then needs the highest rights.
   */
  advertise?: string | undefined;
  /** With `replicaOf` and `advertise`: the name of where this server is, for the admin API. */
  region?: string | undefined;
  /**
   * With `engine`, for servers behind one address such as a load balancer: writes for a database that
   * another server leads are handed over to it, at its `advertise`. Default: false, clients get
   * the leader's address.
   */
  forward?: boolean | undefined;
  /** Address and port; port 0 chooses a free port. Default: `"127.0.0.1:4512"`. */
  listen?: string | undefined;
  /**
   * The URL by which clients reach the HTTP API, if it is not that of `listen`: behind a proxy, or by
   * a name. Requests of the API that name another host are refused.
   */
  publicUrl?: string | undefined;
  /** The origin whose pages may use the HTTP API, as `"https://app.example.com"`. Default: none. */
  corsOrigin?: string | undefined;
  /**
   * Whether browsers get the studio at the URL of the server: pages that show and change the data,
   * with the rights of the token that is given to them. Default: `true`.
   */
  studio?: boolean | undefined;
  /**
   * Of a file: the token that may read and write. At least 12 visible ASCII characters. Required,
   * except on a loopback address: there, a server without tokens lets every program of the machine
   * read and write, for development.
   */
  accessToken?: string | undefined;
  /** Of a file: a token that may only read. */
  readToken?: string | undefined;
  /**
   * Of a folder and of an engine: the token of the admin API, which creates databases and their
   * tokens. Required, except for a folder on a loopback address, as `accessToken`.
   */
  adminToken?: string | undefined;
  /** Paths of a certificate (with its chain) and of its key, in PEM. Without: clear text. */
  tls?: { cert: string; key: string } | undefined;
  /** Of a file: no client may write. Default: false. */
  readonly?: boolean | undefined;
  /** Of a file: its quotas. Databases of a folder get theirs by the admin API. */
  quotas?: ServerQuotas | undefined;
  /** How long a token of the data path is valid, in milliseconds. Default: 15 minutes. */
  dataTokenMs?: KvDuration | undefined;
  /**
   * Connections at one time. A new connection replaces the oldest one that has never presented a
   * valid token; if all have presented one, it waits. Default: 4096.
   */
  connectionsMax?: number | undefined;
  /**
   * Databases in files that the server keeps open at one time; the others are opened when a request asks for them, as
   * `maxOpen` of {@link OpenKvOptions}. Not for an engine.
   */
  maxOpen?: number | undefined;
  /**
   * Archives the file to `to`, or each database of the folder to `to/NAME`, unless the admin API has set a policy for it
   * (docs/backup.md#archives-of-a-server). Not for an engine, a read server, or with `readonly`.
   */
  archive?: KvArchiveOptions | undefined;
  /**
   * For clients of KeyVal (docs/keyval.md): every part of a key in a path or a query is a string. Default: false, whole
   * decimal numbers are numbers.
   */
  keyvalStrings?: boolean | undefined;
  /** For clients of KeyVal: how long a message is locked, in milliseconds, from 100 to 86,400,000. Default: 30,000. */
  keyvalLockDuration?: KvDuration | undefined;
  /** The log on standard error. Default: `"none"`. */
  log?: "none" | "text" | "json" | undefined;
}

/** A running server. It keeps the process alive until it is closed. */
export interface KvServer {
  /** The URL for clients on this machine. */
  readonly url: string;
  /** The port that it listens on. */
  readonly port: number;
  /**
   * Accepts no more connections, answers requests in progress (for at most 10 seconds), ends
   * watches and closes the databases. A second call waits for the same end.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Serves databases over KV Connect, Deno KV's network protocol, to Deno, to the npm and Python
 * clients, and to `openKv(url)`. See docs/server.md.
 *
 * Rejects with `TypeError` for invalid options, naming the option; with {@link KvError} of code
 * `UNAVAILABLE` or `DENIED` for an address, file or folder that cannot be used.
 *
 * @example
 * import { openKv, serve } from "openkv";
 * const accessToken = "a long and secret text";
 * const server = await serve({ path: "data/app.sqlite3", listen: "127.0.0.1:0", accessToken });
 * const kv = await openKv(server.url, { accessToken });
 * await kv.set(["hello"], "world");
 * kv.close();
 * await server.close();
 */
export function serve(options: ServeOptions): Promise<KvServer>;

/**
 * The size in bytes that the limits count: `sizeOf(value)` of a value (`valueBytesMax`),
 * `sizeOf.key(key)` of a key (`keyBytesMax`).
 *
 * @throws TypeError for a value or key that cannot be stored.
 *
 * @example
 * if (sizeOf(profile) > 65_536) throw new Error("too large to be stored");
 */
export const sizeOf: {
  (value: unknown): number;
  key(key: KvKey): number;
};

/**
 * The code of an error that a user's input can cause: what a request holds, and a call was given. The
 * classes are Deno's: `TypeError`, `RangeError`, and `Error` for the `limit` of a list. A mistake that only
 * code can make (an unknown option, a missing argument, a callback that is no function) has no code.
 *
 * - `INVALID`: an argument is malformed, of the wrong kind, or outside its bounds.
 * - `TOO_LARGE`: a key, a value, a message, a query, or a number of them is over a limit.
 * - `RANGE`: a number is outside the range of its type, or a value is nested too deeply.
 *
 * @example
 * const ofInput: readonly unknown[] = ["INVALID", "TOO_LARGE", "RANGE"] satisfies KvInputErrorCode[];
 * if (ofInput.includes((error as { code?: unknown }).code)) response.statusCode = 400;
 */
export type KvInputErrorCode = "INVALID" | "TOO_LARGE" | "RANGE";

/**
 * The code of a {@link KvError}: what the caller can do. Codes are stable, messages are not.
 *
 * - `CONFLICT`: another writer changed what was read. Read again and retry.
 * - `UNAVAILABLE`: not possible now: busy, disk full, too many open files. Nothing was done; retry
 *   later.
 * - `OUTCOME_UNKNOWN`: the write may or may not have happened ({@link KvOutcomeUnknownError}). Read
 *   to find out.
 * - `CLOSED`: the handle is closed ({@link BadResource}).
 * - `DENIED`: this process may not read or write the file.
 * - `CORRUPT`: the file is damaged, or not a database of this kind.
 * - `INTERNAL`: a bug of openkv; report it.
 * - `UNSUPPORTED`: a valid request that this version or database does not offer.
 * - `FEED_GAP`: the change feed no longer reaches back that far ({@link KvFeedGapError}).
 * - `UNIQUE`: a unique index has the value for another key ({@link KvUniqueError}).
 */
export type KvErrorCode =
  | "CONFLICT"
  | "UNAVAILABLE"
  | "OUTCOME_UNKNOWN"
  | "CLOSED"
  | "DENIED"
  | "CORRUPT"
  | "INTERNAL"
  | "UNSUPPORTED"
  | "FEED_GAP"
  | "UNIQUE";

/** A failure of the database. Wrong arguments are a `TypeError` instead, with a {@link KvInputErrorCode}. */
export class KvError extends Error {
  protected constructor();
  readonly code: KvErrorCode;
}

/**
 * Every attempt of a transaction had a conflict: try later. Or it was to acknowledge a message whose lock
 * is lost; it is not tried again then. `code` is `"CONFLICT"`.
 *
 * @example
 * try {
 *   await kv.transaction(transfer, { maxRetries: 3, retryDelay: { initial: 10 } });
 * } catch (error) {
 *   if (!(error instanceof KvConflictError)) throw error;
 *   console.log("too busy:", error.keys, error.ranges);
 * }
 */
export class KvConflictError extends KvError {
  private constructor();
  /**
   * The keys that the last attempt had read by `get` or `getMany` and other writers have changed
   * meanwhile.
   */
  readonly keys: KvEntryKey[];
  /**
   * The selectors of the lists of the last attempt in whose range other writers have changed
   * something.
   */
  readonly ranges: KvListSelector[];
  /** The ids of the messages of {@link KvTransaction.ack} whose locks were lost. */
  readonly messages: string[];
}

/**
 * A handler of {@link KvQueue.listen} throws it if no other attempt can help: the message is a dead letter at
 * once, with this error. Subclasses count too.
 *
 * @example
 * await kv.queue("mail").listen(async ({ to }) => {
 *   if (!to.includes("@")) throw new KvDoNotRetry(`${to} is no address`);
 *   await send(to);
 * });
 */
export class KvDoNotRetry extends Error {}

/**
 * The schema of a {@link KvCollection} has refused a document. `code` is `"INVALID"`.
 *
 * @example
 * try {
 *   await users.insert(body);
 * } catch (error) {
 *   if (!(error instanceof KvValidationError)) throw error;
 *   response.status(400).json(error.issues);
 * }
 */
export class KvValidationError extends TypeError {
  private constructor();
  readonly code: "INVALID";
  readonly issues: readonly KvSchemaIssue[];
}

/**
 * A write may or may not have happened: its answer was lost, and to send it again could write
 * twice. Read to find out. `code` is `"OUTCOME_UNKNOWN"`.
 *
 * @example
 * try {
 *   await kv.set(["order", id], order);
 * } catch (error) {
 *   if (!(error instanceof KvOutcomeUnknownError)) throw error;
 *   if ((await kv.get(["order", id])).value === null) await kv.set(["order", id], order);
 * }
 */
export class KvOutcomeUnknownError extends KvError {
  private constructor();
}

/**
 * The change feed no longer reaches back to where it should continue. Read the present state, and
 * watch from its versionstamp. `code` is `"FEED_GAP"`.
 */
export class KvFeedGapError extends KvError {
  private constructor();
}

/**
 * A unique index has the value for another key: change that entry, or write another value. `code` is
 * `"UNIQUE"`.
 *
 * @example
 * try {
 *   await kv.set(["users", 2], { email: "ada@example.com" });
 * } catch (error) {
 *   if (!(error instanceof KvUniqueError)) throw error;
 *   console.log(error.violations[0].index, error.violations[0].other);
 * }
 */
export class KvUniqueError extends KvError {
  private constructor();
  readonly violations: KvViolation[];
}

/**
 * A call on a closed handle. Under Deno this is `Deno.errors.BadResource`; in other
 * runtimes a {@link KvError}. `name` is `"BadResource"` and `code` is `"CLOSED"` everywhere.
 */
export class BadResource extends Error {
  private constructor();
  readonly code: "CLOSED";
}

// biome-ignore lint/complexity/noUselessEmptyExport: without it, the types above that are not exported would be.
export {};
