// Duty: an abstract-level database. Its keys are bytes behind the base, so that openkv orders them as
// abstract-level does; abstract-level itself converts encodings and prefixes sublevels.

import {
  AbstractIterator,
  AbstractKeyIterator,
  AbstractLevel,
  AbstractSnapshot,
  AbstractValueIterator,
  type AbstractDatabaseOptions,
} from "abstract-level";
import process from "node:process";
import type { Kv, KvKey, KvListIterator, KvListSelector } from "openkv";
import { Database, type DatabaseOptions } from "./database.js";

const NAME = "abstract-level";

/** Options of {@link OpenKvLevel}: of the database, and the default encodings. */
export interface OpenKvLevelOptions<K, V> extends DatabaseOptions, AbstractDatabaseOptions<K, V> {}

/** The bounds of a range in encoded form, as abstract-level hands them to its implementations. */
interface Range {
  gt?: Uint8Array;
  gte?: Uint8Array;
  lt?: Uint8Array;
  lte?: Uint8Array;
  reverse?: boolean;
  limit?: number;
  snapshot?: LevelSnapshot;
}

/** An operation in encoded form, likewise. */
type Operation =
  | { type: "put"; key: Uint8Array; value: Uint8Array }
  | { type: "del"; key: Uint8Array };

/**
 * A database of abstract-level on openkv, with sublevels, encodings, batches and iterators. A batch is one
 * commit: of up to 10,000 operations and 64 MiB, or the `limits` of the handle.
 *
 * Explicit snapshots read the history of the database: open it with `open: { history: "1h" }`, or give a
 * handle with a history, in a file or in memory. A snapshot can be read for as long as the history
 * reaches back. Iterators without one read in steps, of which each sees one state. `getSync` is for files
 * and memory.
 *
 * @example
 * const db = new OpenKvLevel<string, User>({ path: "data.sqlite3", valueEncoding: "json" });
 * await db.put("ada", { name: "Ada" });
 * for await (const [key, value] of db.iterator({ gte: "a" })) console.log(key, value);
 */
export class OpenKvLevel<K = string, V = string> extends AbstractLevel<Uint8Array, K, V> {
  readonly #database: Database;
  readonly #isGiven: boolean;
  #kv: Kv | undefined;

  constructor(options: OpenKvLevelOptions<K, V> = {}) {
    const { path, open, kv, base, ...forward } = options;
    // As openKv has it.
    const where = kv === undefined ? String(path ?? process.env["OPENKV_URL"] ?? "") : undefined;
    const manifest = {
      ...(where === undefined ? abilitiesOf(kv as Kv | Promise<Kv>) : abilitiesAt(where, open)),
      encodings: { view: true },
      seek: true,
      has: true,
      implicitSnapshots: false,
      permanence: where !== ":memory:",
      createIfMissing: false,
      errorIfExists: false,
      signals: { iterators: false },
    };
    super(manifest, forward);
    this.#database = new Database({ path, open, kv, base }, NAME);
    this.#isGiven = kv !== undefined;
  }

  /** The open handle: that of the snapshot, if the options have one. */
  #handle(options: { snapshot?: LevelSnapshot }): Kv | Promise<Kv> {
    return options.snapshot?.kv ?? this.#kv!;
  }

  /** @internal */
  protected async _open(): Promise<void> {
    this.#kv = await this.#database.kv();
    if (this.#isGiven) Object.assign(this.supports, abilitiesOf(this.#kv));
  }

  /** @internal */
  protected async _close(): Promise<void> {
    // A database in memory ends with its handle; abstract-level expects it after another open().
    if (this.supports.permanence) await this.#database.close();
  }

  /** @internal */
  protected async _get(key: Uint8Array, options: Range): Promise<Uint8Array | undefined> {
    const kv = await this.#handle(options);
    return (await kv.get<Uint8Array>(this.#database.key(key))).value ?? undefined;
  }

  /** @internal */
  protected _getSync(key: Uint8Array, options: Range): Uint8Array | undefined {
    const kv = options.snapshot === undefined ? this.#kv! : options.snapshot.opened();
    return kv.getSync<Uint8Array>(this.#database.key(key)).value ?? undefined;
  }

  /** @internal */
  protected async _getMany(
    keys: Uint8Array[],
    options: Range,
  ): Promise<(Uint8Array | undefined)[]> {
    return await Promise.all(keys.map((key) => this._get(key, options)));
  }

  /** @internal */
  protected async _has(key: Uint8Array, options: Range): Promise<boolean> {
    return (await this._get(key, options)) !== undefined;
  }

  /** @internal */
  protected async _hasMany(keys: Uint8Array[], options: Range): Promise<boolean[]> {
    return (await this._getMany(keys, options)).map((value) => value !== undefined);
  }

  /** @internal */
  protected async _put(key: Uint8Array, value: Uint8Array): Promise<void> {
    await this.#kv!.set(this.#database.key(key), value);
  }

  /** @internal */
  protected async _del(key: Uint8Array): Promise<void> {
    await this.#kv!.delete(this.#database.key(key));
  }

  /** @internal */
  protected async _batch(operations: Operation[]): Promise<void> {
    const atomic = this.#kv!.atomic();
    for (const operation of operations) {
      const key = this.#database.key(operation.key);
      if (operation.type === "put") atomic.set(key, operation.value);
      else atomic.delete(key);
    }
    await atomic.commit();
  }

  /** @internal */
  protected async _clear(options: Range): Promise<void> {
    const kv = this.#kv!;
    const selector = selectorOf(this.#database.base, options);
    if (selector === undefined) return;
    const limit = limitOf(options.limit);
    if (options.snapshot === undefined && options.reverse !== true) {
      await kv.deleteMany(selector, limit === undefined ? {} : { limit });
      return;
    }
    const read = await this.#handle(options);
    const { reverse } = options;
    const keys: KvKey[] = [];
    for await (const { key } of read.list(selector, { keysOnly: true, limit, reverse })) {
      keys.push(key);
    }
    await kv.deleteMany(keys);
  }

  /** @internal */
  protected _iterator(options: Range & { values?: boolean }): EntryIterator<K, V> {
    return new EntryIterator(this, options, this.#cursor(options, options.values === false));
  }

  /** @internal */
  protected _keys(options: Range): KeyIterator<K, V> {
    return new KeyIterator(this, options, this.#cursor(options, true));
  }

  /** @internal */
  protected _values(options: Range): ValueIterator<K, V> {
    return new ValueIterator(this, options, this.#cursor(options, false));
  }

  /** @internal */
  protected _snapshot(options: any): LevelSnapshot {
    return new LevelSnapshot(this.#kv!, options);
  }

  #cursor(range: Range, keysOnly: boolean): Cursor {
    return new Cursor(this.#handle(range), this.#database.base, range, keysOnly);
  }
}

/** A state of the database: what an empty commit at this point of the program has seen. */
class LevelSnapshot extends AbstractSnapshot {
  readonly kv: Promise<Kv>;
  #opened: Kv | undefined;

  constructor(kv: Kv, options: any) {
    // @ts-expect-error: its types leave out the argument, which names the owner.
    super(options);
    this.kv = at(kv);
    // Reads reject with it; without reads nobody asks.
    this.kv.then(
      (opened) => (this.#opened = opened),
      () => {},
    );
  }

  /** The handle for a synchronous read. */
  opened(): Kv {
    if (this.#opened !== undefined) return this.#opened;
    throw new Error(
      `openkv/${NAME}: the snapshot is still being opened; read it once by get before getSync`,
    );
  }

  /** @internal */
  protected async _close(): Promise<void> {
    await (await this.kv.catch(() => undefined))?.close();
  }
}

async function at(kv: Kv): Promise<Kv> {
  const { versionstamp } = (await kv.atomic().commit()) as { versionstamp: string };
  return await kv.at(versionstamp);
}

/** The position of an iterator: a list, which `seek` begins anew. */
class Cursor {
  readonly #kv: Kv | Promise<Kv>;
  readonly #base: KvKey;
  readonly #keysOnly: boolean;
  readonly #outer: Range;
  /** What is left of the range since the last `seek`. */
  #range: Range;
  #list: KvListIterator<Uint8Array, any> | null | undefined;

  constructor(kv: Kv | Promise<Kv>, base: KvKey, range: Range, keysOnly: boolean) {
    this.#kv = kv;
    this.#base = base;
    this.#keysOnly = keysOnly;
    this.#range = range;
    this.#outer = range;
  }

  /** The next entry; undefined at the end. `left` is how many the caller still wants in all. */
  async next(left: number): Promise<[Uint8Array, Uint8Array | undefined] | undefined> {
    if (this.#list === undefined) {
      const selector = selectorOf(this.#base, this.#range);
      const limit = limitOf(left === Number.POSITIVE_INFINITY ? -1 : left);
      const { reverse } = this.#range;
      this.#list =
        selector === undefined
          ? null
          : (await this.#kv).list(selector, { keysOnly: this.#keysOnly, reverse, limit });
    }
    if (this.#list === null) return undefined;
    const { done, value } = await this.#list.next();
    return done ? undefined : [value.key.at(-1), value.value];
  }

  async many(size: number, left: number): Promise<[Uint8Array, Uint8Array | undefined][]> {
    const entries: [Uint8Array, Uint8Array | undefined][] = [];
    while (entries.length < size) {
      const entry = await this.next(left);
      if (entry === undefined) break;
      entries.push(entry);
    }
    return entries;
  }

  /** Continues at the target, within the range that the iterator was made with. */
  seek(target: Uint8Array): void {
    this.#list = isOutside(target, this.#outer) ? null : undefined;
    const { reverse, gt, gte, lt, lte } = this.#outer;
    this.#range = reverse
      ? { reverse, ...(gt && { gt }), ...(gte && { gte }), lte: target }
      : { gte: target, ...(lt && { lt }), ...(lte && { lte }) };
  }
}

class EntryIterator<K, V> extends AbstractIterator<OpenKvLevel<K, V>, K, V> {
  readonly #cursor: Cursor;

  constructor(db: OpenKvLevel<K, V>, options: any, cursor: Cursor) {
    super(db, options);
    this.#cursor = cursor;
  }

  protected _next(): Promise<any> {
    return this.#cursor.next(this.limit - this.count);
  }

  protected _nextv(size: number): Promise<any[]> {
    return this.#cursor.many(size, this.limit - this.count);
  }

  protected _seek(target: Uint8Array): void {
    this.#cursor.seek(target);
  }
}

class KeyIterator<K, V> extends AbstractKeyIterator<OpenKvLevel<K, V>, K> {
  readonly #cursor: Cursor;

  constructor(db: OpenKvLevel<K, V>, options: any, cursor: Cursor) {
    super(db, options);
    this.#cursor = cursor;
  }

  protected async _next(): Promise<any> {
    return (await this.#cursor.next(this.limit - this.count))?.[0];
  }

  protected async _nextv(size: number): Promise<any[]> {
    return (await this.#cursor.many(size, this.limit - this.count)).map(([key]) => key);
  }

  protected _seek(target: Uint8Array): void {
    this.#cursor.seek(target);
  }
}

class ValueIterator<K, V> extends AbstractValueIterator<OpenKvLevel<K, V>, K, V> {
  readonly #cursor: Cursor;

  constructor(db: OpenKvLevel<K, V>, options: any, cursor: Cursor) {
    super(db, options);
    this.#cursor = cursor;
  }

  protected async _next(): Promise<any> {
    return (await this.#cursor.next(this.limit - this.count))?.[1];
  }

  protected async _nextv(size: number): Promise<any[]> {
    return (await this.#cursor.many(size, this.limit - this.count)).map(([, value]) => value);
  }

  protected _seek(target: Uint8Array): void {
    this.#cursor.seek(target);
  }
}

/**
 * The entries of a range, undefined if its bounds leave none. No key extends another one here, so
 * `[...key, false]` is right behind a key.
 */
function selectorOf(base: KvKey, range: Range): KvListSelector | undefined {
  const { gt, gte, lt, lte } = range;
  // abstract-level lets the bound that includes its key win.
  const [from, above] = gte === undefined ? [gt, true] : [gte, false];
  const [to, below] = lte === undefined ? [lt, true] : [lte, false];
  if (from !== undefined && to !== undefined) {
    const order = compare(from, to);
    if (order > 0 || (order === 0 && (above || below))) return undefined;
  }
  const start = from && [...base, from, ...(above ? [false] : [])];
  const end = to && [...base, to, ...(below ? [] : [false])];
  if (start !== undefined && end !== undefined) return { start, end };
  if (start !== undefined) return { prefix: base, start };
  if (end !== undefined) return { prefix: base, end };
  return { prefix: base };
}

function isOutside(key: Uint8Array, { gt, gte, lt, lte }: Range): boolean {
  const isBefore =
    gte === undefined ? gt !== undefined && compare(key, gt) <= 0 : compare(key, gte) < 0;
  const isBehind =
    lte === undefined ? lt !== undefined && compare(key, lt) >= 0 : compare(key, lte) > 0;
  return isBefore || isBehind;
}

/** The order of two keys, as the database has it. */
function compare(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    if (a[at] !== b[at]) return a[at]! - b[at]!;
  }
  return a.length - b.length;
}

/** abstract-level's -1 is no limit; its 0 never gets here. */
function limitOf(limit: number | undefined): number | undefined {
  return limit === undefined || limit < 0 ? undefined : limit;
}

/** What the manifest promises only of some databases. */
interface Abilities {
  getSync: boolean;
  explicitSnapshots: boolean;
}

function abilitiesAt(where: string, open: DatabaseOptions["open"]): Abilities {
  const isServer = /^https?:/i.test(where);
  return {
    getSync: !isServer && !/^postgres(?:ql)?:/i.test(where),
    explicitSnapshots: !isServer && open?.history !== undefined,
  };
}

/** Of a handle that was given, which tells by a read whether it is behind a network; of a promise of one none. */
function abilitiesOf(kv: Kv | Promise<Kv>): Abilities {
  const handle = kv as Partial<Kv> | null;
  let isLocal = typeof handle?.getSync === "function";
  try {
    handle?.getSync?.([NAME]);
  } catch (error) {
    isLocal = (error as { code?: unknown }).code !== "UNSUPPORTED";
  }
  return { getSync: isLocal, explicitSnapshots: isLocal };
}
