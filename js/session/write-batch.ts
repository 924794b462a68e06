// Duty: the writes of one microtask: their records in call order, one call of the addon, one event.
// Each caller takes its own outcome.
// Invariant: a record that fails to encode leaves nothing behind, and a write made by a getter
// while a record is being encoded goes into a batch of its own, behind this one.

import { keepUuids } from "../codec/uuid.js";
import { Writer } from "../codec/writer.js";
import {
  CLOSED,
  type Failure,
  bugOf,
  closedError,
  failureBytes,
  readFailure,
} from "../model/errors.js";
import { readStamp, readU32 } from "../native/frame.js";
import {
  CHECKS_FAILED,
  CHECK_FAILED,
  COMMITTED,
  COMMITTED_RETURNING,
  COMMITTED_WITH,
  NOT_UNIQUE,
  OP_END,
  SETTLED,
  STAMP_BYTES,
} from "../native/contract.js";
import { forgetPatches } from "../records/patches.js";
import { type Results, readResults, readUuids } from "./results.js";
import { Violations, notUnique } from "./violations.js";
import { assign } from "../model/define.js";
import { NativePromise } from "../model/native-promise.js";
import type { InlineCommits, Place } from "../native/inline-commits.js";
import type { Receiver } from "../native/port.js";
import type { ProgramOrder, Ticket } from "./program-order.js";
import type { BatchOwner } from "./batch-owner.js";
import type {
  KvAtomicResult,
  KvCalculated,
  KvCommitRefusal,
  KvCommitResult,
  KvEnqueueResult,
} from "../model/types.js";

/**
 * A frame of this size is submitted at once, so that its commit overlaps with the encoding of the
 * next.
 */
const FRAME_BYTES_MAX = 256 * 1024;
/** A writer larger than this is not kept for the next batch. */
const SPARE_BYTES_MAX = 1024 * 1024;
/** Writers that are kept: those of batches that are filled while others are under way. */
const SPARE_WRITERS_MAX = 4;

/** The indexes of the checks that failed, among the checks of their write. */
type Refused = number[];

const spares: Writer[] = [];

function keepSpare(writer: Writer | null): void {
  if (writer === null || writer.buf.length > SPARE_BYTES_MAX) return;
  if (spares.length < SPARE_WRITERS_MAX) spares.push(writer);
}

/** The handle that the writes are called on. */
interface Owner extends BatchOwner {
  readonly order: ProgramOrder;
  /** As that of the writer. */
  readonly packs: boolean;
  /** The batch that a write may join. */
  openWrites: WriteBatch | null;
  /** Commits on this thread; null if there are none. */
  readonly inline: InlineCommits | null;
  /** Whether reads wait for the addon, or may. */
  readonly awaitsReads: boolean;
}

export class WriteBatch implements Receiver {
  readonly writer: Writer;
  /** Resolves when the outcomes have arrived. Never rejects. */
  readonly settled: Promise<void>;
  /** A record is being encoded. */
  busy = false;
  #mark = 0;
  #count = 0;
  /** The records of the writes. */
  #records = 0;
  #crossed = false;
  #outcomes: (string | Refused | Violations | Failure)[] = [];
  /** Results of writes that have any, by the number of the outcome. */
  #results: Map<number, Results> | null = null;
  #id = 0;
  #resolve!: () => void;
  /** Created by the first write. */
  #ticket: Ticket | null = null;
  /** The trace context of its first write. */
  readonly #context: string;
  readonly #owner: Owner;
  /** An earlier batch that must be submitted first: it was busy when this one was started. */
  readonly #after: WriteBatch | null;

  /** The batch that a write joins; it is sent at the end of the microtask. */
  static join(owner: Owner): WriteBatch {
    const open = owner.openWrites;
    if (open !== null && open.accepts) return open;
    // A batch that is being encoded further up the stack is sent when that is done.
    const busy = open !== null && open.busy ? open : null;
    if (busy === null) open?.flush();
    return (owner.openWrites = new WriteBatch(owner, busy));
  }

  constructor(owner: Owner, after: WriteBatch | null) {
    this.#owner = owner;
    this.#context = owner.context;
    this.#after = after;
    this.writer = spares.pop() ?? new Writer();
    this.writer.pos = 0;
    this.writer.resolves = true;
    this.writer.packs = owner.packs;
    this.settled = new NativePromise((resolve) => (this.#resolve = resolve));
    void NativePromise.resolve().then(() => this.#flushOrWait());
  }

  /** Whether another write may join. */
  get accepts(): boolean {
    return !this.busy && !this.#crossed && (this.writer.pos < FRAME_BYTES_MAX || this.waits);
  }

  /** Whether an earlier batch has not been submitted yet, so that this one must wait. */
  get waits(): boolean {
    return this.#after !== null && !this.#after.#crossed;
  }

  /** Starts a write; its records go to {@link writer}. Returns where it starts. */
  begin(): number {
    this.busy = true;
    return (this.#mark = this.writer.pos);
  }

  /** Discards the records since {@link begin}. */
  abort(): void {
    this.busy = false;
    this.writer.pos = this.#mark;
    this.writer.fills = null;
    forgetPatches(this.writer);
  }

  /** Ends the write, which has so many records. Returns the number of its outcome. */
  commit(records = 1): number {
    // Only close() submits a busy batch: a getter of the value called it.
    if (this.#crossed) throw closedError();
    this.writer.u8(OP_END);
    this.busy = false;
    this.#ticket ??= this.#owner.order.begin(this.writer, this.settled);
    this.#ticket.frameEnd = this.writer.pos;
    this.#records += records;
    return this.#count++;
  }

  /** The number of the outcome of the write that was committed last. */
  get last(): number {
    return this.#count - 1;
  }

  /** Calls the addon now. No write can join any more. */
  flush(): void {
    if (this.#crossed) return;
    if (this.waits) this.#after!.flush();
    this.#crossed = true;
    const owner = this.#owner;
    const { writer } = this;
    owner.leave(this);
    if (this.#count > 0) {
      owner.port.pending();
      this.#id = owner.port.register(this);
      let answered: Buffer | null;
      try {
        answered = this.#submit();
      } catch (error) {
        this.#fail(bugOf(error));
        return;
      }
      // A busy batch still uses its writer.
      if (!this.busy) keepSpare(owner.order.cross(this.#ticket!));
      else owner.order.cross(this.#ticket!);
      if (answered !== null) this.receive(SETTLED, answered);
    }
    if (this.#ticket === null && !this.busy) keepSpare(writer);
  }

  /** Calls the addon at the end of the microtask, or of the turn if that gives the commit its place on this thread. */
  #flushOrWait(): void {
    if (this.#crossed) return;
    if (this.#place() === "next turn") this.#owner.inline!.inNextTurn(() => this.flush());
    else this.flush();
  }

  /** Where the writes so far commit. */
  #place(): Place {
    const { inline, order, awaitsReads } = this.#owner;
    if (inline === null || this.busy) return "writer thread";
    // An earlier call must not be answered after this one.
    const first = order.underWay === 1 && order.held === 0 && !awaitsReads;
    return first ? inline.placeFor(this.#records, this.writer.pos) : "writer thread";
  }

  /** Hands the writes to the addon. Returns the outcomes, if they are known. */
  #submit(): Buffer | null {
    const { native, port, inline } = this.#owner;
    const { buf, pos } = this.writer;
    const end = this.busy ? this.#mark : pos;
    if (this.#place() !== "here") {
      if (this.#context !== "") native.trace(this.#context);
      native.write(this.#id, this.#count, buf, end);
      if (this.#context !== "") native.trace("");
      return null;
    }
    const scratch = port.useScratch();
    const length = inline!.block((mostUs) =>
      native.writeImmediately(this.#id, this.#count, buf, end, mostUs),
    );
    return length < 0 ? null : scratch;
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind !== SETTLED || data === null) {
      this.#fail(data === null ? CLOSED : readFailure(data));
      return;
    }
    let at = 0;
    for (let i = 0; i < this.#count; i++) {
      const status = data[at++];
      if (status === COMMITTED) {
        this.#outcomes.push(readStamp(data, at));
        at += STAMP_BYTES;
      } else if (status === COMMITTED_WITH) {
        this.#outcomes.push(readStamp(data, at));
        at = this.#tell(i, readUuids(data, at + STAMP_BYTES));
      } else if (status === COMMITTED_RETURNING) {
        this.#outcomes.push(readStamp(data, at));
        at = this.#tell(i, readResults(data, at + STAMP_BYTES));
      } else if (status === CHECK_FAILED) {
        this.#outcomes.push([]);
      } else if (status === CHECKS_FAILED) {
        const failed = readFailed(data, at);
        this.#outcomes.push(failed);
        at += 4 + 4 * failed.length;
      } else if (status === NOT_UNIQUE) {
        const violations = Violations.read(data, at);
        this.#outcomes.push(violations);
        at = violations.end;
      } else {
        this.#outcomes.push(readFailure(data, at));
        at += failureBytes(data, at);
      }
    }
    this.#settle();
  }

  /** Keeps the results of a write. Returns the position after them. */
  #tell(index: number, results: Results): number {
    (this.#results ??= new Map()).set(index, results);
    return results.end;
  }

  #fail(failure: Failure): void {
    this.#outcomes = new Array(this.#count).fill(failure);
    this.#settle();
  }

  #settle(): void {
    const writer = this.#owner.order.end(this.#ticket!);
    if (!this.busy) keepSpare(writer);
    this.#owner.port.forget(this.#id);
    this.#owner.port.settled();
    this.#resolve();
  }

  /** The result of write `index`. Throws its error if it failed. */
  result(index: number): KvAtomicResult | KvCommitRefusal {
    const versionstamp = this.#outcome(index);
    if (versionstamp instanceof Violations) {
      return { ok: false, failed: [], violations: versionstamp.all };
    }
    if (typeof versionstamp !== "string") return { ok: false, failed: versionstamp };
    const result: KvAtomicResult = { ok: true, versionstamp };
    const results = this.#results?.get(index);
    if (results === undefined) return result;
    if (results.uuids !== undefined) keepUuids(result, results.uuids);
    if (results.values !== undefined) assign(result, "values", results.values as KvCalculated[]);
    if (results.messages !== undefined) assign(result, "messages", results.messages);
    return result;
  }

  /** The result of write `index`, which has no checks. Throws its error, also if it would break unique indexes. */
  committed(index: number): KvCommitResult {
    const outcome = this.#outcomes[index];
    if (outcome instanceof Violations) throw notUnique(outcome.all);
    return this.result(index) as KvCommitResult;
  }

  /** The result of write `index`, which is one message. Throws its error if it failed. */
  enqueued(index: number): KvEnqueueResult {
    const versionstamp = this.#outcome(index) as string;
    const results = this.#results?.get(index);
    const { id = null, deduplicated = false } = results?.messages?.[0] ?? {};
    const result: KvEnqueueResult = { ok: true, versionstamp, id, deduplicated };
    if (results?.uuids !== undefined) keepUuids(result, results.uuids);
    return result;
  }

  /** Throws the error of write `index`, if it failed. */
  requireCommitted(index: number): void {
    void this.#outcome(index);
  }

  /** The versionstamp of write `index`, or the checks that failed. Throws its error if it failed. */
  #outcome(index: number): string | Refused | Violations {
    const outcome = this.#outcomes[index];
    if (typeof outcome === "string" || Array.isArray(outcome)) return outcome;
    if (outcome instanceof Violations) return outcome;
    throw this.#owner.errorOf(outcome);
  }
}

/** Reads the indexes of checks at `at`: their count, then each. */
function readFailed(data: Buffer, at: number): Refused {
  return Array.from({ length: readU32(data, at) }, (_, i) => readU32(data, at + 4 + 4 * i));
}
