// Duty: the entries below one key of a queue, as a commit in the making sees them: what the database has, as far as
// it has been read, and the writes over it. They outlive the commit, so that the next one need not read them again.
//
// Invariant: `#first` has every entry up to `#end`, without a gap, with the writes; `#known` has the newest value of
// each order in it.

import type { AtomicOperation, Kv, KvKey, KvKeyPart } from "openkv";

/** Entries that the first read of a range asks for; each following one asks for twice as many, up to the most. */
const READ_FIRST = 64;
const READ_MOST = 512;
/** Entries of a range that are kept for the next commit. */
const FIRST_KEPT_MAX = 1024;
/** Values that are kept for the next commit. */
const KNOWN_KEPT_MAX = 1024;

export interface Row<T = unknown> {
  order: KvKeyPart[];
  value: T;
}

/** What was there before a write. */
export interface Before {
  readonly entries: Entries;
  readonly name: Name;
  readonly written: Row | undefined;
  readonly wasKnown: boolean;
  readonly known: unknown;
}

/** What a read answers: at once what is known, and otherwise once it has been read. */
export type Known<T> = T | Promise<T>;

export class Entries {
  readonly #kv: Kv;
  readonly #key: KvKey;
  /** The writes that are to be committed; without a value, a deletion. */
  written: Map<Name, Row> = new Map();
  /** The writes whose commit is under way: the database has all of them, or none. */
  #sent: Map<Name, Row> = new Map();
  readonly #known = new Map<Name, unknown>();
  #first: Row[] = [];
  #end: KvKeyPart[] | undefined;
  #isWhole = false;
  #step = READ_FIRST;

  constructor(kv: Kv, key: KvKey) {
    this.#kv = kv;
    this.#key = key;
  }

  keyOf(order: KvKeyPart[]): KvKey {
    return [...this.#key, ...order];
  }

  get<T>(order: KvKeyPart[]): Known<T | undefined> {
    const name = nameOf(order);
    const known = this.#known.get(name) as T | undefined;
    return known !== undefined || this.#known.has(name) ? known : this.#load<T>(order, name);
  }

  async #load<T>(order: KvKeyPart[], name: Name): Promise<T | undefined> {
    const { value } = await this.#kv.get<T>(this.keyOf(order));
    this.#known.set(name, value ?? undefined);
    return value ?? undefined;
  }

  /** Writes a value, or deletes the entry without one. */
  put(order: KvKeyPart[], value: unknown): Before {
    const name = nameOf(order);
    const written = this.written.get(name);
    const known = this.#known.get(name);
    const wasKnown = known !== undefined || this.#known.has(name);
    this.written.set(name, { order, value });
    this.#known.set(name, value);
    this.#place(order, value);
    return { entries: this, name, written, wasKnown, known };
  }

  /** Takes the last write back that has not been taken back. */
  undo({ name, written, wasKnown, known }: Before): void {
    if (written === undefined) this.written.delete(name);
    else this.written.set(name, written);
    if (wasKnown) this.#known.set(name, known);
    else this.#known.delete(name);
    this.#forgetFirst();
  }

  #place(order: KvKeyPart[], value: unknown): void {
    const at = this.#indexOf(order);
    const found = this.#first[at];
    const isThere = found !== undefined && compare(found.order, order) === 0;
    if (value === undefined) {
      if (isThere) this.#first.splice(at, 1);
    } else if (isThere) this.#first[at] = { order, value };
    else if (this.#covers(order)) this.#first.splice(at, 0, { order, value });
  }

  /** The place of the first entry that is not before this order. */
  #indexOf(order: KvKeyPart[]): number {
    let low = 0;
    let high = this.#first.length;
    // Most are before all others or behind them.
    const first = this.#first[0];
    if (first === undefined || compare(order, first.order) <= 0) return 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare((this.#first[middle] as Row).order, order) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #covers(order: KvKeyPart[]): boolean {
    return this.#isWhole || (this.#end !== undefined && compare(order, this.#end) <= 0);
  }

  #forgetFirst(): void {
    this.#first = [];
    this.#end = undefined;
    this.#isWhole = false;
    this.#step = READ_FIRST;
  }

  /** The first entries in their order, up to `limit` of them. */
  list<T>(limit: number): Known<Row<T>[]> {
    return this.#has(limit)
      ? (this.#first.slice(0, limit) as Row<T>[])
      : this.#read(limit).then(() => this.#first.slice(0, limit) as Row<T>[]);
  }

  /** The first entry. */
  first<T>(): Known<Row<T> | undefined> {
    return this.#has(1)
      ? (this.#first[0] as Row<T> | undefined)
      : this.#read(1).then(() => this.#first[0] as Row<T> | undefined);
  }

  #has(limit: number): boolean {
    return this.#first.length >= limit || this.#isWhole;
  }

  async #read(limit: number): Promise<void> {
    while (!this.#has(limit)) await this.#readOn(limit - this.#first.length);
  }

  /** The last entries that the database has, the last one first. */
  async last<T>(limit: number): Promise<Row<T>[]> {
    const prefix = this.#key;
    const options = Number.isFinite(limit) ? { limit, reverse: true } : { reverse: true };
    const entries = await this.#kv.list<T>({ prefix }, options).toArray();
    return entries.map(({ key, value }) => ({ order: key.slice(prefix.length), value }));
  }

  /** Reads entries behind the last that was read: `needed` of them if there are so many, and some more. */
  async #readOn(needed: number): Promise<void> {
    const after = this.#end;
    const most = Math.max(needed, this.#step);
    this.#step = Math.min(this.#step * 2, READ_MOST);
    const prefix = this.#key;
    const selector = after === undefined ? { prefix } : { prefix, start: this.keyOf(after) };
    // The entry at the start has been read, and may have been deleted since.
    const options = Number.isFinite(most) ? { limit: most + 1 } : {};
    const entries = await this.#kv.list(selector, options).toArray();
    const isNew = (order: KvKeyPart[]) => after === undefined || compare(order, after) > 0;
    const rows: Row[] = [];
    for (const { key, value } of entries) {
      const order = key.slice(prefix.length);
      if (isNew(order) && !this.#isWritten(nameOf(order))) rows.push({ order, value });
    }
    this.#isWhole = !Number.isFinite(most) || entries.length <= most;
    this.#end = entries.at(-1)?.key.slice(prefix.length) ?? after;
    for (const [name, row] of [...this.#sent, ...this.written]) {
      if (this.written.get(name) !== row && this.written.has(name)) continue;
      if (row.value !== undefined && isNew(row.order) && this.#covers(row.order)) rows.push(row);
    }
    this.#first.push(...rows.sort((a, b) => compare(a.order, b.order)));
  }

  #isWritten(name: Name): boolean {
    return this.written.has(name) || this.#sent.has(name);
  }

  /** Adds the writes to a commit. Further ones are for the commit after it. */
  send(atomic: AtomicOperation<boolean>): void {
    for (const { order, value } of this.written.values()) {
      if (value === undefined) atomic.delete(this.keyOf(order));
      else atomic.set(this.keyOf(order), value);
    }
    this.#sent = this.written;
    this.written = new Map();
  }

  /**
   * The writes that were sent are committed. Keeps of all that was read the first entries, and the newest of the values that
   * `isKept`.
   */
  settle(isKept: (value: unknown) => boolean): void {
    this.#sent.clear();
    if (this.#first.length > FIRST_KEPT_MAX) this.#forgetFirst();
    let over = this.#known.size - KNOWN_KEPT_MAX;
    for (const [name, value] of this.#known) {
      if (this.written.has(name)) continue;
      if (over-- > 0 || !isKept(value)) this.#known.delete(name);
    }
  }
}

/** A number or a text that is another one for each key. */
type Name = string | number;

export function nameOf(parts: KvKey): Name {
  const [first] = parts;
  if (parts.length === 1 && typeof first === "number") return first;
  if (parts.length === 1 && typeof first === "string" && !first.startsWith("\0")) return first;
  let name = "";
  for (const part of parts) {
    const kind = typeof part === "string" ? "s" : typeof part === "number" ? "n" : "b";
    name += `\0${kind}${String(part)}`;
  }
  return name;
}

/** The order of keys: bytes, texts and numbers, in this order, at each place. */
function compare(a: KvKey, b: KvKey): number {
  for (let index = 0; index < a.length; index += 1) {
    const part = a[index] as KvKeyPart;
    const other = b[index];
    if (part === other) continue;
    if (other === undefined) return 1;
    if (typeof part === "number" && typeof other === "number") return part - other;
    const kinds = kindOf(part) - kindOf(other);
    const parts = kinds === 0 ? Buffer.compare(bytesOf(part), bytesOf(other)) : kinds;
    if (parts !== 0) return parts;
  }
  return a.length - b.length;
}

function kindOf(part: KvKeyPart): number {
  return typeof part === "object" ? 0 : typeof part === "string" ? 1 : 2;
}

function bytesOf(part: KvKeyPart): Uint8Array {
  return ArrayBuffer.isView(part) ? part : Buffer.from(String(part));
}
