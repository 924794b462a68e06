// Duty: KvListIterator: pages of rows, decoded on demand.
// Invariant: entries are yielded in key order, each once, however the calls of next() overlap; a
// page is from one snapshot.

import { misuse } from "../model/errors.js";
import { checkConsistency, overLimit } from "../arguments/check.js";
import { encodeCursor } from "../codec/cursor.js";
import { decodeKey } from "../codec/key.js";
import { decodeValue } from "../codec/value/decode.js";
import { copyOf } from "../codec/writer.js";
import { readStamp, readU32 } from "../native/frame.js";
import { READS } from "../instruments/channels.js";
import { refuseArrayUse } from "./list-misuse.js";
import {
  LIST_OPTIONS,
  WHOLE,
  checkListOptions,
  refuseWithOrder,
  scanOptions,
} from "./list-options.js";
import {
  POINT_HEAD_BYTES,
  RANGE_HEAD_BYTES,
  REVERSE,
  STAMP_BYTES,
  TOO_LARGE,
} from "../native/contract.js";
import { type Bounds, type Selector, boundsOf, checkSelector, extended, resume } from "./range.js";
import { OrderedScan, checkOrder } from "./order.js";
import { Scan, type ScanStep, readEntry } from "./scan.js";
import { Session } from "../session/session.js";
import { NativePromise } from "../model/native-promise.js";
import type { KvConsistencyLevel, KvEntry, KvListOptions, KvListSelector } from "../model/types.js";

/** Rows of the first page and of later ones, when `batchSize` does not say otherwise. */
const FIRST_PAGE_ROWS = 32;
const PAGE_ROWS_MAX = 500;
/** Pages of keys only: rows are small, and each page costs a trip to the reader thread. */
const KEYS_PAGE_ROWS_MAX = 4000;
/** Each page has this many times the rows of the one before. */
const PAGE_GROWTH = 4;

/** Memory for a page that is read synchronously, and what it may grow to for larger rows. */
const PAGE_BYTES = 128 * 1024;
const PAGE_BYTES_MAX = 4 * 1024 * 1024;
/** Number of page buffers kept for later lists. */
const SPARE_PAGES_MAX = 4;
const spares: Buffer[] = [];

const NO_BYTES = Buffer.alloc(0);

/** The caller of a list. */
interface ListFor {
  /** The name of the list in errors. */
  readonly method: string;
  /** Entries that are not selected are returned too, marked. */
  readonly passed: boolean;
  /** Ends the step of a scan that is under way when it aborts. */
  readonly signal: AbortSignal | undefined;
  /** Whether its pages are published; otherwise it is a part of another operation. */
  readonly observed: boolean;
}

const FOR_KV = forKv(undefined, true);

/** For a list of `kv`, with the signal of its call. */
export function forKv(signal: AbortSignal | undefined, observed = false): ListFor {
  return { method: "kv.list", passed: false, signal, observed };
}

/** The prototype of all asynchronous iterators. */
const ASYNC_ITERATOR: object = Object.getPrototypeOf(
  Object.getPrototypeOf(async function* () {}.prototype),
);

/** Adds the iterator helpers of the runtime to a class of iterators. */
export function inheritHelpers(prototype: object): void {
  Object.setPrototypeOf(prototype, ASYNC_ITERATOR);
}

/** Reads the pages of a list that is a scan. */
export let scanOf: (list: KvListIterator<any, any>) => Scan | null;

export class KvListIterator<T, E = KvEntry<T>> implements AsyncIterableIterator<E> {
  readonly #session: Session;
  readonly #selector: Selector;
  /** The selector as it was given, for events; null for the list of another method, which has its own. */
  readonly #given: KvListSelector | null;
  readonly #reverse: boolean;
  readonly #cursorOption: string | null;
  /** The flag for the consistency that a remote database must keep. */
  readonly #freshness: number;
  #bounds: Bounds | null = null;
  /** Reads the pages of a list that selects entries or needs other parts of them. */
  readonly #scan: Scan | null;
  /** The error of every next(): a wrong bound, cursor or consistency. */
  #failure: unknown = undefined;

  /** Entries that may still be read, by `limit`. */
  #wanted: number;
  /** Rows of the next page, and the most that a page may have. */
  #pageRows: number;
  readonly #pageRowsMax: number;

  /** The page: rows still to be yielded start at `#at`. */
  #page: Buffer = NO_BYTES;
  #at = 0;
  #rows = 0;
  /** No page follows this one. */
  #last = false;
  /** The memory of the page can be reused. */
  #pooled = false;

  /** The key yielded last: bytes of `#lastPage`; an empty range before the first one. */
  #lastPage: Buffer = NO_BYTES;
  #lastStart = 0;
  #lastEnd = 0;
  #exhausted = false;

  /** The next step of a scan, requested while the rows of this one are yielded. */
  #ahead: Promise<ScanStep> | null = null;

  /** Writes that must complete before the next page is read; null if there are none. */
  #before: Promise<unknown> | null = null;
  /** Whether such writes were looked up. */
  #follows = false;

  /** The last of the calls of next() that wait for a page. */
  #tail: Promise<unknown> | null = null;

  constructor(
    session: Session,
    given: KvListSelector,
    options: KvListOptions,
    { method, passed, signal, observed }: ListFor = FOR_KV,
  ) {
    if (!(session instanceof Session)) {
      throw misuse("KvListIterator can not be constructed: use kv.list() instead");
    }
    const checked = checkListOptions(options);
    const { limit, batchSize, reverse, cursor, consistency, keysOnly } = checked;
    this.#session = session;
    this.#given = observed ? given : null;
    this.#selector = checkSelector(method, given, LIST_OPTIONS);
    this.#reverse = reverse;
    this.#freshness = session.freshness(consistency as KvConsistencyLevel | undefined);
    const order = checkOrder(method, checked.orderBy, checked.sort);
    if (order !== null) refuseWithOrder(method, checked);
    const scan = scanOptions(method, checked, this.#selector, passed);
    if (order !== null) {
      const options = scan ?? WHOLE;
      const freshness = this.#freshness;
      this.#scan = new OrderedScan(session, options, reverse, signal, freshness, order, cursor);
    } else if (scan !== null) {
      this.#scan = new Scan(session, scan, reverse, signal, this.#freshness);
    } else this.#scan = null;
    this.#cursorOption = typeof cursor === "string" && cursor !== "" ? cursor : null;
    this.#wanted = limit ?? Number.POSITIVE_INFINITY;
    const most = keysOnly && batchSize === undefined ? KEYS_PAGE_ROWS_MAX : PAGE_ROWS_MAX;
    this.#pageRowsMax = Math.min(batchSize ?? most, most);
    this.#pageRows = Math.min(batchSize ?? FIRST_PAGE_ROWS, this.#pageRowsMax);
    try {
      this.#bounds = this.#open(cursor, consistency, batchSize);
    } catch (error) {
      this.#failure = error;
    }
  }

  #open(cursor: unknown, consistency: unknown, batchSize: number | undefined): Bounds {
    checkConsistency(consistency);
    const { limits } = this.#session;
    if (batchSize !== undefined && batchSize > limits.rowsMax) {
      throw overLimit("Too many entries", "rowsMax", limits, batchSize);
    }
    const selector = this.#selector;
    const bounds = boundsOf(selector, limits.rangeKeyBytesMax);
    if (cursor && !(this.#scan instanceof OrderedScan)) {
      const explicit = (this.#reverse ? selector.end : selector.start) !== undefined;
      resume(bounds, cursor, this.#reverse, explicit);
    }
    const isWhole = selector.start === undefined && selector.end === undefined && !cursor;
    if (!isWhole && bounds.start.compare(bounds.end) >= 0) this.#last = true;
    return bounds;
  }

  get cursor(): string {
    if (this.#exhausted) return "";
    const ordered = this.#scan?.cursor ?? null;
    if (ordered !== null) return ordered;
    if (this.#lastEnd > 0) {
      return encodeCursor(this.#lastPage, this.#lastStart, this.#lastEnd, this.#bounds!.common);
    }
    if (this.#cursorOption === null) {
      throw new Error("Cannot get cursor before first iteration");
    }
    return this.#cursorOption;
  }

  next(): Promise<IteratorResult<E, undefined>> {
    if (this.#rows > 0 || !READS.isObserved || this.#last || this.#given === null) {
      return this.#next();
    }
    return this.#observed();
  }

  /** A method of its own: a closure in next() would cost memory in each call. */
  #observed(): Promise<IteratorResult<E, undefined>> {
    return READS.observe(this.#session, "list", { selector: this.#given }, () => this.#next());
  }

  #next(): Promise<IteratorResult<E, undefined>> {
    if (this.#tail !== null) return this.#queue();
    try {
      if (this.#rows === 0 && !this.#turnPage()) return this.#queue();
      return NativePromise.resolve(this.#take());
    } catch (error) {
      return NativePromise.reject(error);
    }
  }

  toArray(): Promise<E[]> {
    const entries: E[] = [];
    try {
      let next = this.firstNow();
      while (next !== null && next.done !== true) {
        entries.push(next.value);
        next = this.#nextHere();
      }
      return next === null ? this.#collect(entries) : NativePromise.resolve(entries);
    } catch (error) {
      return NativePromise.reject(error);
    }
  }

  /** Adds the entries that are left. */
  async #collect(entries: E[]): Promise<E[]> {
    let next = await this.next();
    while (next.done !== true) {
      entries.push(next.value);
      next = this.#nextHere() ?? (await this.next());
    }
    return entries;
  }

  /** The first result without a promise, if it is here, or can be read at once; null: call next(). */
  protected firstNow(): IteratorResult<E, undefined> | null {
    const isNow = this.#tail === null && !READS.isObserved && (this.#rows > 0 || this.#turnPage());
    return isNow ? this.#take() : null;
  }

  /** A row of the page needs no promise, nor does the end behind the last page; null: call next(). */
  #nextHere(): IteratorResult<E, undefined> | null {
    if (this.#tail !== null) return null;
    if (this.#rows === 0) {
      if (!this.#last && this.#wanted > 0) return null;
      if (this.#last) this.#exhaust();
    }
    return this.#take();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The row at `#at`, or the end. */
  #take(): IteratorResult<E, undefined> {
    if (this.#rows === 0) return { done: true, value: undefined };
    const page = this.#page;
    const scan = this.#scan;
    const keyStart = this.#at + 4;
    const keyEnd = keyStart + readU32(page, this.#at);
    const start = keyEnd + POINT_HEAD_BYTES + 4;
    const end = start + readU32(page, keyEnd + POINT_HEAD_BYTES);
    // The row counts as yielded even if it cannot be decoded, so that the list can continue after
    // it.
    this.#at = scan === null ? end : scan.behind(page, end);
    this.#rows--;
    this.#lastPage = page;
    this.#lastStart = keyStart;
    this.#lastEnd = keyEnd;
    const { prefix, prefixBytes } = this.#bounds!;
    const key =
      prefix === null
        ? decodeKey(page, keyStart, keyEnd)
        : decodeKey(page, keyStart + prefixBytes, keyEnd, prefix);
    if (scan !== null) {
      return { done: false, value: readEntry(page, keyEnd, key, scan.options) as E };
    }
    const value = decodeValue(page[keyEnd + STAMP_BYTES], page, start, end) as T;
    const entry = { key, value, versionstamp: readStamp(page, keyEnd) };
    if (this.#pooled && this.#rows === 0 && (this.#last || this.#wanted === 0)) {
      this.#keepLast();
      this.#giveBack();
    }
    return { done: false, value: entry as E };
  }

  /** A call that waits for a page, behind those that wait already. */
  #queue(): Promise<IteratorResult<E, undefined>> {
    const before = this.#tail;
    const result = before === null ? this.#step() : before.then(() => this.#step());
    const settled: Promise<void> = result.then(
      () => this.#leave(settled),
      () => this.#leave(settled),
    );
    this.#tail = settled;
    return result;
  }

  #leave(settled: Promise<void>): void {
    if (this.#tail === settled) this.#tail = null;
  }

  async #step(): Promise<IteratorResult<E, undefined>> {
    while (this.#rows === 0 && !this.#turnPage()) {
      if (this.#before !== null) {
        await this.#before;
        this.#before = null;
        continue;
      }
      const turn = this.#mayBeNow() ? this.#session.nextTurn() : null;
      if (turn !== null) {
        await turn;
      } else if (this.#scan !== null) {
        await this.#advance(this.#scan);
      } else {
        await this.#fetch();
        break;
      }
    }
    return this.#take();
  }

  /** Reads the next page synchronously, if there is one. False: it takes the asynchronous lane. */
  #turnPage(): boolean {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#last || this.#wanted === 0) {
      if (this.#last) this.#exhaust();
      return true;
    }
    const session = this.#session;
    session.requireOpen();
    this.#keepLast();
    if (this.#before !== null || this.#mustWait()) return false;
    if (session.spent || !session.answers(this.#freshness)) return false;
    if (this.#scan !== null) return this.#advanceNow(this.#scan);
    let page = this.#pooled ? this.#page : (spares.pop() ?? Buffer.allocUnsafeSlow(PAGE_BYTES));
    this.#pooled = true;
    this.#page = page;
    const length = this.#request(0);
    for (;;) {
      session.hold(1);
      const answer = session.native.page(length, page);
      if (answer >= 0) {
        this.#begin(page, 0);
        session.hold(this.#rows);
        return true;
      }
      session.refused(answer);
      if (answer !== TOO_LARGE || page.length >= PAGE_BYTES_MAX) return false;
      page = this.#page = Buffer.allocUnsafeSlow(page.length * 2);
    }
  }

  /** Whether the next page may be synchronous, once the turn has budget. */
  #mayBeNow(): boolean {
    if (!this.#session.answers(this.#freshness)) return false;
    return this.#scan === null || (this.#ahead === null && this.#scan.mayBeBrief);
  }

  /** Does the next step of a scan synchronously, if it is brief. It then has rows, or is the last one. */
  #advanceNow(scan: Scan): boolean {
    if (!this.#mayBeNow()) return false;
    const step = scan.stepNow(this.#bounds!, this.#stepRows(scan));
    if (step === null) return false;
    this.#beginStep(step);
    return true;
  }

  /** Looks up, once for each page, the writes that must complete before it. */
  #mustWait(): boolean {
    if (this.#follows) return false;
    this.#follows = true;
    const { order } = this.#session;
    if (order.underWay === 0 || this.#freshness !== 0) return false;
    const { start, end } = this.#bounds!;
    this.#before = order.beforeRange(start, end);
    return this.#before !== null;
  }

  /** Reads the next page on the asynchronous lane. */
  async #fetch(): Promise<void> {
    const session = this.#session;
    const length = this.#request(this.#freshness);
    const batch = session.joinRead();
    const index = batch.range(session.port.writer.buf, length);
    await batch.arrived;
    const at = batch.start(index);
    this.#giveBack();
    this.#begin(batch.data, at);
  }

  /** Reads the next step of a scan, which may have no rows although more steps follow. */
  async #advance(scan: Scan): Promise<void> {
    const step = await (this.#ahead ?? this.#ask(scan));
    this.#ahead = null;
    // A caller that has read the first page usually reads the rest.
    const quiet = this.#session.order.underWay === 0;
    const goesOn = !step.done && step.rows < this.#wanted && this.#page !== NO_BYTES && quiet;
    this.#beginStep(step);
    if (goesOn) {
      this.#ahead = this.#ask(scan);
      // The call that takes the step gets the error.
      this.#ahead.catch(() => {});
    }
  }

  /** Takes the rows of a step as the page. */
  #beginStep(step: ScanStep): void {
    const { page, at, rows, done } = step;
    this.#scan!.began?.(step);
    this.#follows = false;
    this.#page = page;
    this.#at = at;
    this.#rows = rows;
    this.#wanted -= rows;
    this.#last = done;
    if (rows > 0) this.#pageRows = Math.min(this.#pageRows * PAGE_GROWTH, this.#pageRowsMax);
    else if (done) this.#exhaust();
  }

  #ask(scan: Scan): Promise<ScanStep> {
    return scan.step(this.#bounds!, this.#stepRows(scan));
  }

  /** The rows of the next step. */
  #stepRows(scan: Scan): number {
    return Math.min(scan.rowsOf(this.#pageRows), this.#wanted);
  }

  /** Writes the range request of the next page into the scratch; returns its length. */
  #request(freshness: number): number {
    const writer = this.#session.port.begin();
    const { start, end } = this.#bounds!;
    writer.u8((this.#reverse ? REVERSE : 0) | freshness);
    writer.u32(Math.min(this.#pageRows, this.#wanted));
    writer.u32(start.length);
    writer.bytes(start);
    writer.u32(end.length);
    writer.bytes(end);
    return writer.pos;
  }

  /** Takes the range answer at `at` as the page. */
  #begin(page: Buffer, at: number): void {
    const limit = Math.min(this.#pageRows, this.#wanted);
    const rows = readU32(page, at);
    const more = page[at + 4] === 1;
    this.#follows = false;
    this.#page = page;
    this.#at = at + RANGE_HEAD_BYTES;
    this.#rows = rows;
    this.#wanted -= rows;
    this.#last = rows < limit && !more;
    this.#pageRows = Math.min(this.#pageRows * PAGE_GROWTH, this.#pageRowsMax);
    if (rows === 0) this.#exhaust();
  }

  /** Keeps a copy of the last key, and makes it the bound of the next page. */
  #keepLast(): void {
    if (this.#lastPage !== this.#page || this.#lastEnd === 0) return;
    const bounds = this.#bounds!;
    const key = copyOf(this.#page, this.#lastStart, this.#lastEnd);
    // A scan keeps its own position.
    if (this.#scan === null) {
      if (this.#reverse) bounds.end = key;
      else bounds.start = extended(key, 0);
    }
    this.#lastPage = key;
    this.#lastStart = 0;
    this.#lastEnd = key.length;
  }

  static {
    refuseArrayUse(this.prototype, "kv.list()");
    scanOf = (list) => list.#scan;
    inheritHelpers(this.prototype);
  }

  #exhaust(): void {
    this.#last = true;
    this.#exhausted = true;
    this.#giveBack();
  }

  #giveBack(): void {
    if (this.#pooled && this.#page.length === PAGE_BYTES && spares.length < SPARE_PAGES_MAX) {
      spares.push(this.#page);
    }
    this.#pooled = false;
    this.#page = NO_BYTES;
  }
}
