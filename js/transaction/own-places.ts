// Duty: the transaction's own writes in a list in the order of values: each where it would be after the commit.
// Invariant: a list yields a key at most once, whatever its function writes meanwhile.

import { NativePromise } from "../model/native-promise.js";
import { STEP_DESCENDS, STEP_SORTED } from "../native/contract.js";
import type { OwnEntry, Pending } from "./pending.js";

/** An own entry of the list. */
export interface OwnPlace {
  readonly id: string;
  readonly position: string;
  readonly own: OwnEntry;
}

/** The list that own entries are put into. */
export interface OrderedList {
  readonly pending: Pending;
  /** Whether it is about a key. */
  within(key: string): boolean;
  /** The request of the list, for the places of its entries. */
  readonly request: Buffer;
  /** The position behind which it begins. */
  readonly after: string | null;
  /** The flags of its steps. */
  readonly flags: number;
  /** Records that an own entry was put into another order, because of an index that has come or gone meanwhile. */
  spoil(): void;
}

/** What of the flags of the steps is the same in one order. */
const ORDER_FLAGS = STEP_SORTED | STEP_DESCENDS;
/** The bytes with which all positions of one order begin. Sorted positions have a zero alone. */
const MARK_BYTES = 9;

const markOf = (position: string) =>
  position.startsWith("\0") ? "\0" : position.slice(0, MARK_BYTES);

export class OwnPlaces {
  readonly #list: OrderedList;
  readonly #descends: boolean;
  readonly #places = new Map<string, OwnPlace>();
  readonly #yielded = new Set<string>();
  /** The places in order, from the next one on; null when they have to be sorted again. */
  #sorted: OwnPlace[] | null = null;
  #at = 0;
  /** The writes that were looked at. */
  #writes = 0;
  /** The mark of all positions so far. */
  #mark: string | null;

  constructor(list: OrderedList) {
    this.#list = list;
    this.#descends = (list.flags & STEP_DESCENDS) !== 0;
    this.#mark = list.after === null ? null : markOf(list.after);
  }

  /** Whether a position is of the same order as those before. */
  fits(position: string): boolean {
    const mark = markOf(position);
    this.#mark ??= mark;
    return mark === this.#mark;
  }

  isBefore(a: string, b: string): boolean {
    return this.#descends ? a > b : a < b;
  }

  /** Records that the list yields a key. */
  yields(id: string): void {
    this.#yielded.add(id);
    this.#places.delete(id);
  }

  hasYielded(id: string): boolean {
    return this.#yielded.has(id);
  }

  /** The first entry that was not yielded and is not before `last`. */
  async next(last: string | null): Promise<OwnPlace | null> {
    const { pending, request } = this.#list;
    while (this.#writes < pending.writes) {
      const keys = [...pending.since(this.#writes)];
      this.#writes = pending.writes;
      const changed = keys.filter((key) => this.#list.within(key) && !this.#yielded.has(key));
      const entries = await NativePromise.all(changed.map((key) => pending.placed(key, request)));
      changed.forEach((id, i) => this.#keep(id, entries[i]));
      if (changed.length > 0) this.#sorted = null;
    }
    if (this.#sorted === null) {
      this.#sorted = [...this.#places.values()];
      this.#sorted.sort((a, b) => (this.isBefore(a.position, b.position) ? -1 : 1));
      this.#at = 0;
    }
    const sorted = this.#sorted;
    const isOver = ({ id, position }: OwnPlace) =>
      this.#yielded.has(id) || (last !== null && this.isBefore(position, last));
    while (this.#at < sorted.length && isOver(sorted[this.#at])) this.#at++;
    return sorted[this.#at] ?? null;
  }

  #keep(id: string, own: OwnEntry): void {
    this.#places.delete(id);
    if (!own.exists || !own.meets || own.place === null) return;
    const { flags, position } = own.place;
    const { after, flags: listed } = this.#list;
    if (position === "") return;
    if (((flags ^ listed) & ORDER_FLAGS) !== 0 || !this.fits(position)) this.#list.spoil();
    if (after !== null && !this.isBefore(after, position)) return;
    this.#places.set(id, { id, position, own });
  }
}
