// The public declarations of openkv, written by hand. Everything here is API; js/ implements it and
// __test__/types checks that it does.

/// <reference lib="esnext.disposable" />

/**
 * One part of a key. Parts sort by type first: bytes < strings < bigints < numbers < `false` <
 * `true`; then by value, strings in UTF-8 order.
 *
 * Any `ArrayBufferView` is taken as its bytes and read back as a `Uint8Array`. The symbol is only
 * {@link Kv.commitVersionstamp}'s, and only as the last part of a key that is set.
 */
export type KvKeyPart = Uint8Array | string | number | bigint | boolean | symbol | KvUuidV7;

/**
 * A key: its parts, from the general to the particular. Keys are ordered part by part, and a key
 * sorts before its extensions. At most 2048 bytes when encoded; a written key is not empty.
 *
 * @example
 * const key: KvKey = ["users", "alice", 42];
 */
export type KvKey = readonly KvKeyPart[];

/** One part of a key that was read: what {@link KvKeyPart} comes back as. */
export type KvEntryKeyPart = Uint8Array | string | number | bigint | boolean;

/**
 * A key that was read. It is a {@link KvKey}, and its parts are never symbols or placeholders.
 *
 * @example
 * const { key } = await kv.get<User>(["users", "alice"]);
 * console.log(`read ${key[1]}`);
 * await kv.delete(key);
 */
export type KvEntryKey = readonly KvEntryKeyPart[];

/**
 * How fresh a read must be. Both levels mean the same on a local database: every read sees all
 * commits that were acknowledged before it started.
 */
export type KvConsistencyLevel = "strong" | "eventual";

/** What every call takes. */
export interface KvCallOptions {
  /**
   * Gives the call up. When it is aborted already, nothing is done and the call rejects with its
   * `reason`. When it is aborted later, the call rejects with the `reason` at once: a read is of no
   * effect, and a write may still happen or not; read to find out. A list rejects every further
   * `next()` with the reason; the stream of a watch ends.
   *
   * @example
   * const signal = AbortSignal.timeout(500);
   * const count = await kv.count({ prefix: ["users"] }, { signal });
   */
  signal?: AbortSignal;
}

/** An entry that exists. */
export interface KvEntry<T> {
  /** A fresh array; yours to change. */
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

/** What became of a message that was enqueued. */
export interface KvEnqueued {
  /**
   * The message's id, as its consumer sees it; that of the message that was there already, if this
   * one was `deduplicated`. `null` where Deno's queue has no ids of this kind: in a file in common
   * with Deno, and behind a server of another make.
   */
  id: string | null;
  /** Whether its `deduplicationKey` was taken, and nothing was added. */
  deduplicated: boolean;
}

/** A commit of one message. */
export interface KvEnqueueResult extends KvCommitResult, KvEnqueued {}

/** What is stored after a `sum`, `min` or `max`, or the length of the array after an `append`. */
export type KvCalculated = KvU64 | bigint | number;

/** A commit of an {@link AtomicOperation}. */
export interface KvAtomicResult extends KvCommitResult {
  /**
   * With `commit({ values: true })`: for each `sum`, `min`, `max`, `append` and `prepend` of the
   * operation, in the order of their calls, the number that is stored after it, or the length of the
   * array. Of several on one key each has its own. Other changes have no place among them.
   */
  values?: KvCalculated[];
  /** If the operation has messages: what became of each, in the order of their calls. */
  messages?: KvEnqueued[];
}

/** A commit that did not happen, because a check failed. Nothing was written. */
export interface KvCommitError {
  ok: false;
}

/**
 * A {@link KvCommitError} that says why.
 *
 * @example
 * const result = await kv.atomic().check(from, to).set(["moved"], true).commit();
 * if (!result.ok && result.failed.includes(0)) console.log("from has changed");
 */
export interface KvCommitRefusal extends KvCommitError {
  /**
   * The checks that failed: all of them, as their places in the order in which the operation was
   * given them, from 0. Empty for {@link Kv.touch} and {@link Kv.persist}, which have none, and over
   * a server of another make that does not say which of several checks failed.
   */
  failed: number[];
}

/**
 * What an entry must still be for a commit to happen: the versionstamp that was read, or `null` for
 * "there is none". An entry from {@link Kv.get} is a check.
 */
export interface AtomicCheck {
  key: KvKey;
  versionstamp: string | null;
}

/**
 * One change of one key, for {@link AtomicOperation.mutate}.
 *
 * - `set` stores the value. `expireIn` and `expireAt` are those of {@link KvExpireOptions}.
 * - `delete` removes the entry; an absent one is fine.
 * - `sum`, `min`, `max` combine a `KvU64` with the stored `KvU64`, and store the operand where
 *   there is none. A sum wraps around at 2^64. `sum` also adds bigint to bigint and number to
 *   number, and a bigint of 0…2^64 − 1 to a `KvU64`, which stays one. Any other pair rejects the
 *   commit with a `TypeError`.
 */
export type KvMutation =
  & { key: KvKey }
  & (
    | ({ type: "set"; value: unknown } & KvExpireOptions)
    | { type: "delete" }
    | { type: "sum"; value: KvU64 | bigint | number }
    | { type: "min"; value: KvU64 }
    | { type: "max"; value: KvU64 }
  );

/**
 * Which keys a list covers: those that extend `prefix` (never the prefix itself), those from
 * `start` (included) to `end` (excluded), or the part of a prefix from `start` or up to `end`.
 */
export type KvListSelector =
  | { prefix: KvKey }
  | { prefix: KvKey; start: KvKey }
  | { prefix: KvKey; end: KvKey }
  | { start: KvKey; end: KvKey };

/** What a commit did to one key. */
export type KvChange<T> =
  | { type: "set"; key: KvEntryKey; value: T; versionstamp: string }
  | { type: "delete"; key: KvEntryKey; value: null; versionstamp: string };

/** A batch of a feed ({@link Kv.watch} over a selector): whole commits, in their order. */
export interface KvChanges<T = unknown> {
  /**
   * Never empty, and no key twice in one commit. Deletions of absent keys are among them, and the
   * ends of entries that expired, as soon as they are swept.
   */
  changes: KvChange<T>[];
  /** Everything up to here has been told: `since` of a feed that is to go on after this batch. */
  versionstamp: string;
}

/** Options of {@link Kv.list}. */
export interface KvListOptions<T = unknown> extends KvCallOptions {
  /** Most entries to yield, a positive integer. Default: all. */
  limit?: number;
  /** {@link KvListIterator.cursor} of an earlier list with the same selector: goes on after it. */
  cursor?: string;
  /** From the last key to the first. Default: false. */
  reverse?: boolean;
  /** Default: `"strong"`. */
  consistency?: KvConsistencyLevel;
  /**
   * Most entries per read, a positive integer; above 500 counts as 500, above 1000 is an error.
   * Each read sees one state of the database. Default: grows from 32 to 500.
   */
  batchSize?: number;
  /** Only entries whose value meets these conditions; see {@link KvFilter}. Default: all. */
  where?: KvFilter<T>;
  /** Entries without `value`, which is then neither read nor sent. Default: false. */
  keysOnly?: boolean;
  /**
   * Only entries whose key has at most so many parts behind the prefix, a positive integer. What is
   * deeper is jumped over, not read. Needs a `prefix`. Default: all.
   */
  depth?: number;
  /** Entries with `expireAt`, see {@link KvExpiry}. Default: false. */
  withExpiry?: boolean;
}

/** An entry of a list with `keysOnly: true`. */
export interface KvKeyEntry {
  /** A fresh array; yours to change. */
  key: KvEntryKey;
  /** Twenty hexadecimal digits, larger for every later commit. */
  versionstamp: string;
}

/** What `withExpiry: true` adds to an entry. */
export interface KvExpiry {
  /** When the entry ends; `null` when it stays, or is absent. */
  expireAt: Date | null;
}

/** What a filter compares with: a value, or a time ({@link KvFilterNow}). */
export type KvFilterValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Date
  | Uint8Array
  | KvFilterNow;

/** A `Date`: the time of the call plus `$offset` milliseconds. */
export type KvFilterNow = { $now: true; $offset?: number } | { $now: { $offset?: number } };

/**
 * What a value of type `V` has to be. Several operators are all to hold. Where `V` is `any` or
 * `unknown`, every operand is accepted.
 */
export interface KvFilterComparison<V = unknown> {
  /** The same value. Numbers and bigints compare exactly; other types never equal each other. */
  $eq?: FilterEqual<V>;
  /** Not `$eq`. */
  $ne?: FilterEqual<V>;
  /** Greater, of a like type: numbers and bigints, strings by UTF-8, dates, booleans, bytes. */
  $gt?: FilterOrdered<V>;
  $gte?: FilterOrdered<V>;
  $lt?: FilterOrdered<V>;
  $lte?: FilterOrdered<V>;
  /** From the first to the second, both included. */
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
  /** As `$eq`, `$contains` and so on for strings, in any case (Unicode's full case folding). */
  $eqi?: FilterText<V>;
  $nei?: FilterText<V>;
  $containsi?: FilterText<V>;
  $notContainsi?: FilterText<V>;
  $startsWithi?: FilterText<V>;
  $endsWithi?: FilterText<V>;
  /** Whether it is `null`, `undefined` or not there. */
  $null?: boolean;
  /** Whether it is as for `$null`, or a string, array, object, `Map`, `Set` or bytes without contents. */
  $empty?: boolean;
  /** Not `$empty`. */
  $notEmpty?: boolean;
  /** Whether it is there, be it `null`. */
  $exists?: boolean;
}

/** A {@link KvFilterComparison}, and comparisons combined. */
export interface KvFilterCondition<V = unknown> extends KvFilterComparison<V> {
  $and?: readonly KvFilterCondition<V>[];
  $or?: readonly KvFilterCondition<V>[];
  $not?: KvFilterCondition<V>;
}

/**
 * Conditions on values, decided in Rust on their stored bytes. A name is a path: dots step into
 * objects, Maps and arrays (by index or, where there is no such, over the elements, one of which has
 * to do); a backslash makes a dot or dollar part of the name. A value behind a path is to be equal.
 * Operators at the top are about the whole value. All conditions are to hold. At most 32 levels and
 * 1000 conditions and operands.
 *
 * `T` is the type of the values. Paths of up to three names and their operands are checked against
 * it; longer paths, and keys of a `Map` or `Record`, are free. Where `T` is `unknown` the operators
 * are checked, and a path has to begin with a visible ASCII character. `KvFilter<any>` is checked
 * when it is used.
 *
 * @example
 * const adults: KvFilter<{ age: number; address: { city: string } }> = {
 *   age: { $gte: 18 },
 *   "address.city": { $in: ["Rome", "Oslo"] },
 * };
 */
export type KvFilter<T = unknown> = 0 extends 1 & T
  ? { [path: string]: any }
  :
    & KvFilterComparison<T>
    & {
      $and?: readonly KvFilter<T>[];
      $or?: readonly KvFilter<T>[];
      $not?: KvFilter<T>;
    }
    & (IsFree<T> extends true ? { [P in FreePath]?: FilterOperand<unknown> }
      : { [P in FilterPaths<T, "", FilterDepth> as P[0]]?: FilterOperand<P[1]> });

/** What stands behind a path: a value that is to be equal, or conditions. */
type FilterOperand<V> = FilterEqual<V> | KvFilterCondition<V>;

/** Whether a type says nothing of its values: `any`, `unknown`, `object`, `{}`. */
type IsFree<V> = unknown extends V ? true
  : [V] extends [object] ? ([object] extends [V] ? true : false)
  : false;

/** The operands that a `V` can be equal to; `null` for what may be missing. */
type FilterEqual<V> = IsFree<V> extends true ? KvFilterValue : FilterEqualTo<V>;
type FilterEqualTo<V> = V extends null | undefined ? null
  : V extends string | boolean ? V
  : V extends number ? V | bigint
  : V extends bigint | KvU64 ? number | bigint
  : V extends Date ? Date | KvFilterNow
  : V extends ArrayBufferView ? Uint8Array
  : never;

/** The operands that a `V` has an order with. */
type FilterOrdered<V> = IsFree<V> extends true ? NonNullable<KvFilterValue> : FilterOrderedBy<V>;
type FilterOrderedBy<V> = V extends string ? string
  : V extends boolean ? boolean
  : V extends number | bigint | KvU64 ? number | bigint
  : V extends Date ? Date | KvFilterNow
  : V extends ArrayBufferView ? Uint8Array
  : never;

/** The operands that a `V` can contain. */
type FilterPart<V> = IsFree<V> extends true ? KvFilterValue : FilterPartOf<V>;
type FilterPartOf<V> = V extends string ? string
  : V extends ArrayBufferView ? Uint8Array
  : V extends readonly (infer Item)[] ? FilterEqual<Item>
  : V extends ReadonlyMap<unknown, unknown> ? never
  : V extends ReadonlySet<infer Item> ? FilterEqual<Item>
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

/** The paths into a `T` with the types behind them, as pairs; `Start` is in front of them. */
type FilterPaths<T, Start extends string, Depth extends readonly unknown[]> = IsFree<T> extends true
  ? [FreeFrom<Start>, any]
  : T extends ReadonlyMap<unknown, infer Item> ? [FreeFrom<Start>, Item extends FilterLeaf ? Item : any]
  : T extends FilterLeaf ? never
  : Depth extends readonly [unknown, ...infer Rest]
    ? T extends readonly (infer Item)[]
      // `${number}` would also be "0.1", which are two steps.
      ? | [`${Start}${bigint}`, Item]
        | FilterPaths<Item, `${Start}${bigint}.`, Rest>
        | (Item extends readonly unknown[] ? never : FilterPaths<Item, Start, Depth>)
    : { [K in keyof T & (string | number)]-?: FilterName<T[K], K, Start, Rest> }[keyof T & (string | number)]
  : [FreeFrom<Start>, any];

/** The paths that begin with one name. */
type FilterName<V, K extends string | number, Start extends string, Rest extends readonly unknown[]> =
  string extends K ? [FreeFrom<Start>, V extends FilterLeaf ? V : any]
    : V extends (...given: never) => unknown ? never
    : [`${Start}${Escaped<`${K}`>}`, V] | FilterPaths<V, `${Start}${Escaped<`${K}`>}.`, Rest>;

/** A name with a backslash before what would mean something else in a path. */
type Escaped<K extends string> = K extends `$${infer Rest}` ? `\\$${EscapedDots<Rest>}` : EscapedDots<K>;
type EscapedDots<K extends string> = K extends `${infer A}.${infer B}` ? `${A}\\.${EscapedDots<B>}` : K;

/** Any path that goes on after `Start`; at the beginning of a filter none that is an operator. */
type FreeFrom<Start extends string> = Start extends "" ? FreePath : `${Start}${string}`;
type FreePath = `${FreePathStart}${string}`;
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
  limit?: number;
  /** The `cursor` of the page before. */
  cursor?: string | null;
  /** From the last key to the first. Default: false. */
  reverse?: boolean;
  /** Only entries whose value meets these conditions. */
  where?: KvFilter<T>;
}

/**
 * A selector and the options of a page in one object.
 *
 * @deprecated Give {@link Kv.paginate} a selector and {@link KvPageOptions}, as `list`, `count` and
 *   `deleteMany` take them.
 */
export interface KvPaginateOptions<T = unknown> extends KvPageOptions<T> {
  prefix?: KvKey;
  start?: KvKey;
  end?: KvKey;
}

/** One page. */
export interface KvPage<T> {
  entries: KvEntry<T>[];
  /** Where the next page goes on; `null` when there is none. */
  cursor: string | null;
  /** Whether there is at least one more entry. */
  hasMore: boolean;
}

/** Options of {@link Kv.deleteMany}. */
export interface KvDeleteManyOptions<T = unknown> extends KvCallOptions {
  /** Only entries whose value meets these conditions. */
  where?: KvFilter<T>;
  /** Most entries to delete, a positive integer; those with the lowest keys, or named first. */
  limit?: number;
  /**
   * All in one commit. Rejects with `TypeError`, and deletes nothing, when there are more than
   * `limits.mutationsMax` entries to delete. Default: false.
   */
  atomic?: boolean;
}

/**
 * The entries of a list, in key order. It is its own iterator: after `break` it goes on where it
 * stopped. Calls of `next()` that overlap are answered in order, each with an entry of its own.
 */
export class KvListIterator<T, E = KvEntry<T>> implements AsyncIterableIterator<E> {
  private constructor();

  /**
   * Where a later list goes on after the entry yielded last: pass it as `cursor`. `""` when the
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
   * The next entry.
   *
   * Rejects with `TypeError` when a bound, the cursor or the consistency is invalid, with
   * {@link BadResource} when the handle was closed and no entry is buffered.
   */
  next(): Promise<IteratorResult<E, undefined>>;

  /**
   * All entries that are still to come, in memory at once: give a large list a `limit`. Rejects as
   * {@link next}.
   *
   * @example
   * const users = await kv.list<User>({ prefix: ["users"] }).toArray();
   */
  toArray(): Promise<E[]>;

  [Symbol.asyncIterator](): this;
}

/**
 * An unsigned 64-bit integer that {@link AtomicOperation.sum} and its kin can change without
 * reading it first.
 *
 * Under Deno with `--unstable-kv` this is `Deno.KvU64` itself. An instance of the `KvU64` of another
 * copy of this package is taken as one of this copy. Values that are read are instances of this class.
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
 * Stands for a UUID of version 7 that is made when a commit happens: made by {@link Kv.uuidv7}, used
 * as any part of a key that is written and anywhere inside a value. One placeholder is the same UUID
 * in everything that one commit writes, two are different ones, and what later commits of a database
 * make sorts after what earlier ones made, whatever clocks do. Committed again, it is a new UUID.
 *
 * It has no text before: building a string or JSON from one is a `TypeError`.
 */
export class KvUuidV7 {
  private constructor();

  /**
   * The UUID that it became in the commit of that result.
   *
   * @throws TypeError when the commit did not use it.
   */
  uuidIn(result: KvCommitResult): string;
  toString(): string;
  readonly [Symbol.toStringTag]: string;
}

/**
 * When an entry ends that is written. At most one of the two: both are a `TypeError`.
 *
 * @example
 * const midnight = new Date(new Date().setHours(24, 0, 0, 0));
 * await kv.set(["coupon"], "ABC", { expireAt: midnight });
 */
export interface KvExpireOptions {
  /** Milliseconds from the commit to the end, a non-negative integer. 0: it is absent at once. */
  expireIn?: number;
  /**
   * The end itself: a date, or milliseconds since the epoch. If it has passed, the entry is absent
   * at once, and so is the one that was there before. `null` says as little as leaving it out.
   */
  expireAt?: Date | number | null;
}

/** Options of {@link AtomicOperation.sum}; the bounds are of the type of what is added. */
export interface KvSumOptions<N extends number | bigint = number | bigint>
  extends KvExpireOptions {
  /** The smallest result. Default: none. */
  min?: N;
  /** The largest result. Default: none. */
  max?: N;
  /**
   * Stores the bound in place of a result beyond it, and keeps a `KvU64` within 0…2^64 − 1.
   * Default: false, the commit fails.
   */
  clamp?: boolean;
}

/** What {@link Kv.createIndex} makes. */
export interface KvIndexOptions extends KvCallOptions {
  /** The index covers the keys that extend this one. No two indexes have the same. */
  prefix: KvKey;
  /**
   * Paths into the values, at most 32: names separated by dots (`"details.maker"`), which step into
   * objects, Maps and arrays (by index or, without one, into every item). Text under them is
   * strings, numbers, bigints and arrays and Sets of these.
   */
  fields: readonly string[];
  /**
   * How text becomes terms: `"unicode61"` folds case and diacritics of all scripts, `"porter"` also
   * reduces English words to their stems, `"ascii"` folds ASCII only. Default: `"unicode61"`.
   */
  tokenize?: "unicode61" | "porter" | "ascii";
  /**
   * Lengths in characters (1 to 32, at most 4 of them) for which beginnings of terms are indexed, so
   * that queries like `ab*` of these lengths are as fast as whole terms. Default: none.
   */
  prefixLengths?: readonly number[];
  /** A name, 1 to 256 bytes. Default: made from the prefix. */
  name?: string;
}

/** A full-text index as {@link Kv.listIndexes} tells it. */
export interface KvIndexInfo {
  name: string;
  prefix: KvEntryKey;
  fields: readonly string[];
  tokenize: "unicode61" | "porter" | "ascii";
  prefixLengths: readonly number[];
  /** `"building"` while entries older than the index are still being added. */
  state: "building" | "ready";
  /** How many of those have been looked at. */
  indexed: number;
  /** Entries in the index: those with text in any of the fields. */
  documents: number;
}

/** How far building an index has come. */
export interface KvIndexProgress {
  /** Entries looked at that are older than the index. */
  indexed: number;
  /**
   * About how many there are to be looked at: the entries under the prefix, counted once beside the
   * building; `null` until they are. Never less than `indexed`, and equal to it when `done`.
   */
  total: number | null;
  /** The index is complete. */
  done: boolean;
}

/** A full-text index that was just made, or was there. */
export interface KvIndex {
  readonly name: string;
  readonly prefix: KvEntryKey;
  readonly fields: readonly string[];
  readonly tokenize: "unicode61" | "porter" | "ascii";
  readonly prefixLengths: readonly number[];
  /** As of the last look, by `progress` or `ready`. */
  readonly state: "building" | "ready";
  /**
   * Yields how far building has come whenever it has moved, and `done: true` at last. Each use is an
   * iterator of its own.
   */
  readonly progress: AsyncIterableIterator<KvIndexProgress>;
  /**
   * Resolves when the index is complete. Rejects with {@link KvError} of code `CONFLICT` when it is
   * dropped before, {@link BadResource} when the handle is closed; the next opening of the file for
   * writing goes on building.
   */
  ready(options?: KvCallOptions): Promise<void>;
}

/** Options of {@link Kv.search}. An unknown name is a `TypeError`. */
export interface KvSearchOptions<T = unknown> extends KvCallOptions {
  /** Most entries, 1 to 1000, counted after the filter. Default: 20. */
  limit?: number;
  /** Entries to leave out first, at most 1,000,000; not with `cursor`. Default: 0. */
  offset?: number;
  /** {@link KvSearchResult.cursor} of a result for the same query: goes on after it. */
  cursor?: string | null;
  /** Only entries whose values meet this filter. */
  where?: KvFilter<T>;
  /**
   * Adds {@link KvSearchEntry.highlights}: `true`, or an object with what goes in front of a match
   * (default `<b>`), behind it (`</b>`) and for text left out (`…`), each at most 256 bytes, and the
   * most terms of a snippet (1 to 64, default 32). The text between is as it was stored: escape it
   * before it becomes HTML.
   */
  highlight?: boolean | { before?: string; after?: string; ellipsis?: string; terms?: number };
}

/** An entry that was found. */
export interface KvSearchEntry<T> extends KvEntry<T> {
  /** BM25: larger is better. Comparable within one result only. */
  score: number;
  /** With `highlight`: a snippet for each field in which something matched. */
  highlights?: Record<string, string>;
}

/** A page of what was found. */
export interface KvSearchResult<T> {
  /** Best first; equal scores in the order in which they were indexed. */
  entries: KvSearchEntry<T>[];
  /** Where the next page goes on; `null` at the end. */
  cursor: string | null;
  hasMore: boolean;
  /** False while the index is being built: older entries may be missing. */
  complete: boolean;
}

/** Options of {@link Kv.enqueue}. */
export interface KvEnqueueOptions {
  /** From the commit to the first delivery, in milliseconds, at most 30 days. Default: 0. */
  delay?: number;
  /** Where the message is stored when its last delivery failed, at most ten keys. Default: none. */
  keysIfUndelivered?: readonly KvKey[];
  /**
   * Waiting times before each new delivery of a failed message, in milliseconds: at most
   * `limits.backoffIntervalsMax` of them (five unless {@link openKv} says otherwise), each at most
   * `limits.backoffIntervalMsMax` (an hour). Default: `[100, 1000, 5000, 30000, 60000]`, as far as
   * these limits allow it.
   */
  backoffSchedule?: readonly number[];
}

/** Options of {@link KvQueue.enqueue}. An unknown name is a `TypeError`. */
export interface KvQueueEnqueueOptions {
  /** From the commit to the first delivery, in milliseconds, at most 30 days. Default: 0. */
  delay?: number;
  /** When it may first be delivered: a date, or ms since the epoch. Not together with `delay`. */
  at?: Date | number;
  /**
   * Waiting times before each new delivery of a failed message, in milliseconds; how many and how
   * long as of {@link KvEnqueueOptions}. A message that fails when none is left is dead. Default:
   * `[1000, 5000, 10000]`.
   */
  backoffSchedule?: readonly number[];
  /** Where its value is stored as well when it dies, at most ten keys. Default: none. */
  keysIfUndelivered?: readonly KvKey[];
  /**
   * As long as a message with this key is in the queue, neither done nor dead, another one adds
   * nothing. Not empty, at most 1024 bytes in UTF-8. Default: none.
   */
  deduplicationKey?: string;
  /** 0 to 9: of the messages that are due, the highest are delivered first. Default: 0. */
  priority?: number;
  /** How long it is kept when it is dead, in milliseconds. Default: that of {@link Kv.queue}. */
  deadRetention?: number;
}

/** What a message is to the handler of {@link KvQueue.listen}. */
export interface KvMessageInfo<T = any> {
  /** Its number as text, which no other message of the database ever has. */
  readonly id: string;
  readonly value: T;
  /** How often it has been handed out, this time included. */
  readonly attempts: number;
  readonly enqueuedAt: Date;
}

/**
 * A message that {@link KvQueue.receive} gave. It is yours, and hidden from everybody else, until
 * its lock ends; the lock is not renewed by itself. Each method resolves to whether the message was
 * still yours: `false` when its lock ran out and it went to somebody else, or when it was settled
 * before; nothing has happened then.
 *
 * They reject with {@link BadResource} on a closed handle and with {@link KvError} when the database
 * cannot write; the message is then still yours, as long as its lock holds.
 */
export interface KvMessage<T = any> extends KvMessageInfo<T> {
  /** It is handled: it is removed. Resolves when that is durable. */
  ack(): Promise<boolean>;
  /**
   * It was not handled: it is delivered again after the next interval of its `backoffSchedule`, or
   * after `delay` ms instead. Either way it costs an interval; when none is left the message dies.
   *
   * @param options.error What is kept if this is its death: an `Error`, or anything as text.
   */
  nack(options?: { delay?: number; error?: unknown }): Promise<boolean>;
  /** Its lock ends `ms` from now, 100 to 86400000 (a day). */
  extend(ms: number): Promise<boolean>;
}

/** How many messages of a queue are in which state. */
export interface KvQueueStats {
  /** Due, and with nobody. */
  pending: number;
  /** Not due yet: delayed, or waiting for their next try. */
  delayed: number;
  /** With a consumer whose lock holds. */
  processing: number;
  /** Dead and kept. */
  dead: number;
  /** All of them. */
  total: number;
}

/** A message for which no interval of its `backoffSchedule` was left. */
export interface KvDeadMessage<T = any> {
  /** The id that it had as a message. */
  id: string;
  value: T;
  /** What its last delivery failed with; the name is `"LockExpired"` when its consumer vanished. */
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
   * A page of them, those that died first in front. `cursor` goes on behind the page, and is `null`
   * at the end.
   *
   * @param options.limit 1 to 1000. Default: 100.
   *
   * @example
   * const { messages, cursor } = await kv.queue("mail").dead.list({ limit: 20 });
   */
  list(
    options?: { limit?: number; cursor?: string | null; signal?: AbortSignal },
  ): Promise<{ messages: KvDeadMessage<T>[]; cursor: string | null }>;
  /** One of them, `null` if there is none with this id. */
  get(id: string, options?: KvCallOptions): Promise<KvDeadMessage<T> | null>;
  /**
   * Puts it back into its queue, due now, with its id, its whole `backoffSchedule` and no attempts.
   * Resolves to whether there was one.
   */
  requeue(id: string, options?: KvCallOptions): Promise<boolean>;
  /** Forgets it. Resolves to whether there was one. */
  delete(id: string, options?: KvCallOptions): Promise<boolean>;
  /**
   * Forgets those that died more than `olderThan` ms ago, all of them when it is left out. Resolves
   * to how many. Done in bounded steps: writers wait for one of them at most.
   */
  purge(options?: { olderThan?: number; signal?: AbortSignal }): Promise<number>;
}

/**
 * A named queue. Messages are delivered at least once, to one consumer at a time, whichever process
 * on the file it is in: by priority, then due time, then in the order of their enqueueing.
 */
export interface KvQueue<T = any> {
  readonly name: string;
  /** Its dead messages. */
  readonly dead: KvDeadLetters<T>;

  /**
   * Adds a message. Resolves when it is durable, with its id; also when its `deduplicationKey` was
   * taken, and nothing was added: then `deduplicated` is true, and the id is that of the message that
   * is there. Rejects as {@link Kv.set}.
   *
   * @example
   * await kv.queue("mail").enqueue({ to: "ada" }, { delay: 5000, priority: 9 });
   */
  enqueue(value: T, options?: KvQueueEnqueueOptions & KvCallOptions): Promise<KvEnqueueResult>;

  /**
   * Takes messages until `signal` aborts or the handle closes. A message is done when the handler
   * returns or its promise resolves. When it throws or rejects, or the process dies, the message is
   * delivered again as its `backoffSchedule` says, and is at last dead; what was thrown is kept with
   * it, and reported as `options.onError` says. While a handler runs its message's lock is renewed,
   * so that nobody else gets it. Listeners, in any process, share the work in turn.
   *
   * Resolves when it takes no more: after `signal` aborts, once the handlers that run have ended;
   * after {@link Kv.close} at once. Keeps the process alive until then.
   *
   * Rejects with {@link BadResource} on a closed handle, with `TypeError` for a wrong argument, with
   * {@link KvError} of code `DENIED` on a read-only one.
   *
   * @param options.concurrency Messages handled at a time, 1 to 1000. Default: 10.
   * @param options.lockDuration How long after a consumer has died its message is delivered again,
   *   in ms, 100 to 86400000 (a day). Default: 5000, less than that of {@link receive}: the lock is
   *   renewed while the handler runs, so it only has to outlast a pause of the process.
   * @param options.onError Called with what a handler threw, and its message, at each failure.
   *   Default: the first failure of a listener is a warning of the process, the others are silent.
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
    handler: (value: T, message: KvMessageInfo<T>) => unknown,
    options?: {
      concurrency?: number;
      lockDuration?: number;
      onError?: (error: unknown, message: KvMessageInfo<T>) => unknown;
      signal?: AbortSignal;
    },
  ): Promise<void>;

  /**
   * Takes one message, `null` if none is due. With `wait`, waits so many ms for one; nobody polls
   * meanwhile.
   *
   * Rejects with {@link BadResource} on a handle that is closed or closes meanwhile, with the reason
   * of `signal` when that aborts, with `TypeError` for a wrong argument, with {@link KvError} of code
   * `DENIED` on a read-only one.
   *
   * @param options.lockDuration How long the message is yours, in ms, 100 to 86400000 (a day).
   *   Default: 30000, more than that of {@link listen}: nothing renews this lock but
   *   {@link KvMessage.extend}, so it has to outlast the work.
   * @param options.wait 0 to 86400000. Default: 0.
   *
   * @example
   * const message = await kv.queue("mail").receive({ wait: 10_000 });
   * if (message !== null) {
   *   await send(message.value);
   *   await message.ack();
   * }
   */
  receive(
    options?: { lockDuration?: number; wait?: number; signal?: AbortSignal },
  ): Promise<KvMessage<T> | null>;

  /** Counts its messages, without reading them. Rejects as {@link Kv.get}. */
  stats(options?: KvCallOptions): Promise<KvQueueStats>;
}

/** Options of {@link AtomicOperation.enqueue} for a named queue. */
export interface KvNamedEnqueueOptions extends KvQueueEnqueueOptions {
  /** The queue's name, as in {@link Kv.queue}. */
  queue: string;
}

/**
 * Checks, changes and messages that happen together or not at all. Every method but `commit`
 * returns the operation, so that calls can be chained. Keys and values are encoded when they are
 * passed: what is changed later changes nothing here.
 *
 * Nothing happens before {@link AtomicOperation.commit}; the operation is not a promise, and
 * awaiting it is a `TypeError`. As in Deno, what cannot be stored and invalid options throw at the
 * call; an invalid key, and a value, message or `expireIn` over its limit, reject the commit.
 *
 * @example
 * const from = await kv.get<number>(["account", "a"]);
 * const result = await kv.atomic()
 *   .check(from)
 *   .set(["account", "a"], from.value! - 10)
 *   .commit();
 * if (!result.ok) console.log("somebody was faster: read again and retry");
 */
export class AtomicOperation {
  private constructor();

  /**
   * Adds conditions; all of them must hold for the commit to happen.
   *
   * @throws TypeError when one is null or undefined.
   */
  check(...checks: AtomicCheck[]): this;

  /**
   * Adds changes, carried out in order.
   *
   * @throws TypeError when a `type` is unknown, a `value` is missing or too much, or cannot be
   *   stored.
   */
  mutate(...mutations: KvMutation[]): this;

  /**
   * Adds `n` to the stored number. The entry keeps its end, unless the options say another one. (By
   * `mutate({ type: "sum" })` it has none afterwards, as in Deno.)
   *
   * A bigint goes with a {@link KvU64}, which stays one, and with a bigint of any size, exactly. A
   * number goes with a number. Without an entry `n` itself is stored: a bigint within 0…2^64 − 1 as
   * a `KvU64` if there are no bounds, else as it is. Without bounds a `KvU64` wraps around at
   * 2^64 when a bigint of that range is added, as in Deno; any other result that does not fit it
   * fails the commit, as does one beyond `min` or `max`, and a number that is not finite.
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
   * Puts items behind those of the stored array, or stores them when there is no entry. This happens
   * inside the commit: nothing is read before, and nothing is lost to others. The entry keeps its
   * end, unless the options say another one. The commit fails with `TypeError` when something else than an array is stored, or the result
   * is over `limits.valueBytesMax`.
   *
   * @throws TypeError when `items` is no array, or cannot be stored, and for an unknown option.
   *
   * @example
   * await kv.atomic().append(["log"], [{ at: new Date(), what: "login" }]).commit();
   */
  append(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this;

  /** Puts items in front of those of the stored array; otherwise as {@link append}. */
  prepend(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this;

  /**
   * Stores a value.
   *
   * @param options When the entry ends. Default: stays.
   * @throws TypeError when the value cannot be stored, or for an option that is not what
   *   {@link KvExpireOptions} says.
   */
  set(key: KvKey, value: unknown, options?: KvExpireOptions): this;

  /** Removes an entry; an absent one is fine. */
  delete(key: KvKey): this;

  /**
   * Moves the end of an entry, to `expireIn` milliseconds after the commit or to `expireAt`; an absent
   * entry is fine.
   * Neither its value nor its versionstamp changes: checks on it hold, and watches say nothing.
   *
   * @throws TypeError when neither is there, for one that is not what {@link KvExpireOptions} says, or
   *   for an unknown option.
   */
  touch(key: KvKey, options: KvExpireOptions): this;

  /** Removes the end of an entry, so that it stays; otherwise as {@link touch}. */
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
   * Carries everything out, or nothing: `{ ok: false }` when a check failed. May be called again;
   * then it happens again. An operation without contents commits too, and takes a versionstamp.
   *
   * Rejects with `TypeError` for an invalid key or check, for a limit, and for a `sum`, `min` or
   * `max` over something that is not a number of its kind; with {@link BadResource} when the handle
   * is closed; with {@link KvError} when the database cannot write. Nothing was written then,
   * except that after `OUTCOME_UNKNOWN` only a read can tell.
   *
   * @param options.values Whether the result has `values`, what was calculated: nobody can write
   *   between the calculation and this answer. Behind a server of another make it is refused as
   *   `UNSUPPORTED`. Default: false.
   *
   * @example
   * const result = await kv.atomic().sum(["ticket"], 1).commit({ values: true });
   * if (result.ok) console.log("your number is", result.values[0]);
   */
  commit(
    options: { values: true } & KvCallOptions,
  ): Promise<(KvAtomicResult & { values: KvCalculated[] }) | KvCommitRefusal>;
  commit(
    options?: { values?: boolean } & KvCallOptions,
  ): Promise<KvAtomicResult | KvCommitRefusal>;
}

/** What operations {@link KvMetrics} counts apart from each other. */
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

/** Operations of one kind, since the database was opened in this process. */
export interface KvOperationMetrics {
  /** Operations that were answered, with an error too. */
  count: number;
  /** Those of them that were answered with an error. A lost check is none. */
  errors: number;
  /** Times in ms; `null` as long as none was measured. One of 32 reads is. */
  latency: {
    samples: number;
    sumMs: number;
    p50Ms: number;
    p90Ms: number;
    p99Ms: number;
    maxMs: number;
  } | null;
}

/** What {@link Kv.metrics} tells of this process and, from `queues` on, of the file. */
export interface KvMetrics {
  operations: Record<KvOperationName, KvOperationMetrics>;
  /** Writes that happened. */
  commits: number;
  /** Writes that were lost to a check. */
  conflicts: number;
  /** Writes that could not be carried out. */
  rejections: number;
  transactions: {
    /** Transactions that failed as a whole. */
    failures: number;
    /** How many writes one transaction carried out (group commit); `null` before the first. */
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
  /** What became of looks at pages of the file; `hitRate` is `null` before the first. */
  cache: { hits: number; misses: number; hitRate: number | null };
  /** Messages of each queue that has any; `""` is that of {@link Kv.enqueue}. At most 1000 queues. */
  queues: Record<
    string,
    { pending: number; delayed: number; processing: number; dead: number }
  >;
  /** Search indexes by name. */
  indexes: Record<string, { documents: number; building: boolean }>;
  /** Bytes of the database; 0 for `:memory:`. */
  databaseBytes: number;
  /** Bytes of the log beside the file. */
  walBytes: number;
}

/** What {@link Kv.stats} tells. */
export interface KvStats {
  /** Entries that have not ended; only when asked for. */
  entries?: number;
  /** Bytes of the database: used and free pages, whether they are in the file or in its log yet. */
  databaseBytes: number;
  /** Bytes of the log beside the file. */
  walBytes: number;
  /** Bytes of a page. */
  pageSize: number;
  /** Pages that are free: for later writes, or to be taken out by {@link Kv.vacuum}. */
  freePages: number;
  /** Of the last commit. */
  versionstamp: string;
  /**
   * What the database does in the background and cannot do now. It is tried again by itself, at
   * most two seconds after the last try, and leaves the list when it succeeds. Empty if all is well.
   */
  failing: KvFailingPart[];
}

/** A part of {@link KvStats.failing}. */
export interface KvFailingPart {
  /**
   * - `"externalCommits"`: noticing other processes' commits; meanwhile the file is read ten times a
   *   second;
   * - `"announcements"`: the operating system's announcements of writes to the file; meanwhile it is
   *   looked at fifty times a second;
   * - `"streams"`: reading the states of watches and the changes of feeds;
   * - `"agenda"`: asking the file what is due: messages, ends of entries, indexes to be built;
   * - `"sweep"`: deleting entries that have ended;
   * - `"indexes"`: building search indexes.
   */
  part: string;
  /** When it first failed. */
  since: Date;
  /** Why it failed last. */
  error: Error;
}

/** An entry as a transaction reads it. */
export interface KvTransactionEntry<T = unknown> {
  key: KvEntryKey;
  value: T;
  /** `null` for what the transaction itself has written: it gets its versionstamp by the commit. */
  versionstamp: string | null;
}

/** As {@link KvTransactionEntry}, or nothing: then value and versionstamp are `null`. */
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
  /** As {@link KvListIterator.cursor}; good in this transaction, in others and in {@link Kv.list}. */
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
   * How often the function is run again after a conflict; `Infinity`: until it succeeds or `signal`
   * is aborted. Default: 10.
   */
  maxRetries?: number;
  /**
   * How long it waits before it is run again, in milliseconds, 0 to 3600000 (an hour): after the
   * first conflict a random time below `initial`, after each further one below twice as much, never
   * more than `max`. Default: `{ initial: 2, max: 250 }`.
   */
  retryDelay?: { initial?: number; max?: number };
  /** Ends the transaction between two steps; it rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** What a transaction has come to. */
export interface KvTransactionResult<T> extends KvCommitResult {
  /** If it enqueued messages: what became of each, in the order of the calls. */
  messages?: KvEnqueued[];
  /** What the function returned in the attempt that was committed. */
  value: T;
}

/**
 * What the function of {@link Kv.transaction} works with. Reads are remembered, so that a key reads
 * the same each time, and show what the transaction has written; writes happen at the end, in one
 * commit. Methods throw a `TypeError` once the function has returned.
 */
export interface KvTransaction {
  /** As {@link Kv.get}. An entry that is read twice is one object: change a copy. */
  get<T = unknown>(
    key: KvKey,
    options?: { consistency?: KvConsistencyLevel; signal?: AbortSignal },
  ): Promise<KvTransactionEntryMaybe<T>>;

  /** As {@link Kv.getMany}: those that are not known yet are read in one state of the database. */
  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: KvConsistencyLevel; signal?: AbortSignal },
  ): Promise<{ [K in keyof T]: KvTransactionEntryMaybe<T[K]> }>;

  /**
   * As {@link Kv.list}. The commit fails on any change in the range that was listed, up to where
   * the list was left: also when a key has appeared there, and with `where` or `depth` also on a
   * change of what they left out, which is read and counts towards `checkedRowsMax` as well.
   * `expireAt` of what the transaction has written is as if it were committed now.
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
    options: KvListOptions<T> & { withExpiry: true },
  ): KvTransactionListIterator<KvTransactionEntry<T> & KvExpiry>;
  list<T = unknown>(
    selector: KvListSelector,
    options?: KvListOptions<T>,
  ): KvTransactionListIterator<KvTransactionEntry<T>>;

  /** How many entries there are, or how many of them meet `where`; all are read, as by {@link list}. */
  count<T = unknown>(selector: KvListSelector, options?: { where?: KvFilter<T> } & KvCallOptions): Promise<number>;

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
  /** As {@link AtomicOperation.sum}; not a read, so that concurrent sums do not conflict. */
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
}

/**
 * What {@link Kv} and {@link KvTransaction} read with, for functions that take either. As in a
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
 * A database. Made by {@link openKv}; several handles may be open on one file, in one process or
 * many. A handle does not keep the process alive; a pending call, `listenQueue` or watch read does.
 *
 * Calls of one handle keep program order: a read sees every write that was called before it, awaited
 * or not, and writes that touch the same key are carried out in the order of their calls.
 */
export class Kv implements Disposable, AsyncDisposable {
  private constructor();

  /**
   * Reads one entry. One that is absent or expired has value and versionstamp `null`, and is the
   * same as for a key that was never written.
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
    options: { consistency?: KvConsistencyLevel; withExpiry: true; signal?: AbortSignal },
  ): Promise<KvEntryMaybe<T> & KvExpiry>;
  get<T = unknown>(
    key: KvKey,
    options?: { consistency?: KvConsistencyLevel; withExpiry?: boolean; signal?: AbortSignal },
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
    options: { consistency?: KvConsistencyLevel; withExpiry: true; signal?: AbortSignal },
  ): Promise<{ [K in keyof T]: KvEntryMaybe<T[K]> & KvExpiry }>;
  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: KvConsistencyLevel; withExpiry?: boolean; signal?: AbortSignal },
  ): Promise<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;

  /**
   * As {@link get}, at once: blocks the thread while it reads. For files and `:memory:`.
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
    options?: { consistency?: KvConsistencyLevel },
  ): KvEntryMaybe<T>;

  /**
   * As {@link getMany}, at once; otherwise as {@link getSync}.
   *
   * @example
   * const [theme, font] = kv.getManySync<[string, string]>([["theme"], ["font"]]);
   */
  getManySync<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: KvConsistencyLevel },
  ): { [K in keyof T]: KvEntryMaybe<T[K]> };

  /**
   * Stores a value: anything that `structuredClone` takes, and `Blob` and `File` by content; at
   * most 64 KiB when encoded. It is encoded at the call. Resolves when it is durable, as `openKv`'s
   * `durability` says.
   *
   * When the key ends with {@link commitVersionstamp}'s symbol, the commit's versionstamp takes its
   * place.
   *
   * Rejects with `TypeError` for an invalid key or option, a value that cannot be stored, or a
   * limit; {@link BadResource} on a closed handle; {@link KvError} when the database cannot write.
   *
   * @param options When the entry ends: `expireIn` milliseconds from now, or `expireAt` a moment.
   *   Default: stays.
   *
   * @example
   * await kv.set(["session", id], { user }, { expireIn: 3_600_000 });
   */
  set(key: KvKey, value: unknown, options?: KvExpireOptions & KvCallOptions): Promise<KvCommitResult>;

  /** Removes an entry; an absent one is fine. Rejects as {@link set}. */
  delete(key: KvKey, options?: KvCallOptions): Promise<void>;

  /**
   * A placeholder for a UUID of version 7 that the commit makes: {@link KvUuidV7}.
   *
   * @example
   * const id = kv.uuidv7();
   * const result = await kv.set(["users", id], { id, name: "Ada" });
   * console.log(id.uuidIn(result));
   */
  uuidv7(): KvUuidV7;

  /**
   * When an entry ends; `null` when it does not end, or there is none. Its value is not read.
   * Rejects as {@link get}.
   *
   * @example
   * await kv.set(["session"], "s", { expireIn: 60_000 });
   * const end = await kv.ttl(["session"]);
   * if (end !== null) console.log("ends in", end.expireAt.getTime() - Date.now(), "ms");
   */
  ttl(key: KvKey, options?: KvCallOptions): Promise<{ expireAt: Date } | null>;

  /**
   * Moves the end of an entry, to `expireIn` milliseconds from now or to `expireAt`; `ok: false` when
   * there is no entry. Its value is not written again, and its versionstamp stays: checks on it hold, and
   * watches say nothing. The versionstamp in the result is that of the commit.
   *
   * Rejects with `TypeError` for an invalid key, when neither is there, for one that is not what
   * {@link KvExpireOptions} says, or an unknown option; else as {@link set}.
   *
   * @example
   * const { ok } = await kv.touch(["session"], { expireIn: 60_000 });
   * if (!ok) console.log("the session has ended");
   */
  touch(key: KvKey, options: KvExpireOptions & KvCallOptions): Promise<KvCommitResult | KvCommitRefusal>;

  /**
   * Removes the end of an entry, so that it stays until it is deleted; otherwise as {@link touch}.
   *
   * @example
   * await kv.persist(["session"]);
   */
  persist(key: KvKey, options?: KvCallOptions): Promise<KvCommitResult | KvCommitRefusal>;

  /**
   * Runs a function and commits what it has written, all or nothing, under the condition that
   * everything it has read is still as it was: entries, absent entries, and whole ranges that it
   * has listed. If something has changed, the function is run again from the start, after a short
   * random pause that grows with each attempt; so it may run several times, and should change
   * nothing but through `tx`. What it throws is thrown, and nothing is written.
   *
   * Without writes it is a commit of checks alone, and the values read belong to one state of the
   * database.
   *
   * Rejects with {@link KvConflictError} when every attempt met a change; with `TypeError` for an
   * argument or option of the wrong kind, and for more reads than `checksMax` or more listed
   * entries than `checkedRowsMax`; with the reason of an aborted `signal`; else as
   * {@link AtomicOperation.commit}.
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
   * Lists entries in key order.
   *
   * With `where`, `keysOnly`, `depth` or `withExpiry` entries are chosen in Rust, and read in steps
   * of up to 8192 looked at, between which other reads have their turn.
   *
   * @throws TypeError when the selector has no usable combination of bounds or an unknown property, or
   *   `where`, `keysOnly`, `depth` or `withExpiry` is of the wrong type. What is wrong inside `where` rejects the first
   *   `next()`, and is named by its path.
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
    options: KvListOptions<T> & { withExpiry: true },
  ): KvListIterator<T, KvEntry<T> & KvExpiry>;
  list<T = unknown>(selector: KvListSelector, options?: KvListOptions<T>): KvListIterator<T>;

  /**
   * How many entries there are, or how many of them meet `where`. Counted in Rust, in steps of up to
   * 8192 entries between which other reads have their turn: what is committed meanwhile may be
   * counted or not.
   *
   * Rejects with `TypeError` for an invalid selector, `where` or unknown option; with {@link KvError}
   * of code `UNAVAILABLE` after 5 minutes (one minute at a server); else as {@link get}.
   *
   * @example
   * const adults = await kv.count({ prefix: ["users"] }, { where: { age: { $gte: 18 } } });
   */
  count<T = unknown>(selector: KvListSelector, options?: { where?: KvFilter<T> } & KvCallOptions): Promise<number>;

  /**
   * One page of a list. Pages are told apart by keys, so keys that come and go meanwhile shift
   * nothing: no entry that stays is skipped or comes twice.
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
   * Deletes the entries of keys, or those of a selector. Answers how many there were, and the
   * versionstamp of the last commit, `null` when nothing was deleted. A large deletion is many
   * commits of up to 2048 entries, between which others write: each of them is all or nothing, the
   * whole is not, unless `atomic: true`.
   *
   * Rejects with `TypeError` for an invalid key, selector or `where`, for an unknown option or
   * property, and for a bound, `where` or `limit` that is there and `undefined`, since more would be
   * deleted without it; else as {@link set}, and then says how many entries have been deleted before.
   *
   * @example
   * const { count } = await kv.deleteMany({ prefix: ["sessions"] }, {
   *   where: { seen: { $lt: { $now: true, $offset: -86_400_000 } } },
   * });
   */
  deleteMany<T = unknown>(
    which: readonly KvKey[] | KvListSelector,
    options?: KvDeleteManyOptions<T>,
  ): Promise<{ count: number; versionstamp: string | null }>;

  /** Starts a group of checks, changes and messages that happen together or not at all. */
  atomic(): AtomicOperation;

  /**
   * A message for {@link listenQueue}. Resolves when it is durable. Delivered at least once, to one
   * listener, in this process or another one on the same file. Rejects as {@link set}.
   *
   * @example
   * await kv.enqueue({ send: "mail", to: "alice" }, { delay: 5000 });
   */
  enqueue(value: unknown, options?: KvEnqueueOptions & KvCallOptions): Promise<KvEnqueueResult>;

  /**
   * Takes messages until the handle closes, up to a hundred at a time. A message is done when the
   * handler returns or its promise resolves. When it throws or rejects, the message is delivered
   * again as its `backoffSchedule` says, and at last stored under its `keysIfUndelivered`. While a
   * handler runs, nobody else gets its message.
   *
   * Resolves after {@link close}, and when `signal` aborts, once the handlers that run have ended.
   * Keeps the process alive until then.
   *
   * Rejects with `TypeError` when `handler` is no function, with `Error` "Queue already closed" on a
   * closed handle, on an aborted one with the signal's reason.
   */
  listenQueue(
    handler: (value: any) => void | Promise<void>,
    options?: KvCallOptions,
  ): Promise<void>;

  /**
   * The queue of that name. It needs no making: it is there as soon as a message is. Deno's queue,
   * that of {@link enqueue} and {@link listenQueue}, is none of them, nor is it `"default"`.
   *
   * @param name Not empty, at most 256 bytes in UTF-8. Default: `"default"`.
   * @param options.deadRetention How long dead messages are kept that are enqueued by this object,
   *   in milliseconds, 0 to a hundred years. Default: until somebody removes them.
   * @throws TypeError for a wrong argument, {@link BadResource} on a closed handle.
   *
   * @example
   * const mail = kv.queue<{ to: string }>("mail", { deadRetention: 7 * 86_400_000 });
   */
  queue<T = any>(name?: string, options?: { deadRetention?: number }): KvQueue<T>;

  /**
   * Follows up to ten keys: the stream yields the state of all of them first, then again whenever
   * one has changed, whoever changed it. Changes that come faster than they are read are merged:
   * the newest state is always yielded, states between may be left out. Ends when the handle
   * closes and when `signal` aborts.
   *
   * @param options.raw Yields also when nothing visible changed (a deletion of an absent key).
   * @throws TypeError for an invalid or an eleventh key, and for `since`, which is for a selector;
   *   {@link BadResource} on a closed handle.
   *
   * @example
   * for await (const [entry] of kv.watch<[Config]>([["config"]])) apply(entry.value);
   */
  watch<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { raw?: boolean; signal?: AbortSignal },
  ): ReadableStream<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;

  /**
   * Follows every committed change of the keys that a selector covers, whoever made it: the stream
   * yields batches of whole commits, in their order. All writes that are called after `watch` are
   * in it, and with `since` all after that versionstamp; the entries that are there already are
   * not. Waits without cost while nothing changes; ends when the handle closes and
   * when `signal` aborts.
   *
   * A batch is read from the file when it is asked for, so a slow reader costs no memory. One that
   * falls behind by more than the file's log holds (100,000 changes, 64 MiB, seven days) gets the
   * last change of each key only; one that falls behind by 100,000 deletions more than that is too
   * late. The first feed makes the file log its changes from then on.
   *
   * @param options.since Goes on after this versionstamp, of an earlier batch, entry or commit.
   * @throws TypeError when the selector has no usable combination of bounds, `since` is no
   *   versionstamp, or an option is unknown; {@link BadResource} on a closed handle.
   *
   * Reading rejects with {@link KvFeedGapError} when the changes after `since` are no longer all
   * known (or `since` is not of this database): read the present state, and follow from there. With
   * {@link KvError} `DENIED` on a read-only handle of a file that does not log changes yet.
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
    options?: { since?: string; signal?: AbortSignal },
  ): ReadableStream<KvChanges<T>>;

  /**
   * A symbol that stands for the versionstamp of the commit, as the last part of a key that is set.
   *
   * @example
   * await kv.set(["log", kv.commitVersionstamp()], "entries in commit order");
   */
  commitVersionstamp(): symbol;

  /**
   * Makes a full-text index over the entries under a prefix. From the moment the promise resolves
   * every commit keeps it exact: what a commit writes is found by every search that starts after it.
   * Entries that were there before are indexed in the background, between reads and writes, also
   * after a crash; see {@link KvIndex.progress}. An index that exists with the same description is
   * answered as it is, so this may be called at every start.
   *
   * Rejects with `TypeError` for an invalid option, and when another index has the prefix or the
   * name; {@link BadResource} on a closed handle; {@link KvError} when the database cannot write.
   *
   * @example
   * const index = await kv.createIndex({ prefix: ["products"], fields: ["name", "details.maker"] });
   * for await (const { indexed, total } of index.progress) console.log(indexed, "of", total);
   */
  createIndex(options: KvIndexOptions): Promise<KvIndex>;

  /**
   * All full-text indexes, in the order of their names. Counts their documents, which takes time in
   * proportion to their number. Rejects as {@link get}.
   *
   * @example
   * for (const { name, state, documents } of await kv.listIndexes()) console.log(name, state);
   */
  listIndexes(options?: KvCallOptions): Promise<KvIndexInfo[]>;

  /**
   * Drops the index of exactly this prefix, or (a string) of this name; false when there is none.
   * The entries stay. Rejects with `TypeError` for anything else; otherwise as {@link createIndex}.
   *
   * @example
   * await kv.dropIndex(["products"]);
   */
  dropIndex(prefix: KvKey | string, options?: KvCallOptions): Promise<boolean>;

  /**
   * Searches the entries under a prefix that has an index, or extends one that has. Index and
   * entries are read in one state of the database.
   *
   * The query is FTS5's language: `red bike` (both), `"red bike"` (side by side), `bik*`, `a OR b`,
   * `a NOT b`, `a AND (b OR c)`, `NEAR(a b, 5)`, `^a` (at the start of a field), `name:red`,
   * `details.maker:volvo`, `{name tags}:red`. Words with other characters than letters, digits and
   * `_` are put in double quotes.
   *
   * Rejects with `TypeError` for a malformed query, naming the position and what was expected
   * there, for an unknown field or option, and when no index covers the prefix;
   * {@link BadResource} on a closed handle; {@link KvError} when the file cannot be read, and with
   * code `UNAVAILABLE` when it takes longer than 5 minutes (one minute at a server).
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
   * How large the database is. All but `entries` is at hand and costs nothing to speak of; with
   * `entries: true` every entry is visited, on a thread of its own. Zeros for `:memory:`, which has
   * no pages.
   *
   * Rejects with `TypeError` for an unknown option or one of the wrong type; else as {@link get}.
   *
   * @example
   * const { databaseBytes, freePages, pageSize } = await kv.stats();
   * if (freePages * pageSize > databaseBytes / 2) await kv.vacuum();
   */
  stats(options?: { entries?: boolean; signal?: AbortSignal }): Promise<KvStats>;

  /**
   * What this process has done with the database since it opened it, over all handles on it, beside
   * the depths of queues and the sizes of indexes and files. With `format: "prometheus"` as text in
   * Prometheus' exposition format 0.0.4, every name beginning with `openkv_`.
   *
   * Counting takes no time that could be measured. Asking counts the waiting messages and the
   * indexed documents, on a thread of its own: every few seconds is often enough.
   *
   * Rejects with `TypeError` for an unknown option or format; {@link BadResource} on a closed
   * handle; {@link KvError} `UNSUPPORTED` for a database behind a URL whose server is not openkv's.
   *
   * @example
   * const { operations, conflicts } = await kv.metrics();
   * console.log(operations.get.count, operations.set.latency?.p99Ms, conflicts);
   */
  metrics(options?: { format?: "object"; signal?: AbortSignal }): Promise<KvMetrics>;
  metrics(options: { format: "prometheus"; signal?: AbortSignal }): Promise<string>;

  /**
   * Writes the file anew without the pages that are free in it. Writes of all processes wait
   * meanwhile, reads do not; it needs room for a copy of the database on the disk. Nothing happens
   * for `:memory:`.
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
   * Moves what is only in the log (`-wal`) into the file, as far as readers let it; SQLite does so
   * by itself about every 4 MiB. Answers how many pages (4096 bytes) the log held, and how many of
   * them are in the file now. `:memory:` has no log: both are 0.
   *
   * Rejects with {@link BadResource} on a closed handle, {@link KvError} when the file cannot be
   * written.
   *
   * @example
   * const { logPages, movedPages } = await kv.checkpoint();
   */
  checkpoint(options?: KvCallOptions): Promise<{ logPages: number; movedPages: number }>;

  /**
   * Copies the database, as it is at one point in time, into a new file, while it is in use. The copy
   * is verified before it gets its name: opened again, examined, and its contents compared.
   *
   * @param path A file that does not exist yet.
   *
   * Rejects with `TypeError` for a path that exists or an invalid option, with `signal`'s reason when
   * it is aborted (nothing is left behind then), with {@link KvError} of code `UNSUPPORTED` for
   * `:memory:` and for a database behind a URL, `CORRUPT` when the copy is not what it should be,
   * `UNAVAILABLE` and `DENIED` when it cannot be written, {@link BadResource} on a closed handle.
   *
   * @example
   * const { entries, sha256 } = await kv.backup("backups/monday.sqlite3");
   */
  backup(path: string, options?: KvBackupOptions): Promise<KvBackup>;

  /**
   * Examines the file: SQLite's own check of its pages, then of every key, value and time. Takes as
   * long as the file is large, and stops nobody. At most 100 findings.
   *
   * @example
   * const { ok, findings } = await kv.check();
   */
  check(options?: KvCallOptions): Promise<{ ok: boolean; findings: string[] }>;

  /**
   * Closes the handle. Writes that were called before are completed, and their promises resolve;
   * reads that are under way may be rejected with {@link BadResource}, as later calls are. Watches
   * end and listeners resolve; handlers that run may finish. A value whose `Blob` is still being read,
   * or that waits for a `deleteMany`, is rejected with {@link BadResource}.
   *
   * Returns at once. The promise resolves when the file is released, if this was its last handle in
   * the process, and never rejects; it need not be awaited. Opening the file again in this process
   * waits for that, and the end of the process does for at most 10 seconds.
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
  /** Closes the handle, if it is open, and waits for what {@link Kv.close} waits for. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Options of {@link Kv.backup}. An unknown name is a `TypeError`. */
export interface KvBackupOptions {
  /**
   * Told now and then how many pages (4096 bytes) are copied. What it throws ends the backup, which
   * rejects with it; a copy that was complete by then stays.
   */
  onProgress?: (progress: { pagesDone: number; pages: number }) => void;
  /** Ends the backup; nothing is left behind. */
  signal?: AbortSignal;
}

/** Options of {@link restore}. An unknown name is a `TypeError`. */
export interface KvRestoreOptions extends KvBackupOptions {
  /** Replaces what is there: the file, with its log. Default: false, which refuses. */
  force?: boolean;
}

/**
 * Puts a backup in the place of a database. Verifies the backup, copies it beside `path`, verifies the
 * copy, and gives it the name at once: whatever happens meanwhile, `path` is what it was before, or
 * the whole backup. The log of a file that is replaced is removed with it.
 *
 * @param backup A file that {@link Kv.backup} has made, or a copy of a closed database.
 * @param path Where to; nobody may have it open.
 *
 * Rejects with `TypeError` when there is something at `path` and `force` is not `true`; with
 * {@link KvError} `UNAVAILABLE` when `path` is open, here or in another process, or cannot be
 * written, `CORRUPT` or `UNSUPPORTED` when `backup` is none; with the signal's reason when aborted.
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
  /** Entries in it, ended ones included. */
  entries: number;
  /** Its last commit. */
  versionstamp: string;
  /** SHA-256 of all its rows, in hexadecimal: the same for two files with the same contents. */
  sha256: string;
}

/** Every bound of a handle. The defaults are Deno KV's. Sizes are of encoded bytes. */
export interface KvLimits {
  /** Key of a check, a change or an undelivered message. Default: 2048. */
  keyBytesMax: number;
  /** Bound of a read; one more than a key. Default: 2049. */
  rangeKeyBytesMax: number;
  /** Value. Default: 65536. */
  valueBytesMax: number;
  /** Queue message. Default: 65536. */
  messageBytesMax: number;
  /** Keys of one `getMany`. Default: 10. */
  rangesMax: number;
  /** `batchSize` of a list. Default: 1000. */
  rowsMax: number;
  /** Checks of one commit. Default: 100. */
  checksMax: number;
  /** Entries met by the lists of one transaction. Default: 1000. */
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
  /** Delay of a message, in milliseconds. Default: 30 days. */
  delayMsMax: number;
  /** Intervals in a `backoffSchedule`. Default: 5. */
  backoffIntervalsMax: number;
  /** One interval of a `backoffSchedule`, in milliseconds. Default: an hour. */
  backoffIntervalMsMax: number;
}

/** Options of {@link openKv}. An unknown name is a `TypeError`. */
export interface OpenKvOptions {
  /**
   * What an acknowledged write survives. `"full"`: power loss. `"normal"`: a crash of the process;
   * a power loss may take the last commits, never the file. Default: `"full"`.
   */
  durability?: "full" | "normal";
  /**
   * Opens an existing file and refuses every write with code `DENIED`. Readers share memory in files
   * beside it (`-wal`, `-shm`), which whoever opens it first makes: where this process may not write
   * the folder either, it opens while somebody else has the file open, else it is `DENIED`. Default:
   * false.
   */
  readonly?: boolean;
  /**
   * How long to wait for another process that holds the file, in milliseconds; then a call fails
   * with code `UNAVAILABLE`. Default: 5000. What this process wrote before is waited for as well.
   */
  busyTimeout?: number;
  /**
   * For a file only: how its values are written. `"cbor"`, the default of a new file, has a place
   * for every value; `"v8"` is the format of Deno KV, so that Deno can open the file too, and has
   * none for `Blob` and `File` (docs/deno-files.md). A file keeps what it was made with, and one that
   * Deno made is `"v8"`: left out, it is whatever the file has; anything else is a `TypeError`.
   */
  encoding?: "cbor" | "v8";
  /**
   * Bounds: `"deno"`, the default, those of Deno KV; `"wide"`, those of docs/limits.md for databases
   * that stay with openkv; or single ones by name, the others being Deno's. `valueBytesMax` and
   * `messageBytesMax` work up to 64 MiB, and raise `commitBytesMax` with them unless it is given.
   */
  limits?: Partial<KvLimits> | "deno" | "wide";
  /**
   * For a URL only: what shows a server who asks. Visible ASCII characters. Default: what
   * `OPENKV_ACCESS_TOKEN`, else `DENO_KV_ACCESS_TOKEN` in the environment holds; a `TypeError` when
   * there is none.
   */
  accessToken?: string;
  /**
   * For a URL only: how long opening, and every later call, may take with all its retries, in
   * milliseconds; then it fails with code `UNAVAILABLE`, or `OUTCOME_UNKNOWN` for a write that may
   * have happened. A watch goes on for as long as it is read. Default: 10000.
   */
  timeout?: number;
  /**
   * For a URL only: gives up what is under way, and closes the handle. Opening, reads, writes that
   * were not sent yet and all later calls reject with the signal's reason; a write that may have been
   * carried out with {@link KvOutcomeUnknownError}; streams of watches error with the reason.
   */
  signal?: AbortSignal;
}

/**
 * Opens a database.
 *
 * @param path
 * - a file path, relative to the working directory; the file and its directories are created
 * - a `file:` URL, as a string or object
 * - an `http:` or `https:` URL: a database elsewhere, which a KV Connect server offers (docs/remote.md)
 * - `":memory:"`: a private database that ends with its handle
 * - left out: what `OPENKV_URL` in the environment names, else `.openkv/kv.sqlite3` beside the
 *   nearest `package.json` or `deno.json` above the working directory
 *
 * Rejects with `TypeError` for an invalid path or option; with {@link KvError} of code `DENIED`,
 * `CORRUPT` or `UNAVAILABLE` when the file or server cannot be opened, `UNSUPPORTED` for a URL of a
 * kind that this version does not know, and a server that speaks another version of KV Connect.
 *
 * @example
 * import { openKv } from "openkv";
 * const kv = await openKv("data/app.sqlite3");
 * await kv.set(["hello"], "world");
 */
export function openKv(path?: string | URL | null, options?: OpenKvOptions): Promise<Kv>;

/** Bounds of one database of a server. What is left out is not bounded, but for watches (10,000). */
export interface ServerQuotas {
  /** Size of the database's files, in bytes, from which on writes that add are refused. */
  bytes?: number;
  /** Requests in a second; as many may come at once. */
  operationsPerSecond?: number;
  /** Messages in the queue from which on no more are taken. */
  queueDepth?: number;
  /** Watches at one time. */
  watches?: number;
}

/** Options of {@link serve}. An unknown name is a `TypeError`. */
export interface ServeOptions {
  /** A file, which is one database; or a folder of many, which exists or ends with a separator. */
  path: string;
  /** Address and port; port 0 is any that is free. Default: `"127.0.0.1:4512"`. */
  listen?: string;
  /** Of a file, required: the token that may read and write. At least 12 visible ASCII characters. */
  accessToken?: string;
  /** Of a file: a token that may only read. */
  readToken?: string;
  /** Of a folder, required: the token of the admin API, which makes databases and their tokens. */
  adminToken?: string;
  /** Paths of a certificate (with its chain) and of its key, in PEM. Without: clear text. */
  tls?: { cert: string; key: string };
  /** Of a file: nobody may write. Default: false. */
  readonly?: boolean;
  /** Of a file: its bounds. Databases of a folder get theirs by the admin API. */
  quotas?: ServerQuotas;
  /** How long an issued token of the data path is good, in milliseconds. Default: 15 minutes. */
  dataTokenMs?: number;
  /**
   * Connections at one time. A new one takes the place of the oldest one that has never shown a valid
   * token; if all have shown one, it waits. Default: 4096.
   */
  connectionsMax?: number;
  /** What is written to standard error. Default: `"none"`. */
  log?: "none" | "text" | "json";
}

/** A running server. It keeps the process alive until it is closed. */
export interface KvServer {
  /** What clients on this machine open. */
  readonly url: string;
  /** The port that it listens on. */
  readonly port: number;
  /**
   * Takes no more connections, answers what is under way (for at most 10 seconds), ends watches and
   * closes the databases. A second call waits for the same end.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Serves databases over KV Connect, Deno KV's network protocol, to Deno, to the npm and Python
 * clients, and to `openKv(url)`. See docs/server.md.
 *
 * Rejects with `TypeError` for options that make no sense, naming the option; with {@link KvError}
 * of code `UNAVAILABLE` or `DENIED` for an address, file or folder that cannot be used.
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
 * Bytes that the limits count: `sizeOf(value)` those of a value (`valueBytesMax`), `sizeOf.key(key)`
 * those of a key (`keyBytesMax`).
 *
 * @throws TypeError for what cannot be stored.
 *
 * @example
 * if (sizeOf(profile) > 65_536) throw new Error("too large to be stored");
 */
export const sizeOf: {
  (value: unknown): number;
  key(key: KvKey): number;
};

/**
 * What a caller can do about a {@link KvError}. Codes are stable, messages are not.
 *
 * - `CONFLICT`: somebody else changed what was read. Read again and retry.
 * - `UNAVAILABLE`: not now: busy, disk full, too many open files. Nothing was done; retry later.
 * - `OUTCOME_UNKNOWN`: the write may or may not have happened ({@link KvOutcomeUnknownError}). Read
 *   to find out.
 * - `CLOSED`: the handle is closed ({@link BadResource}).
 * - `DENIED`: this process may not read or write the file.
 * - `CORRUPT`: the file is damaged, or not a database of this kind.
 * - `INTERNAL`: a bug of openkv; report it.
 * - `UNSUPPORTED`: understood, but not offered by this version.
 * - `FEED_GAP`: the change feed no longer reaches back that far ({@link KvFeedGapError}).
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
  | "FEED_GAP";

/** A failure of the database, rather than of a call's arguments (those are `TypeError`). */
export class KvError extends Error {
  protected constructor();
  readonly code: KvErrorCode;
}

/**
 * A transaction lost to others in every one of its tries: try later. `code` is `"CONFLICT"`.
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
  /** The keys that the last try had read by themselves and others have changed meanwhile. */
  readonly keys: KvEntryKey[];
  /** The selectors of the lists of the last try in whose range others have changed something. */
  readonly ranges: KvListSelector[];
}

/**
 * A write may or may not have happened: its answer was lost on the way, and sending it again could
 * have done it twice. Read to find out. `code` is `"OUTCOME_UNKNOWN"`.
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
 * The change feed no longer reaches back to where it was to go on. Read the present state, and
 * follow from its versionstamp. `code` is `"FEED_GAP"`.
 */
export class KvFeedGapError extends KvError {
  private constructor();
}

/**
 * A call on a closed handle. Under Deno this is `Deno.errors.BadResource`; elsewhere a
 * {@link KvError}. `name` is `"BadResource"` and `code` is `"CLOSED"` everywhere.
 */
export class BadResource extends Error {
  private constructor();
  readonly code: "CLOSED";
}

// Without this, the types above that are not exported would be.
export {};
