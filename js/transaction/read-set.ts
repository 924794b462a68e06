// Duty: the read set of a transaction: the entries and ranges that it has read, and the checks of
// these for its commit.
// Keys are byte strings here: a string with one character a byte, which compares as the bytes do.

import { tooLarge } from "../model/errors.js";
import type { Limits } from "../arguments/check.js";
import { Writer } from "../codec/writer.js";
import type { Conflict } from "../model/errors.js";
import { keyOf } from "../codec/key-bytes.js";
import { OP_CHECK_FOUND, OP_CHECK_RANGE } from "../native/contract.js";
import { putSized } from "../native/frame.js";
import { putCheckHead } from "../records/layout.js";
import { CHECKS, type Segment } from "../write/segment.js";
import type { KvListSelector } from "../model/types.js";

/** A filter in CBOR by which value indexes have found entries, and the time of `$now` in it. */
export interface FoundBy {
  readonly where: Buffer;
  readonly now: number;
}

/** The part of a list that was read, which the commit checks. */
interface ReadPart {
  readonly selector: KvListSelector;
  /** Whether the list has read anything that needs a check. */
  readonly used: boolean;
  put(writer: Writer): void;
}

/** An entry of a list. */
export interface ReadRow {
  readonly key: string;
  readonly stamp: string;
}

/** The part of a range that a list has read, all by value indexes or all by keys. */
export class ReadRange implements ReadPart {
  readonly #set: ReadSet;
  #start: string;
  #end: string;
  readonly #reverse: boolean;
  /** The selector of the list. */
  readonly selector: KvListSelector;
  #rows: ReadRow[] = [];
  /** The last key that the list has read; null before the first. */
  #last: string | null = null;
  #whole = false;
  /** Null: by keys. Undefined before the first step of the list. */
  #foundBy: FoundBy | null | undefined = undefined;

  constructor(
    set: ReadSet,
    start: string,
    end: string,
    reverse: boolean,
    selector: KvListSelector,
  ) {
    this.selector = selector;
    this.#set = set;
    this.#start = start;
    this.#end = end;
    this.#reverse = reverse;
  }

  /**
   * Records how a step of the list has found its entries, from the key `at` on. Returns the range that it belongs to:
   * another one if the steps before have read it in the other way.
   */
  step(foundBy: FoundBy | null, at: string): ReadRange {
    if (this.#foundBy === undefined) this.#foundBy = foundBy;
    if ((this.#foundBy === null) === (foundBy === null)) return this;
    const [start, end] = this.#reverse ? [this.#start, at] : [at, this.#end];
    if (this.#reverse) this.#start = at;
    else this.#end = at;
    this.#whole = true;
    return this.#set.range(start, end, this.#reverse, this.selector).step(foundBy, at);
  }

  /** Records an entry of the list. */
  saw(key: string, stamp: string): void {
    this.#set.saw(key, stamp);
    this.#rows.push({ key, stamp });
    this.#last = key;
  }

  /** Records a key without an entry. */
  passed(key: string): void {
    this.#last = key;
  }

  /** Records that the list has read to its end. */
  ended(): void {
    this.#whole = true;
  }

  get used(): boolean {
    return this.#whole || this.#last !== null;
  }

  put(writer: Writer): void {
    let start = this.#start;
    let end = this.#end;
    if (!this.#whole && this.#reverse) start = this.#last!;
    else if (!this.#whole) end = this.#last! + "\0";
    putRange(writer, start, end, this.#reverse ? this.#rows.toReversed() : this.#rows);
    const foundBy = this.#foundBy ?? null;
    if (foundBy !== null) putFoundBy(writer, foundBy);
  }
}

/** The check of a range. */
export function putRange(
  writer: Writer,
  start: string,
  end: string,
  rows: readonly ReadRow[],
): void {
  writer.u8(OP_CHECK_RANGE);
  putBytesOf(writer, start);
  putBytesOf(writer, end);
  writer.u32(rows.length);
  for (const { key, stamp } of rows) {
    writer.ascii(stamp);
    putBytesOf(writer, key);
  }
}

/** Makes a check of a range one of what value indexes find. */
export function putFoundBy(writer: Writer, { now, where }: FoundBy): void {
  writer.u8(OP_CHECK_FOUND);
  writer.f64(now);
  putSized(writer, where);
}

export class ReadSet {
  readonly #limits: Limits;
  /** Keys that were read one by one, and the stamps of their entries. */
  readonly #points = new Map<string, string | null>();
  /** The versionstamps of all entries that were read, by key or by list. */
  readonly #stamps = new Map<string, string | null>();
  readonly #ranges: ReadPart[] = [];
  #rows = 0;
  /** A key of which two reads returned different entries: the commit cannot succeed. */
  #broken: string | null = null;
  /** The selector of a list whose pages do not fit together. */
  #spoilt: KvListSelector | null = null;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Records an entry that was read. */
  note(key: string, stamp: string | null): void {
    const before = this.#stamps.get(key);
    if (before === undefined) this.#stamps.set(key, stamp);
    else if (before !== stamp) this.#broken = key;
  }

  /** Records that the pages of a list do not fit together: the commit cannot succeed. */
  spoil(selector: KvListSelector): void {
    this.#spoilt = selector;
  }

  /** Whether two reads of one key returned different entries, or pages of a list do not fit together. */
  get broken(): boolean {
    return this.#broken !== null || this.#spoilt !== null;
  }

  /** Records a key that was read by `get`. */
  read(key: string, stamp: string | null): void {
    this.note(key, stamp);
    if (this.#points.has(key)) return;
    this.#points.set(key, stamp);
    this.#countCheck();
  }

  /** Starts recording a list. */
  range(start: string, end: string, reverse: boolean, selector: KvListSelector): ReadRange {
    return this.add(new ReadRange(this, start, end, reverse, selector));
  }

  /** Adds the part of a list. */
  add<T extends ReadPart>(part: T): T {
    this.#ranges.push(part);
    this.#countCheck();
    return part;
  }

  /** Records an entry of a list, which counts towards the limit of them. */
  saw(key: string, stamp: string): void {
    this.note(key, stamp);
    const most = this.#limits.checkedRowsMax;
    if (++this.#rows > most) {
      throw overLimit("Too many entries in checked ranges", "checkedRowsMax", most, this.#rows);
    }
  }

  #countCheck(): void {
    const most = this.#limits.checksMax;
    const given = this.#points.size + this.#ranges.length;
    if (given > most) throw overLimit("Too many checks", "checksMax", most, given);
  }

  /** The number of {@link checks}. */
  get count(): number {
    return this.#points.size + this.#ranges.filter(({ used }) => used).length;
  }

  /** The changed keys and ranges, by the numbers of the failed checks in {@link checks}. */
  conflict(failed: readonly number[]): Pick<Conflict, "keys" | "ranges"> {
    if (this.#broken !== null) return { keys: [keyOf(this.#broken)], ranges: [] };
    if (this.#spoilt !== null) return { keys: [], ranges: [bare(this.#spoilt)] };
    const points = [...this.#points.keys()];
    const ranges = this.#ranges.filter(({ used }) => used);
    return {
      keys: failed.filter((at) => at < points.length).map((at) => keyOf(points[at])),
      ranges: failed
        .filter((at) => at >= points.length)
        .map((at) => bare(ranges[at - points.length].selector)),
    };
  }

  /** The records of the checks; null when nothing was read. */
  checks(): Segment | null {
    const writer = new Writer();
    for (const [key, stamp] of this.#points) {
      putCheckHead(writer, stamp);
      putBytesOf(writer, key);
    }
    for (const range of this.#ranges) if (range.used) range.put(writer);
    if (writer.pos === 0) return null;
    const { buf, pos } = writer;
    return { rank: CHECKS, buf, start: 0, end: pos, fills: null };
  }
}

/** A selector without its undefined bounds. */
function bare(selector: KvListSelector): KvListSelector {
  const bounds = Object.entries(selector).filter(([, bound]) => bound !== undefined);
  return Object.fromEntries(bounds) as KvListSelector;
}

/** A byte string with its length. */
export function putBytesOf(writer: Writer, key: string): void {
  writer.u32(key.length);
  writer.ensure(key.length);
  writer.pos += writer.buf.write(key, writer.pos, "latin1");
}

/** The text of the addon for a commit. */
function overLimit(words: string, name: string, most: number, given: number): TypeError {
  return tooLarge(
    `${words} (max ${most}): ${given} given; raise limits.${name} of openKv to allow it`,
  );
}
