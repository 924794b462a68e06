// Duty: the reads of one microtask on the asynchronous lane: one call of the addon, one event. Each
// caller decodes its own answer from the bytes of the event.

import { Writer } from "../codec/writer.js";
import { CLOSED, type Failure, bugOf, failureBytes, readFailure } from "../model/errors.js";
import { putBytes, readU32 } from "../native/frame.js";
import {
  ANSWER_FAILED,
  POINT,
  POINT_HEAD_BYTES,
  RANGE_HEAD_BYTES,
  READ,
} from "../native/contract.js";
import { NativePromise } from "../model/native-promise.js";
import type { Receiver } from "../native/port.js";
import type { BatchOwner } from "./batch-owner.js";

/** Most requests of one call, so that its event stays in the tens of megabytes. */
const REQUESTS_MAX = 1000;
/** A writer larger than this is not kept for the next batch. */
const SPARE_BYTES_MAX = 1024 * 1024;

let spare: Writer | null = null;

export class ReadBatch implements Receiver {
  /** Resolves when the answers have arrived or the call has failed. Never rejects. */
  readonly arrived: Promise<void>;
  /** The event's bytes. */
  data!: Buffer;
  #count = 0;
  #crossed = false;
  #failure: Failure | null = null;
  #starts: number[] = [];
  #writer: Writer;
  #id = 0;
  #resolve!: () => void;
  readonly #owner: BatchOwner;
  /** The trace context of its first read. */
  readonly #context: string;

  constructor(owner: BatchOwner) {
    this.#owner = owner;
    this.#context = owner.context;
    this.#writer = spare ?? new Writer();
    this.#writer.pos = 0;
    spare = null;
    this.arrived = new NativePromise((resolve) => (this.#resolve = resolve));
    void NativePromise.resolve().then(() => this.flush());
  }

  get accepts(): boolean {
    return !this.#crossed && this.#count < REQUESTS_MAX;
  }

  /**
   * Asks for the entry of the key `from[start..end)`; `flags` are those for a remote database.
   * Returns the number of its answer.
   */
  point(from: Uint8Array, start: number, end: number, flags = 0): number {
    const writer = this.#writer;
    writer.u8(POINT | flags);
    writer.u32(1);
    writer.u32(end - start);
    putBytes(writer, from, start, end);
    writer.u32(0);
    return this.#count++;
  }

  /** Adds the range request `request[0..length)`. Returns the number of its answer. */
  range(request: Uint8Array, length: number): number {
    putBytes(this.#writer, request, 0, length);
    return this.#count++;
  }

  /** Calls the addon now. No request can join any more. */
  flush(): void {
    if (this.#crossed) return;
    this.#crossed = true;
    const owner = this.#owner;
    const writer = this.#writer;
    owner.leave(this);
    owner.readsUnderWay++;
    owner.port.pending();
    this.#id = owner.port.register(this);
    try {
      if (this.#context !== "") owner.native.trace(this.#context);
      owner.native.read(this.#id, this.#count, writer.buf, writer.pos);
      if (this.#context !== "") owner.native.trace("");
    } catch (error) {
      this.#settle(bugOf(error));
    }
    if (writer.buf.length <= SPARE_BYTES_MAX) spare = writer;
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind !== READ || data === null) {
      this.#settle(data === null ? CLOSED : readFailure(data));
      return;
    }
    this.data = data;
    let at = 0;
    for (let i = 0; i < this.#count; i++) {
      this.#starts.push(at);
      at = skipAnswer(data, at);
    }
    this.#settle(null);
  }

  #settle(failure: Failure | null): void {
    this.#failure = failure;
    this.#owner.port.forget(this.#id);
    this.#owner.port.settled();
    this.#owner.readsUnderWay--;
    this.#resolve();
  }

  /** The start of answer `index` in {@link data}, once arrived. Throws if that read failed. */
  start(index: number): number {
    if (this.#failure !== null) throw this.#owner.errorOf(this.#failure);
    const at = this.#starts[index];
    if (hasFailed(this.data, at)) {
      throw this.#owner.errorOf(readFailure(this.data, at + RANGE_HEAD_BYTES));
    }
    return at;
  }
}

function hasFailed(data: Buffer, at: number): boolean {
  return data[at + RANGE_HEAD_BYTES - 1] === ANSWER_FAILED;
}

/** The start of the answer after the one at `at`. */
export function skipAnswer(data: Buffer, at: number): number {
  if (hasFailed(data, at)) return at + RANGE_HEAD_BYTES + failureBytes(data, at + RANGE_HEAD_BYTES);
  const rows = readU32(data, at);
  at += RANGE_HEAD_BYTES;
  for (let row = 0; row < rows; row++) {
    at += 4 + readU32(data, at) + POINT_HEAD_BYTES;
    at += 4 + readU32(data, at);
  }
  return at;
}
