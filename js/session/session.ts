// Duty: one open handle: the native handle, its limits, whether it is closed, its read budget in
// this turn, and the batches that calls join.
// Invariant: after close() the native handle only ends consumers of queues and settles their messages;
// it is closed when they have ended.

import { now } from "../model/clock.js";
import { bare } from "../model/define.js";
import { NativePromise } from "../model/native-promise.js";
import type { Limits } from "../arguments/check.js";
import { withoutLogin } from "../arguments/location.js";
import { onAbort } from "../arguments/signal.js";
import type { When } from "../arguments/moment.js";
import { CLOSED, type Failure, bugOf, closedError, errorOf, readFailure } from "../model/errors.js";
import {
  ERROR,
  EVENTUAL,
  EVENTUAL_CALL,
  IS_CLOSED,
  OPENED,
  SYNCHRONOUS_READS,
  WOULD_BLOCK,
} from "../native/contract.js";
import type { NativeHandle, NativeOptions } from "../native/binding.js";
import type { InlineCommits } from "../native/inline-commits.js";
import { readU32 } from "../native/frame.js";
import { requestContext } from "../instruments/channels.js";
import type { KvClock, KvConsistencyLevel } from "../model/types.js";
import type { Port, Receiver } from "../native/port.js";
import type { TurnMember } from "../native/turns.js";
import type { BatchOwner } from "./batch-owner.js";
import { ProgramOrder } from "./program-order.js";
import { ReadBatch } from "./read-batch.js";
import type { WriteBatch } from "./write-batch.js";

/**
 * From this many reads in a turn's budget on, the pages are in memory: reads from disk are slower.
 */
const WARM_READS_MIN = 32;
/** Most reads that wait for a turn, so that waiting again costs little. */
const WAITING_MAX = 500;

/** The options of opening that the addon does not need. */
interface SessionSettings {
  /** The consistency of reads that ask for none. */
  readonly consistency?: KvConsistencyLevel | undefined;
  /** Whether short commits may run on this thread. */
  readonly commitsHere?: boolean;
  /** The clock of the database, if it is not the machine's. */
  readonly now?: (() => number) | undefined;
}

/** What a session keeps of the options of opening. */
type OpenedOptions = Pick<NativeOptions, "limits" | "remote" | "replica" | "postgres" | "bucket"> &
  SessionSettings & { readonly path?: string; readonly database?: string };

/** What waits for the time of a given clock. */
export interface Alarm {
  readonly atMs: number;
  readonly ring: () => void | Promise<void>;
}

export class Session implements TurnMember, BatchOwner {
  readonly port: Port;
  readonly native: NativeHandle;
  /** The handle's number for the addon's get(). */
  readonly lane: number;
  readonly limits: Limits;
  /** A remote database: a server keeps the consistency that a read asks for. */
  readonly remote: boolean;
  /** A remote database with a local copy, which answers eventual reads. */
  readonly replica: boolean;
  /**
   * Whether arrays of numbers are written packed: versions of openkv that do not know the form refuse
   * the file, but may share a server or PostgreSQL with this one.
   */
  readonly packs: boolean;
  /** Whether read requests have flags: how old the state may be, and which are one state. */
  readonly hasFlags: boolean;
  /** The consistency of reads that ask for none. */
  readonly consistency: KvConsistencyLevel;
  /** The file; empty for a database without one of its own. */
  readonly path: string;
  /** The clock that the database was given, if any, and what waits for its time. */
  clock: KvClock | null = null;
  readonly alarms = new Set<Alarm>();
  /** The time of the database, in ms since the epoch; of a remote one that of this machine. */
  readonly now: () => number;
  /** The database, as events name it: its path, or its URL without user and password. */
  readonly database: string;
  /**
   * What ends before the database does: archivers, listeners, and waits for a message. The call requests
   * the end, and resolves when it is reached; none rejects.
   */
  readonly ending = new Set<() => Promise<unknown>>();
  /** Leases that are being acquired: one that arrives after close() is deleted before the database ends. None rejects. */
  readonly acquiring = new Set<Promise<unknown>>();
  /** Resolves when the closed handle has ended; null while it is open. */
  closing: Promise<void> | null = null;
  /** Why there are no synchronous reads; null if there are. */
  readonly whyNoSync: string | null;
  /** Which calls wait for writes that were called before them. */
  readonly order = new ProgramOrder();
  /** The watches and feeds that are open. */
  streams = 0;
  /** The batches of reads that the addon has not answered. */
  readsUnderWay = 0;
  /** Commits on this thread; null if there are none. */
  readonly inline: InlineCommits | null;
  closed = false;
  /** The reason of an abort. Any value can be a reason, so it is in an object. */
  aborted: { readonly reason: unknown } | null = null;
  /** Closed by `using`, not by close(): later listeners end without an error. */
  disposed = false;
  /**
   * Whether the budget of the turn is used up, so that no read is synchronous; always true for a
   * database without synchronous reads.
   */
  spent: boolean;
  /** Entries read synchronously in this turn. */
  #reads = 0;
  /** Consecutive turns in which few reads spent the budget. */
  #coldTurns = 0;
  /** The number of reads that wait for the next turn, and their promise. */
  #waiting = 0;
  #turned: Promise<void> | null = null;
  #turn: (() => void) | null = null;
  #readBatch: ReadBatch | null = null;
  /** The batch that a write may join. */
  openWrites: WriteBatch | null = null;
  #disobey = (): void => {};

  private constructor(
    port: Port,
    native: NativeHandle,
    options: OpenedOptions,
    lacks: ReadonlyMap<number, string>,
  ) {
    this.port = port;
    this.remote = options.remote !== undefined;
    this.replica = options.replica !== undefined;
    this.hasFlags = this.remote || this.replica;
    this.packs = !this.remote && options.postgres === undefined && options.bucket === undefined;
    this.consistency = options.consistency ?? "strong";
    this.path = options.path ?? "";
    this.database =
      options.database ??
      publicName(options.remote?.urls[0] ?? options.postgres ?? options.bucket?.url) ??
      this.path;
    this.now = options.now ?? now;
    this.whyNoSync = lacks.get(SYNCHRONOUS_READS) ?? null;
    this.spent = this.whyNoSync !== null;
    this.inline = options.commitsHere === true ? port.inline : null;
    this.native = native;
    this.lane = native.lane();
    this.limits = Object.freeze(options.limits);
  }

  /**
   * Opens a database in the background; rejects with the error of the addon, or with the reason of
   * the signal. A database behind the URL of a server obeys the signal from then on.
   */
  static open(
    port: Port,
    options: NativeOptions,
    signal?: AbortSignal,
    settings: SessionSettings = {},
  ): Promise<Session> {
    const { Handle } = port.native;
    const opened = bare({ ...options, ...settings });
    return Session.#opened(port, opened, signal, (id) => new Handle(port.attachment, id, options));
  }

  /** Opens the entries of a moment of the past, for reading. */
  async at(when: When): Promise<Session> {
    this.requireOpen();
    this.flush();
    const { port, native } = this;
    const limits = bare({ ...this.limits });
    const { database, now } = this;
    return await Session.#opened(port, bare({ limits, database, now }), undefined, (id) =>
      native.at(port.attachment, id, when.stamp, when.atMs),
    );
  }

  static async #opened(
    port: Port,
    options: OpenedOptions,
    signal: AbortSignal | undefined,
    start: (id: number) => NativeHandle,
  ): Promise<Session> {
    const opening = new Opening(port);
    const native = opening.start(start);
    const unfollow = signal && onAbort(signal, () => native.cancelAll());
    await opening.done;
    unfollow?.();
    if (opening.failure !== null) {
      signal?.throwIfAborted();
      throw errorOf(opening.failure);
    }
    const session = new Session(port, native, options, opening.lacks);
    if (signal?.aborted === true) await session.close();
    signal?.throwIfAborted();
    if (signal !== undefined && options.bucket === undefined) session.followSignal(signal);
    return session;
  }

  /** The flag of a read request: whether the state may be old, where that makes a difference. */
  freshness(consistency: KvConsistencyLevel | null | undefined): number {
    return this.hasFlags && (consistency ?? this.consistency) === "eventual" ? EVENTUAL : 0;
  }

  /** Whether reads with these flags may be synchronous. */
  answers(flags: number): boolean {
    return !this.replica || flags !== 0;
  }

  /** The number of a command that reads, with the mark that a replica may answer it. */
  readCommand(command: number, consistency?: KvConsistencyLevel | null): number {
    return this.replica && this.freshness(consistency) !== 0 ? command | EVENTUAL_CALL : command;
  }

  /** The trace context of a request that begins here; empty for a local database. */
  get context(): string {
    return this.remote ? requestContext(this.database) : "";
  }

  /** Throws when the handle is closed. */
  requireOpen(): void {
    if (this.closed) throw this.closedError();
  }

  /** The error of calls on the closed handle. */
  closedError(): unknown {
    return this.aborted === null ? closedError() : this.aborted.reason;
  }

  /** The error of a failure; after an abort it is the reason of the signal. */
  errorOf(failure: Failure): unknown {
    const isOwnEnd = failure.kind === CLOSED.kind && failure.message === CLOSED.message;
    return isOwnEnd ? this.closedError() : errorOf(failure);
  }

  /** From now on, aborting the signal ends all running calls and closes the handle. */
  private followSignal(signal: AbortSignal): void {
    // A signal may live longer than a handle that is never closed.
    const here = new WeakRef(this);
    this.#disobey = onAbort(signal, () => here.deref()?.abort(signal.reason));
  }

  private abort(reason: unknown): void {
    if (this.closed) return;
    this.aborted = { reason };
    this.native.cancelAll();
    void this.close();
  }

  /**
   * Call it before every sync read, with the number of entries if known; otherwise also after it,
   * with the number. The snapshot is released at the end of the turn.
   */
  hold(entries: number): void {
    if (this.#reads === 0) this.port.atTurnEnd(this);
    this.#reads += entries;
  }

  endTurn(): void {
    if (this.spent) this.#coldTurns = this.#reads < WARM_READS_MIN ? this.#coldTurns + 1 : 0;
    this.#reads = 0;
    this.spent = this.whyNoSync !== null;
    if (!this.closed) this.native.release();
    if (this.#turn === null) return;
    const turn = this.#turn;
    this.#waiting = 0;
    this.#turned = null;
    this.#turn = null;
    turn();
  }

  /** For a read that cannot wait for the next turn: releases the snapshot and renews the budget. */
  renewBudget(): void {
    if (!this.spent || this.whyNoSync !== null || this.closed) return;
    this.native.release();
    this.spent = false;
  }

  /**
   * For a read that was refused: the next turn, when that will be quicker than the asynchronous
   * lane, because many reads in a turn show that pages are warm. Null: take the lane. One turn of
   * few reads shows nothing: the process may have been interrupted.
   */
  nextTurn(): Promise<void> | null {
    if (this.whyNoSync !== null) return null;
    const cold = this.#reads < WARM_READS_MIN && this.#coldTurns > 0;
    if (!this.spent || cold || this.#waiting >= WAITING_MAX) return null;
    this.#waiting++;
    return (this.#turned ??= new NativePromise((resolve) => (this.#turn = resolve)));
  }

  /**
   * Handles a sync read without an answer: returns if another way should be tried, otherwise
   * throws.
   */
  refused(code: number): void {
    if (code === WOULD_BLOCK) this.spent = true;
    else if (code === ERROR) throw errorOf(readFailure(this.port.native.takeError()));
    else if (code === IS_CLOSED) throw this.closedError();
  }

  /** The batch that a read joins; it is sent at the end of the microtask. */
  joinRead(): ReadBatch {
    const open = this.#readBatch;
    if (open !== null && open.accepts) return open;
    this.flushReads();
    return (this.#readBatch = new ReadBatch(this));
  }

  leave(batch: object): void {
    if (this.#readBatch === batch) this.#readBatch = null;
    if (this.openWrites === batch) this.openWrites = null;
  }

  /**
   * Whether reads wait for the addon, or may: the request of a watch or feed crosses some microtasks after its read was
   * called, and then costs a read of its own if a commit came before it.
   */
  get awaitsReads(): boolean {
    return this.#readBatch !== null || this.readsUnderWay > 0 || this.streams > 0;
  }

  flushReads(): void {
    this.#readBatch?.flush();
  }

  /** Sends the batches so far, so that a call outside of batches comes after them. */
  flush(): void {
    this.#readBatch?.flush();
    this.openWrites?.flush();
  }

  /**
   * Closes the handle. What was called before is handed over first, and completed. Resolves when all
   * that its consumers settled is durable and, if this was its last handle, when the database is
   * closed; never rejects.
   */
  close(): Promise<void> {
    this.#disobey();
    this.flush();
    this.closed = true;
    return (this.closing = this.#end());
  }

  #end(): Promise<void> {
    const close = (): Promise<void> => new Closing(this.port).start(this.native);
    const { ending, acquiring, native } = this;
    if (ending.size === 0 && acquiring.size === 0) return close();
    const ended = NativePromise.all([...ending].map((end) => end()));
    if (acquiring.size === 0) {
      native.drain();
      return ended.then(close);
    }
    // The handle refuses writes from then on.
    const drained = NativePromise.all([...acquiring]).then(() => native.drain());
    return NativePromise.all([ended, drained]).then(close);
  }
}

/** The URL of a database without user, password and parameters. */
function publicName(url: string | undefined): string | undefined {
  return url === undefined ? undefined : withoutLogin(url).replace(/[?#].*$/s, "");
}

/** Waits for the event of a closed database. */
class Closing implements Receiver {
  readonly #port: Port;
  readonly #id: number;
  #resolve!: () => void;

  constructor(port: Port) {
    this.#port = port;
    this.#id = port.register(this);
  }

  start(native: NativeHandle): Promise<void> {
    this.#port.pending();
    this.#port.closeBeforeExit();
    const closed = new NativePromise<void>((resolve) => (this.#resolve = resolve));
    native.close(this.#id);
    return closed;
  }

  receive(): void {
    this.#port.forget(this.#id);
    this.#port.settled();
    this.#resolve();
  }
}

/** Waits for the event that reports the result of opening. */
class Opening implements Receiver {
  readonly id: number;
  readonly done: Promise<void>;
  failure: Failure | null = null;
  /** What the database lacks: the numbers of capabilities, each with the reason. */
  lacks: ReadonlyMap<number, string> = new Map();
  readonly #port: Port;
  #resolve!: () => void;

  constructor(port: Port) {
    this.#port = port;
    this.id = port.register(this);
    this.done = new NativePromise((resolve) => (this.#resolve = resolve));
    port.pending();
  }

  start(start: (id: number) => NativeHandle): NativeHandle {
    try {
      return start(this.id);
    } catch (error) {
      this.#end();
      throw errorOf(bugOf(error));
    }
  }

  #end(): void {
    this.#port.forget(this.id);
    this.#port.settled();
  }

  receive(kind: number, data: Buffer | null): void {
    this.#end();
    if (kind !== OPENED) this.failure = data === null ? CLOSED : readFailure(data);
    else if (data !== null) this.lacks = readLacks(data);
    this.#resolve();
  }
}

/** The data of OPENED. */
function readLacks(data: Buffer): Map<number, string> {
  const lacks = new Map<number, string>();
  for (let at = 0; at < data.length; ) {
    const textAt = at + 5;
    const end = textAt + readU32(data, at + 1);
    lacks.set(data[at], data.toString("utf8", textAt, end));
    at = end;
  }
  return lacks;
}
