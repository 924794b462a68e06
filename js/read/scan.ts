// Duty: scans: lists that select entries in Rust, or need more or fewer parts of them than a plain
// list; step by step, on this thread while their steps are brief, all others on the asynchronous lane.

import { call } from "../session/call.js";
import { decodeValue } from "../codec/value/decode.js";
import { Writer, copyOf } from "../codec/writer.js";
import { readStamp, readU32 } from "../native/frame.js";
import {
  CALL_SCAN,
  POINT_HEAD_BYTES,
  STAMP_BYTES,
  STEP_DONE,
  STEP_INDEXED,
} from "../native/contract.js";
import { type ScanOptions, putScan } from "./list-options.js";
import type { Bounds } from "./range.js";
import type { Session } from "../session/session.js";
import type { KvEntryKey } from "../model/types.js";

/** The requested parts of an entry. */
export interface ScannedEntry {
  key: KvEntryKey;
  value?: unknown;
  versionstamp: string;
  expireAt?: Date | null;
  /** It was not selected. */
  passed?: true;
}

/** The result of a step: rows from `at` on in `page`. */
export interface ScanStep {
  readonly page: Buffer;
  readonly at: number;
  readonly rows: number;
  /** It was the last step. */
  readonly done: boolean;
  /** The bound where it began: the first key; in reverse, the end. */
  readonly from: Buffer;
  /** Value indexes have found its entries. */
  readonly indexed: boolean;
}

/** Bytes of a step's answer before its bound: its flags, the time, the bound's length. */
export const STEP_HEAD_BYTES = 1 + 8 + 4;

export class Scan {
  readonly options: ScanOptions;
  /** Called with each step before its rows are yielded. */
  began: ((step: ScanStep) => void) | null = null;
  readonly #session: Session;
  readonly #reverse: boolean;
  readonly #signal: AbortSignal | undefined;
  /** The command of its steps. */
  readonly #kind: number;
  /** The flag for the consistency that they must keep. */
  readonly #freshness: number;
  /** The time of `$now`, from the first step on; NaN before. */
  #now = Number.NaN;
  /** False once a step needed more than a brief one reads. */
  #mayBeBrief: boolean;

  constructor(
    session: Session,
    options: ScanOptions,
    reverse: boolean,
    signal: AbortSignal | undefined,
    freshness = 0,
    command = CALL_SCAN,
  ) {
    this.#kind = command;
    this.#freshness = freshness;
    this.#session = session;
    this.#signal = signal;
    this.options = options;
    this.#reverse = reverse;
    // One that shows what `where` does not select reads the whole range.
    this.#mayBeBrief = options.where === null || !options.passed || options.indexed;
  }

  get now(): number {
    return this.#now;
  }

  /** The rows to ask for, when a page would have so many. */
  rowsOf(rows: number): number {
    return rows;
  }

  /** The end of a row whose value ends at `end`. */
  behind(_page: Buffer, end: number): number {
    return this.options.withExpiry ? end + END_BYTES : end;
  }

  /** The cursor behind the row that was taken last, where it is not that of its key. */
  get cursor(): string | null {
    return null;
  }

  /**
   * As {@link step}, on this thread; null: call that instead. Whether it may be synchronous at all is checked by the
   * caller.
   */
  stepNow(bounds: Bounds, limit: number): ScanStep | null {
    if (!this.#mayBeBrief || this.#signal?.aborted) return null;
    const session = this.#session;
    const writer = session.port.begin();
    this.putRequest(writer, bounds, limit);
    const { buf, pos } = writer;
    if (!session.port.fits) return null;
    session.hold(1);
    const answer = session.port.native.step(session.lane, pos, this.#kind);
    if (answer >= 0) {
      // The scratch is that of the next request.
      const step = this.stepOf(copyOf(buf, pos, pos + answer), bounds);
      session.hold(step.rows);
      return step;
    }
    session.refused(answer);
    if (!session.spent) this.#mayBeBrief = false;
    return null;
  }

  /** Reads up to `limit` rows, and moves the bound behind the rows that were visited. */
  async step(bounds: Bounds, limit: number): Promise<ScanStep> {
    const frame = new Writer(256);
    this.putRequest(frame, bounds, limit);
    const consistency = this.#freshness === 0 ? "strong" : "eventual";
    const command = this.#session.readCommand(this.#kind, consistency);
    return this.stepOf(await call(this.#session, command, frame, this.#signal), bounds);
  }

  protected putRequest(frame: Writer, bounds: Bounds, limit: number): void {
    putScan(frame, bounds, this.options, this.#reverse, limit, this.#now);
  }

  protected stepOf(page: Buffer, bounds: Bounds): ScanStep {
    this.#now = page.readDoubleLE(1);
    const boundEnd = STEP_HEAD_BYTES + readU32(page, STEP_HEAD_BYTES - 4);
    const done = (page[0] & STEP_DONE) !== 0;
    const from = this.#reverse ? bounds.end : bounds.start;
    if (!done) {
      const bound = Buffer.from(page.subarray(STEP_HEAD_BYTES, boundEnd));
      if (this.#reverse) bounds.end = bound;
      else bounds.start = bound;
    }
    const indexed = (page[0] & STEP_INDEXED) !== 0;
    return { page, at: boundEnd + 4, rows: readU32(page, boundEnd), done, from, indexed };
  }

  /** Whether the next step may be one of {@link stepNow}. */
  get mayBeBrief(): boolean {
    return this.#mayBeBrief;
  }
}

/** The end of the row at `at`, without an expiry after it. */
export function rowEnd(page: Buffer, at: number): number {
  const head = at + 4 + readU32(page, at) + POINT_HEAD_BYTES;
  return head + 4 + readU32(page, head);
}

/** The entry of a row whose key ends at `keyEnd`, with the requested parts. */
export function readEntry(
  page: Buffer,
  keyEnd: number,
  key: KvEntryKey,
  { keysOnly, withExpiry, passed }: ScanOptions,
): ScannedEntry {
  const versionstamp = readStamp(page, keyEnd);
  if (passed && page[keyEnd + STAMP_BYTES] === NO_VALUE) return { key, versionstamp, passed };
  const start = keyEnd + POINT_HEAD_BYTES + 4;
  const end = start + readU32(page, keyEnd + POINT_HEAD_BYTES);
  // Each shape is a literal: assembling entries from parts costs twice as much.
  if (keysOnly) {
    return withExpiry ? { key, versionstamp, expireAt: readEnd(page, end) } : { key, versionstamp };
  }
  const value = decodeValue(page[keyEnd + STAMP_BYTES], page, start, end);
  return withExpiry
    ? { key, value, versionstamp, expireAt: readEnd(page, end) }
    : { key, value, versionstamp };
}

/** The time at `at`, null for none. */
export function readEnd(page: Buffer, at: number): Date | null {
  const ms = page.readDoubleLE(at);
  return Number.isNaN(ms) ? null : new Date(ms);
}

/** The encoding byte of a row that was not selected. */
const NO_VALUE = 0;

/** Bytes of the expiry behind a row. */
export const END_BYTES = 8;
