// Duty: the connection of this copy of the module to the addon, on one thread: the shared scratch,
// the dispatch of events by id, the count of pending calls that keeps the process alive, and the end
// of every turn with synchronous reads.
// Invariant: the addon's port keeps the process alive exactly while a call is pending.

import { setImmediate } from "../model/clock.js";
import process from "node:process";
import { Writer } from "../codec/writer.js";
import type * as Binding from "./binding.js";
import { InlineCommits } from "./inline-commits.js";
import { loadBinding } from "./load.js";
import type { TurnMember, Turns } from "./turns.js";

/** First size of the scratch: a `getMany` of ten values at the default limits fits. */
const SCRATCH_BYTES = 1024 * 1024;
/** Largest size of the scratch; larger answers take the asynchronous lane. */
const SCRATCH_BYTES_MAX = 16 * 1024 * 1024;
/** Ids are positive small integers and are reused. */
const ID_MAX = 0x3fff_ffff;

/** Receives the events of one id. Must not throw. */
export interface Receiver {
  receive(kind: number, data: Buffer | null): void;
}

/** Limits by name. The depth of values is not a limit of a handle. */
export function setOfLimits(native: typeof Binding, set: string): Record<string, number> {
  const { valueDepthMax: _, ...limits } = native.limits(set);
  return limits;
}

export class Port implements Turns {
  readonly native: typeof Binding;
  /** Identifies this port among those of other copies of this module. */
  readonly attachment: number;
  /** Every bound of a handle at its default, by name. */
  readonly limits: Readonly<Record<string, number>>;
  /** Bounds that no handle can change, by name. */
  readonly bounds: Readonly<Record<string, number>>;
  /** Writes the requests of synchronous reads; the answers are in its buffer. */
  readonly writer = new Writer(SCRATCH_BYTES);
  /**
   * Counts uses of the scratch. If the number changes while a caller encodes (a getter in its key
   * has made another request), its request is overwritten.
   */
  uses = 0;
  /** The commits of this thread's handles that run on it. */
  readonly inline = new InlineCommits(this);

  /** The memory that the addon reads and writes: the writer's, unless a long key has enlarged it. */
  #scratch: Buffer;
  #scratchView: DataView;
  readonly #receivers = new Map<number, Receiver>();
  #lastId = 0;
  #pending = 0;
  #closesBeforeExit = false;
  #turn: TurnMember[] = [];

  constructor(native: typeof Binding) {
    this.native = native;
    this.limits = Object.freeze(setOfLimits(native, "deno"));
    this.bounds = Object.freeze(native.bounds());
    this.#scratch = this.writer.buf;
    this.#scratchView = this.writer.view;
    this.attachment = native.attach(this.#scratch, (kind, id, data) =>
      this.#receivers.get(id)?.receive(kind, data),
    );
  }

  /** The writer at the start of the scratch, for a new request. */
  begin(): Writer {
    const { writer } = this;
    if (writer.buf !== this.#scratch) this.#restore();
    writer.pos = 0;
    this.uses++;
    return writer;
  }

  /** Whether the request that was just written lies in the scratch. */
  get fits(): boolean {
    return this.writer.buf === this.#scratch;
  }

  /** The scratch, for an answer without a request. */
  useScratch(): Buffer {
    this.uses++;
    return this.#scratch;
  }

  #restore(): void {
    this.writer.buf = this.#scratch;
    this.writer.view = this.#scratchView;
  }

  /** Enlarges the scratch, up to its bound, for an answer that did not fit. Keeps the request. */
  grow(): void {
    const { writer } = this;
    if (!this.fits || writer.buf.length >= SCRATCH_BYTES_MAX) return;
    writer.grow(writer.pos, writer.buf.length * 2 - writer.pos);
    this.#scratch = writer.buf;
    this.#scratchView = writer.view;
    this.native.rescratch(this.attachment, this.#scratch);
  }

  /** Returns an id whose events go to `receiver` until {@link forget}. */
  register(receiver: Receiver): number {
    do {
      this.#lastId = this.#lastId === ID_MAX ? 1 : this.#lastId + 1;
    } while (this.#receivers.has(this.#lastId));
    this.#receivers.set(this.#lastId, receiver);
    return this.#lastId;
  }

  forget(id: number): void {
    this.#receivers.delete(id);
  }

  /** A call has started: the process stays alive until {@link settled}. */
  pending(): void {
    if (this.#pending++ === 0) this.native.ref(this.attachment);
  }

  settled(): void {
    if (--this.#pending === 0) this.native.unref(this.attachment);
  }

  /** From now on the exit of the process waits, for a bounded time, for databases that are closing. */
  closeBeforeExit(): void {
    if (this.#closesBeforeExit) return;
    this.#closesBeforeExit = true;
    process.once("exit", () => this.native.waitClosed(true));
  }

  /** Calls `endTurn` at the end of the turn. A member adds itself once per turn. */
  atTurnEnd(member: TurnMember): void {
    if (this.#turn.push(member) === 1) setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    const members = this.#turn;
    this.#turn = [];
    for (const member of members) member.endTurn();
  };
}

let current: Port | undefined;

/** The port; the first call loads the addon. */
export function port(): Port {
  return (current ??= new Port(loadBinding()));
}
