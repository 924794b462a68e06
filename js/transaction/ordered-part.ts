// Duty: the part of a list in the order of values that a transaction has read, and its check.
// Keys and positions are byte strings here, as in the read set.

import type { Writer } from "../codec/writer.js";
import { OP_CHECK_ORDER } from "../native/contract.js";
import type { Order } from "../read/order.js";
import { type ReadRow, type ReadSet, putBytesOf, putFoundBy, putRange } from "./read-set.js";
import type { KvListSelector } from "../model/types.js";

/** How a step has found its entries. */
export interface Way {
  /** The entries were sorted. */
  readonly sorted: boolean;
  /** Value indexes have found them. */
  readonly indexed: boolean;
  /** The value of `$now`. */
  readonly now: number;
}

/** An object without conditions, in CBOR. */
const ALL = Buffer.from([0xa0]);

export class OrderedPart {
  readonly #set: ReadSet;
  readonly #start: string;
  readonly #end: string;
  readonly selector: KvListSelector;
  readonly #where: Buffer | null;
  readonly #order: Order;
  /** The position behind which the list has begun; null for its beginning. */
  readonly #after: string | null;
  #way: Way | null = null;
  #rows: ReadRow[] = [];
  /** The position that the list has reached; null before the first. */
  #until: string | null = null;
  #whole = false;

  constructor(
    set: ReadSet,
    [start, end]: readonly [string, string],
    selector: KvListSelector,
    where: Buffer | null,
    order: Order,
    after: string | null,
  ) {
    this.#set = set;
    this.#start = start;
    this.#end = end;
    this.selector = selector;
    this.#where = where;
    this.#order = order;
    this.#after = after;
  }

  /** Records how a step of the list has found its entries. Steps that differ fail the check, or have found the same. */
  step(way: Way): void {
    this.#way = way;
  }

  /** Records an entry of the list. */
  saw(key: string, stamp: string, position: string): void {
    this.#set.saw(key, stamp);
    this.#rows.push({ key, stamp });
    this.#until = position;
  }

  /** Records that the list has no entry up to a position. */
  passed(position: string): void {
    this.#until = position;
  }

  /** Records that the list has read to its end. */
  ended(): void {
    this.#whole = true;
  }

  get used(): boolean {
    return this.#way !== null && (this.#whole || this.#until !== null);
  }

  put(writer: Writer): void {
    const rows = this.#rows.toSorted((a, b) => (a.key < b.key ? -1 : 1));
    putRange(writer, this.#start, this.#end, rows);
    const { sorted, indexed, now } = this.#way!;
    if (!indexed) return;
    putFoundBy(writer, { where: this.#where ?? ALL, now });
    if (sorted) return;
    writer.u8(OP_CHECK_ORDER);
    const { paths } = this.#order;
    writer.u8(paths.length);
    for (const { path, order } of paths) {
      writer.u8(order === "desc" ? 1 : 0);
      putBytesOf(writer, Buffer.from(path, "utf8").toString("latin1"));
    }
    putPosition(writer, this.#after);
    putPosition(writer, this.#whole ? null : this.#until);
  }
}

function putPosition(writer: Writer, position: string | null): void {
  writer.u8(position === null ? 0 : 1);
  if (position !== null) putBytesOf(writer, position);
}
