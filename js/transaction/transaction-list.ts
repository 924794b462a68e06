// Duty: the lists of a transaction: rows of the database and the transaction's own writes, merged in
// the order of their keys, or of their values.
// Invariant: a row is in the read set before it is yielded; rows that are not selected are too.

import { invalid } from "../model/errors.js";
import { checkConsistency, checkOptions, shown } from "../arguments/check.js";
import { decodeCursor, encodeCursor } from "../codec/cursor.js";
import { Writer } from "../codec/writer.js";
import { bytesOf } from "../codec/key-bytes.js";
import { refuseArrayUse } from "../read/list-misuse.js";
import { KvListIterator, inheritHelpers, scanOf } from "../read/list.js";
import {
  LIST_OPTIONS,
  type ScanOptions,
  WHOLE,
  checkListOptions,
  pendingEntry,
  putScan,
  scanOptions,
} from "../read/list-options.js";
import { type Order, type OrderedScan, checkOrder, putOrder } from "../read/order.js";
import { STEP_SORTED } from "../native/contract.js";
import { OrderedPart } from "./ordered-part.js";
import { OwnPlaces } from "./own-places.js";
import type { OwnEntry, Pending } from "./pending.js";
import { type Bounds, type Selector, boundsOf, checkSelector, resume } from "../read/range.js";
import type { ReadRange, ReadSet } from "./read-set.js";
import type { ScannedEntry } from "../read/scan.js";
import type { Session } from "../session/session.js";
import { checkSignal, raced } from "../arguments/signal.js";
import type {
  KvEntryKey,
  KvIndexPath,
  KvListSelector,
  KvTransactionListIterator,
} from "../model/types.js";

/** The interface of the transaction for its lists. */
export interface ListedTransaction {
  readonly session: Session;
  readonly reads: ReadSet;
  readonly pending: Pending;
  /** Throws once the transaction has ended. */
  requireActive(): void;
  /** Records a complete entry that was read. */
  know(id: string, entry: { key: KvEntryKey; value: unknown; versionstamp: string }): void;
}

/** A row of the database; `passed`: it was read but is not selected. */
type Head = { id: string; entry: ScannedEntry & { passed?: true } };
/** With its position in an order. */
type Place = Head & { position: string };

/** Whether a position is one of a list that was sorted. */
const isSorted = (position: Buffer) => position[0] === 0;

const reversed = ({ path, order }: KvIndexPath): KvIndexPath => ({
  path,
  order: order === "desc" ? "asc" : "desc",
});

/** The text of the addon for a page. */
function anotherOrder(method: string): TypeError {
  return invalid(
    `${method}: the cursor is of another order, or its index was created or dropped meanwhile: begin the list again`,
  );
}

export class TransactionList implements KvTransactionListIterator<any> {
  readonly #tx: ListedTransaction;
  readonly #selector: Selector;
  readonly #bounds: Bounds;
  readonly #rows: KvListIterator<unknown, any>;
  readonly #signal: AbortSignal | undefined;
  readonly #scan: ScanOptions;
  readonly #inOrder: boolean;
  readonly #options: ReturnType<typeof checkListOptions>;
  readonly #entries: AsyncGenerator<any, undefined>;
  /** The key yielded last, in an order of values its position. */
  #last: Buffer | null = null;
  #exhausted = false;

  constructor(tx: ListedTransaction, selector: KvListSelector, options: unknown, method: string) {
    const given = checkOptions(method, options, LIST_OPTIONS);
    const { limit, reverse, cursor } = given;
    if (limit !== undefined && !(Number.isInteger(limit) && (limit as number) > 0)) {
      throw invalid(`${method}: limit must be a positive integer: received ${shown(limit)}`);
    }
    if (reverse !== undefined && typeof reverse !== "boolean") {
      throw invalid(`${method}: reverse must be a boolean: received ${shown(reverse)}`);
    }
    checkConsistency(given.consistency);
    this.#signal = checkSignal(method, given.signal);
    this.#tx = tx;
    this.#options = checkListOptions(given);
    this.#selector = checkSelector(method, selector, LIST_OPTIONS);
    this.#scan = scanOptions(method, this.#options, this.#selector, true) ?? WHOLE;
    this.#bounds = boundsOf(this.#selector, tx.session.limits.rangeKeyBytesMax);
    const order = checkOrder(method, given.orderBy, given.sort);
    this.#inOrder = order !== null;
    const after = order !== null && cursor ? decodeCursor(cursor) : null;
    if (cursor && order === null) {
      const bound = reverse === true ? this.#selector.end : this.#selector.start;
      resume(this.#bounds, cursor, reverse === true, bound !== undefined);
    }
    // All rows that are read are checked, so the limit is applied here.
    const { limit: _, signal: __, ...rest } = given;
    // What is sorted is read and checked from its beginning.
    if (after !== null && isSorted(after)) delete rest.cursor;
    const page = { ...rest, consistency: "strong" };
    this.#rows = new KvListIterator(tx.session, this.#selector as KvListSelector, page as object, {
      method,
      passed: true,
      signal: this.#signal,
      observed: false,
    });
    this.#entries = order === null ? this.#listed() : this.#listedInOrder(order, after, method);
  }

  static {
    refuseArrayUse(this.prototype, "tx.list()");
  }

  get cursor(): string {
    if (this.#exhausted) return "";
    const last = this.#last;
    if (last !== null)
      return encodeCursor(last, 0, last.length, this.#inOrder ? 0 : this.#bounds.common);
    const { cursor } = this.#options;
    if (typeof cursor === "string" && cursor !== "") return cursor;
    throw new Error("Cannot get cursor before first iteration");
  }

  next(): Promise<IteratorResult<any, undefined>> {
    const signal = this.#signal;
    return signal === undefined ? this.#entries.next() : raced(signal, () => this.#entries.next());
  }

  return(): Promise<IteratorResult<any, undefined>> {
    return this.#entries.return(undefined);
  }

  async toArray(): Promise<any[]> {
    const entries: any[] = [];
    for await (const entry of this) entries.push(entry);
    return entries;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  static {
    inheritHelpers(this.prototype);
  }

  async *#listed(): AsyncGenerator<any, undefined> {
    const tx = this.#tx;
    const { reverse, limit = Number.POSITIVE_INFINITY } = this.#options;
    tx.requireActive();
    const start = this.#bounds.start.toString("latin1");
    const end = this.#bounds.end.toString("latin1");
    if (start > end) {
      this.#exhausted = true;
      return;
    }
    let range: ReadRange = tx.reads.range(start, end, reverse, this.#selector as KvListSelector);
    const scan = scanOf(this.#rows);
    if (scan !== null) {
      scan.began = ({ indexed, from }) => {
        const foundBy = indexed ? { where: this.#scan.where!, now: scan.now } : null;
        range = range.step(foundBy, from.toString("latin1"));
      };
    }
    const before = (a: string, b: string) => (reverse ? a > b : a < b);
    let head: Head | null | undefined;
    let last: string | null = null;
    for (let given = 0; given < limit; ) {
      head = head === undefined ? await this.#head() : head;
      const own = tx.pending.next(start, end, last, reverse);
      if (own === undefined && head === null) {
        range.ended();
        this.#exhausted = true;
        return;
      }
      let entry: object | null;
      if (head === null || (own !== undefined && !before(head.id, own))) {
        last = own!;
        if (head?.id === last) {
          range.saw(last, head.entry.versionstamp);
          head = undefined;
        } else {
          range.passed(last);
        }
        entry = await this.#own(last);
        tx.requireActive();
      } else {
        last = head.id;
        range.saw(last, head.entry.versionstamp);
        entry = this.#read(head);
        head = undefined;
      }
      if (entry === null) continue;
      given++;
      this.#last = Buffer.from(last, "latin1");
      yield entry;
      tx.requireActive();
    }
  }

  /** As {@link #listed}, in an order of values. */
  async *#listedInOrder(
    order: Order,
    cursor: Buffer | null,
    method: string,
  ): AsyncGenerator<any, undefined> {
    const tx = this.#tx;
    const { reverse, limit = Number.POSITIVE_INFINITY } = this.#options;
    tx.requireActive();
    const { start, end } = this.#bounds;
    if (start.compare(end) >= 0) {
      this.#exhausted = true;
      return;
    }
    const [first, behind] = [start.toString("latin1"), end.toString("latin1")];
    const after = cursor?.toString("latin1") ?? null;
    const selector = this.#selector as KvListSelector;
    const read: Order = { ...order, paths: reverse ? order.paths.map(reversed) : order.paths };
    const bounds = [first, behind] as const;
    const part = tx.reads.add(
      new OrderedPart(tx.reads, bounds, selector, this.#scan.where, read, after),
    );
    const scan = scanOf(this.#rows) as OrderedScan;
    let flags = 0;
    scan.began = ({ page, indexed }) => {
      flags = page[0];
      part.step({ sorted: (flags & STEP_SORTED) !== 0, indexed, now: scan.now });
    };
    let head: Place | null | undefined = await this.#placed(scan);
    const sorted = (flags & STEP_SORTED) !== 0;
    if (cursor !== null && isSorted(cursor) !== sorted) throw anotherOrder(method);
    const whole: Place[] = [];
    if (sorted) {
      for (; head !== null && head !== undefined; head = await this.#placed(scan)) {
        part.saw(head.id, head.entry.versionstamp, head.position);
        if (after === null || head.position > after) whole.push(head);
      }
      part.ended();
      whole.reverse();
      head = undefined;
    }
    const request = new Writer();
    putOrder(request, order, null);
    putScan(request, { ...this.#bounds, start, end }, this.#scan, reverse, 0, scan.now);
    const own = new OwnPlaces({
      pending: tx.pending,
      within: (key) => key >= first && key < behind,
      request: Buffer.from(request.buf.subarray(0, request.pos)),
      after,
      flags,
      spoil: () => tx.reads.spoil(selector),
    });
    let last = after;
    for (let given = 0; given < limit; ) {
      if (head === undefined) head = sorted ? (whole.pop() ?? null) : await this.#placed(scan);
      if (head !== null && !own.fits(head.position)) tx.reads.spoil(selector);
      const mine = await own.next(last);
      tx.requireActive();
      let entry: object | null;
      let id: string;
      if (head !== null && (mine === null || !own.isBefore(mine.position, head.position))) {
        const row: Place = head;
        head = undefined;
        ({ id, position: last } = row);
        if (!sorted) part.saw(id, row.entry.versionstamp, last);
        if (tx.pending.has(id) || own.hasYielded(id)) continue;
        entry = this.#read(row);
      } else if (mine !== null) {
        ({ id, position: last } = mine);
        part.passed(last);
        entry = this.#shown(mine.own);
      } else {
        part.ended();
        this.#exhausted = true;
        return;
      }
      if (entry === null) continue;
      own.yields(id);
      given++;
      this.#last = Buffer.from(last, "latin1");
      yield entry;
      tx.requireActive();
    }
  }

  /** The next row with its position. */
  async #placed(scan: OrderedScan): Promise<Place | null> {
    const isFirst = Number.isNaN(scan.now);
    try {
      const head = await this.#head();
      return head === null ? null : { ...head, position: scan.position };
    } catch (error) {
      // The index of the pages before has gone, or another one has come: the next attempt begins with what there is.
      const isRefused = (error as { code?: unknown } | null)?.code === "INVALID";
      if (!isFirst && isRefused) this.#tx.reads.spoil(this.#selector as KvListSelector);
      throw error;
    }
  }

  async #head(): Promise<Head | null> {
    const { value } = await this.#rows.next();
    this.#tx.requireActive();
    return value === undefined ? null : { id: bytesOf(value.key), entry: value };
  }

  /** The entry to yield for a row; null if it is not selected. */
  #read({ id, entry }: Head): object | null {
    if (Object.hasOwn(entry, "passed")) return null;
    if (this.#options.keysOnly) return entry;
    const { key, value, versionstamp } = entry;
    this.#tx.know(id, this.#options.withExpiry ? { key, value, versionstamp } : (entry as any));
    return entry;
  }

  /** The pending entry of a key; null if there is none, or it is not selected. */
  async #own(id: string): Promise<object | null> {
    const { pending } = this.#tx;
    const now = scanOf(this.#rows)?.now;
    const { where } = this.#scan;
    return this.#shown(
      where === null
        ? await pending.entry(id)
        : await pending.compared(id, where, now ?? Number.NaN),
    );
  }

  /** An own entry, as the list has it. */
  #shown({ exists, meets, key, value, expireAt }: OwnEntry): object | null {
    if (!exists || !meets) return null;
    return pendingEntry(key, value, expireAt, this.#scan, this.#selector);
  }
}
