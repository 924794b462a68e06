// Duty: program order on one handle: the writes under way, and the later calls that must wait for
// them because they touch the same keys.
// Invariant: writes that were handed over commit in the order of their calls where they touch the
// same key (the addon's writer queue, crates/client/src/remote/order.rs). Calls whose commits may come later than
// those of later calls are held; writes that touch the same keys wait for them.

import { NativePromise } from "../model/native-promise.js";
import type { Writer } from "../codec/writer.js";
import { type Span, Touched, covers, overlap } from "../records/touched.js";
import { type KeyVisitor, visitKeys } from "../records/written-keys.js";

/** Most bytes of frames that are kept for writes under way; the keys of other frames are copied. */
const KEPT_BYTES_MAX = 1024 * 1024;
/** Number of written keys that a range is compared with; with more, it waits for all of them. */
const COMPARED_KEYS_MAX = 512;
/** Size of a {@link HashCounts} table; a power of two. */
const PLACES_MIN = 1024;
const PLACES_MAX = 1024 * 1024;

/** Running writes: those of one frame, or of one held call. */
export class Ticket implements KeyVisitor {
  /** Resolves when they have succeeded or failed; never rejects. */
  readonly settled: Promise<unknown>;
  /** The frame with their records, until the keys are copied. */
  frame: Writer | null;
  /** The end of the last complete record in the frame. */
  frameEnd = 0;
  /** Whether the frame is complete. */
  crossed = false;
  /** The bytes of its frame that count for {@link KEPT_BYTES_MAX}. */
  keptBytes = 0;
  /** Hashes of the keys that were indexed. */
  readonly hashes: number[] = [];
  /** The number of indexed keys that the commit completes. */
  completed = 0;
  /** Ranges that a deletion empties. */
  readonly emptied: readonly Span[];
  #indexedTo = 0;
  /** The keys that were copied out of the frame. */
  #touched: Touched;
  #copiedTo = 0;

  constructor(frame: Writer | null, settled: Promise<unknown>, touched = new Touched()) {
    this.frame = frame;
    this.settled = settled;
    this.#touched = touched;
    this.emptied = touched.emptied;
    this.completed = touched.spans.length;
    for (const key of touched.keys) {
      const bytes = Buffer.from(key, "latin1");
      this.hashes.push(hashOf(bytes, 0, bytes.length));
    }
  }

  /** Reads the keys of the records that were added since the last time. */
  index(): void {
    if (this.frame === null || this.#indexedTo === this.frameEnd) return;
    visitKeys(this.frame.buf, this.#indexedTo, this.frameEnd, this);
    this.#indexedTo = this.frameEnd;
  }

  changes(buf: Buffer, start: number, end: number): void {
    this.hashes.push(hashOf(buf, start, end));
  }

  completes(): void {
    this.completed++;
  }

  checks(): void {}

  checksRange(): void {}

  overlaps(span: Span): boolean {
    this.#copy();
    const { keys, spans } = this.#touched;
    return (
      keys.some((key) => covers(span, key)) ||
      spans.some((own) => overlap(own, span)) ||
      this.emptied.some((own) => overlap(own, span))
    );
  }

  /** Copies the keys out of the frame and returns its writer. */
  letGo(): Writer | null {
    const { frame } = this;
    if (frame === null) return null;
    this.#copy();
    this.frame = null;
    return frame;
  }

  #copy(): void {
    if (this.frame === null || this.#copiedTo === this.frameEnd) return;
    visitKeys(this.frame.buf, this.#copiedTo, this.frameEnd, this.#touched);
    this.#copiedTo = this.frameEnd;
  }
}

/** Counts the keys of running writes by hash. Hashes that share a place are counted together. */
class HashCounts {
  #counts: Int32Array | null = null;
  #keys = 0;

  get size(): number {
    return this.#keys;
  }

  add(hash: number): void {
    const counts = (this.#counts ??= new Int32Array(PLACES_MIN));
    counts[hash & (counts.length - 1)]++;
    this.#keys++;
  }

  remove(hash: number): void {
    const counts = this.#counts!;
    counts[hash & (counts.length - 1)]--;
    // Frees the memory of a large table.
    if (--this.#keys === 0 && counts.length > PLACES_MIN) this.#counts = null;
  }

  /** Returns false if no key has this hash. */
  may(hash: number): boolean {
    const counts = this.#counts;
    return counts !== null && counts[hash & (counts.length - 1)] !== 0;
  }

  /** Whether so many keys share places that {@link widen} should be called. */
  get isFull(): boolean {
    const counts = this.#counts;
    return counts !== null && this.#keys * 4 > counts.length && counts.length < PLACES_MAX;
  }

  widen(hashes: Iterable<number>): void {
    this.#counts = new Int32Array(this.#counts!.length * 4);
    this.#keys = 0;
    for (const hash of hashes) this.add(hash);
  }
}

/** A call whose commits may come later than those of later calls. */
export class Held {
  readonly touched: Touched;
  /** Resolves when the order of later calls is known. */
  readonly passed: Promise<void>;
  #pass!: () => void;
  #settle!: () => void;
  readonly #order: ProgramOrder;
  readonly #ticket: Ticket;

  constructor(order: ProgramOrder, touched: Touched) {
    this.touched = touched;
    this.passed = new NativePromise((resolve) => (this.#pass = resolve));
    this.#order = order;
    const settled = new NativePromise<void>((resolve) => (this.#settle = resolve));
    this.#ticket = new Ticket(null, settled, touched);
    order.add(this.#ticket);
  }

  /** The call was submitted: calls that are submitted later commit later. */
  pass(): void {
    this.#order.release(this);
    this.#pass();
  }

  /** The call has completed or failed. */
  end(): void {
    this.pass();
    this.#order.end(this.#ticket);
    this.#settle();
  }
}

export class ProgramOrder {
  /** The number of tickets. If it is zero, calls skip all other checks. */
  underWay = 0;
  /** The number of held calls. If it is zero, writes skip all other checks. */
  held = 0;
  /** In call order. */
  readonly #tickets = new Set<Ticket>();
  readonly #held = new Set<Held>();
  /** Those of {@link #tickets} that empty ranges. */
  readonly #emptying = new Set<Ticket>();
  /** Tickets with records whose keys have not been read yet. */
  readonly #fresh: Ticket[] = [];
  readonly #hashCounts = new HashCounts();
  #keptBytes = 0;

  /** Starts a ticket for the writes of a frame. */
  begin(frame: Writer, settled: Promise<unknown>): Ticket {
    const ticket = new Ticket(frame, settled);
    this.underWay++;
    this.#tickets.add(ticket);
    this.#fresh.push(ticket);
    return ticket;
  }

  /**
   * The frame is complete and was submitted. Returns its writer, unless the frame is still needed.
   */
  cross(ticket: Ticket): Writer | null {
    ticket.crossed = true;
    const bytes = ticket.frame!.buf.length;
    if (this.#keptBytes + bytes > KEPT_BYTES_MAX) {
      this.#index();
      return ticket.letGo();
    }
    ticket.keptBytes = bytes;
    this.#keptBytes += bytes;
    return null;
  }

  /** The writes of the ticket have ended. Returns the writer of their frame, if it was kept. */
  end(ticket: Ticket): Writer | null {
    this.underWay--;
    this.#tickets.delete(ticket);
    this.#emptying.delete(ticket);
    const fresh = this.#fresh.indexOf(ticket);
    if (fresh >= 0) this.#fresh.splice(fresh, 1);
    const { frame, hashes } = ticket;
    for (let i = 0; i < hashes.length; i++) this.#hashCounts.remove(hashes[i]);
    this.#keptBytes -= ticket.keptBytes;
    ticket.frame = null;
    return frame;
  }

  /** Adds the ticket of a held call. */
  add(ticket: Ticket): void {
    this.underWay++;
    this.#tickets.add(ticket);
    if (ticket.emptied.length > 0) this.#emptying.add(ticket);
    for (const hash of ticket.hashes) this.#hashCounts.add(hash);
  }

  /** Holds a call: writes of the same keys wait until it passes. */
  hold(touched: Touched): Held {
    const held = new Held(this, touched);
    this.#held.add(held);
    this.held++;
    return held;
  }

  release(held: Held): void {
    if (this.#held.delete(held)) this.held--;
  }

  /** The promise that a read of the key `buf[start..end)` waits for; null if it need not wait. */
  beforeKey(buf: Buffer, start: number, end: number): Promise<unknown> | null {
    if (this.underWay === 0) return null;
    if (this.#fresh.length > 0) this.#index();
    const hash = hashOf(buf, start, end);
    const mayChange = this.#hashCounts.may(hash);
    if (!mayChange && this.#emptying.size === 0) return null;
    const found: Promise<unknown>[] = [];
    // A hash collision only makes a call wait needlessly.
    if (mayChange) {
      for (const { hashes, settled } of this.#tickets)
        if (hashes.includes(hash)) found.push(settled);
    }
    if (this.#emptying.size > 0) {
      const key = buf.toString("latin1", start, end);
      for (const { emptied, settled } of this.#emptying) {
        if (emptied.some((span) => covers(span, key))) found.push(settled);
      }
    }
    return allOf(found);
  }

  /** The promise that a read of `start <= key < end` waits for; null if it need not wait. */
  beforeRange(start: Buffer, end: Buffer): Promise<unknown> | null {
    if (this.underWay === 0) return null;
    this.#index();
    const span = { start: start.toString("latin1"), end: end.toString("latin1") };
    const found: Promise<unknown>[] = [];
    let compared = this.#hashCounts.size;
    for (const ticket of this.#tickets) compared += ticket.completed + ticket.emptied.length;
    if (compared > COMPARED_KEYS_MAX) return this.beforeAll();
    for (const ticket of this.#tickets) if (ticket.overlaps(span)) found.push(ticket.settled);
    return allOf(found);
  }

  /** The promise that a read of all keys waits for; null if it need not wait. */
  beforeAll(): Promise<unknown> | null {
    return allOf([...this.#tickets].map(({ settled }) => settled));
  }

  /** The promise that a write waits for before it is submitted; null if it need not wait. */
  beforeWrite(touched: Touched): Promise<unknown> | null {
    const found: Promise<unknown>[] = [];
    for (const held of this.#held) if (held.touched.meets(touched)) found.push(held.passed);
    return allOf(found);
  }

  #index(): void {
    const fresh = this.#fresh;
    const counts = this.#hashCounts;
    let open = 0;
    for (let at = 0; at < fresh.length; at++) {
      const ticket = fresh[at];
      const { hashes } = ticket;
      const known = hashes.length;
      ticket.index();
      for (let i = known; i < hashes.length; i++) counts.add(hashes[i]);
      if (!ticket.crossed) fresh[open++] = ticket;
    }
    fresh.length = open;
    if (counts.isFull) counts.widen([...this.#tickets].flatMap(({ hashes }) => hashes));
  }
}

function allOf(promises: Promise<unknown>[]): Promise<unknown> | null {
  if (promises.length < 2) return promises.length === 0 ? null : promises[0];
  return NativePromise.all(promises);
}

/** A hash of 30 bits, which reads four bytes at a time. */
function hashOf(buf: Buffer, start: number, end: number): number {
  let hash = end - start;
  let i = start;
  for (; i + 4 <= end; i += 4) {
    const four = buf[i] | (buf[i + 1] << 8) | (buf[i + 2] << 16) | (buf[i + 3] << 24);
    hash = Math.imul(hash ^ four, 0x9e37_79b1);
    hash ^= hash >>> 15;
  }
  for (; i < end; i++) hash = Math.imul(hash ^ buf[i], 0x9e37_79b1);
  return (hash ^ (hash >>> 15)) & 0x3fff_ffff;
}
