// Duty: the lists of a transaction: rows of the database and the transaction's own writes, merged in
// the order of their keys.
// Invariant: a row is in the read set before it is yielded; rows that are not selected are too.

import { invalid } from "../model/errors.js";
import { checkConsistency, checkOptions, shown } from "../arguments/check.js";
import { encodeCursor } from "../codec/cursor.js";
import { bytesOf } from "../codec/key-bytes.js";
import { refuseArrayUse } from "../read/list-misuse.js";
import { KvListIterator, inheritHelpers, scanOf } from "../read/list.js";
import {
  LIST_OPTIONS,
  type ScanOptions,
  WHOLE,
  checkListOptions,
  pendingEntry,
  scanOptions,
} from "../read/list-options.js";
import type { OwnEntry, Pending } from "./pending.js";
import { type Bounds, type Selector, boundsOf, checkSelector, resume } from "../read/range.js";
import type { ReadRange, ReadSet } from "./read-set.js";
import type { ScannedEntry } from "../read/scan.js";
import type { Session } from "../session/session.js";
import { checkSignal, raced } from "../arguments/signal.js";
import type { KvEntryKey, KvListSelector, KvTransactionListIterator } from "../model/types.js";

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

export class TransactionList implements KvTransactionListIterator<any> {
  readonly #tx: ListedTransaction;
  readonly #selector: Selector;
  readonly #bounds: Bounds;
  readonly #rows: KvListIterator<unknown, any>;
  readonly #signal: AbortSignal | undefined;
  readonly #scan: ScanOptions;
  readonly #options: ReturnType<typeof checkListOptions>;
  readonly #entries: AsyncGenerator<any, undefined>;
  /** The key yielded last. */
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
    if (cursor) {
      const bound = reverse === true ? this.#selector.end : this.#selector.start;
      resume(this.#bounds, cursor, reverse === true, bound !== undefined);
    }
    // All rows that are read are checked, so the limit is applied here.
    const { limit: _, signal: __, ...rest } = given;
    const page = { ...rest, consistency: "strong" };
    this.#rows = new KvListIterator(tx.session, this.#selector as KvListSelector, page as object, {
      method,
      passed: true,
      signal: this.#signal,
      observed: false,
    });
    this.#entries = this.#listed();
  }

  static {
    refuseArrayUse(this.prototype, "tx.list()");
  }

  get cursor(): string {
    if (this.#exhausted) return "";
    const last = this.#last;
    if (last !== null) return encodeCursor(last, 0, last.length, this.#bounds.common);
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
    const own: OwnEntry =
      where === null
        ? await pending.entry(id)
        : await pending.compared(id, where, now ?? Number.NaN);
    const { exists, meets, key, value, expireAt } = own;
    if (!exists || !meets) return null;
    return pendingEntry(key, value, expireAt, this.#scan, this.#selector);
  }
}
