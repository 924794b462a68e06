// Duty: the dead letters of one queue: list, get, requeue, requeueAll, delete, purge.

import { call } from "../session/call.js";
import { decodeValue } from "../codec/value/decode.js";
import { valueStart } from "../codec/message-context.js";
import { ENCODING_CBOR } from "../codec/value/tags.js";
import { Writer } from "../codec/writer.js";
import { putText, readU32 } from "../native/frame.js";
import {
  CALL_DEAD_DELETE,
  CALL_DEAD_GET,
  CALL_DEAD_LIST,
  CALL_DEAD_PURGE,
  CALL_DEAD_REQUEUE,
  CALL_DEAD_REQUEUE_ALL,
} from "../native/contract.js";
import { checkOptions } from "../arguments/check.js";
import { checkDeadList, checkId, checkPurge, cursorOf } from "./queue-options.js";
import type { Session } from "../session/session.js";
import { abortable, signalled } from "../arguments/signal.js";

export interface DeadMessage {
  id: string;
  value: any;
  error: { name: string; message: string };
  attempts: number;
  enqueuedAt: Date;
  firstAttemptAt: Date;
  lastAttemptAt: Date;
  diedAt: Date;
}

/** Bytes of the head of a list: the count, and whether there is more. */
const LIST_HEAD_BYTES = 5;

export class DeadLetters {
  readonly #session: Session;
  readonly #queue: string;

  constructor(session: Session, queue: string) {
    this.#session = session;
    this.#queue = queue;
  }

  list(options?: unknown): Promise<{ messages: DeadMessage[]; cursor: string | null }> {
    return abortable("kv.queue().dead.list", options, (rest) => this.#list(rest));
  }

  async #list(options: unknown): Promise<{ messages: DeadMessage[]; cursor: string | null }> {
    const { limit, after } = checkDeadList(options, this.#session.port.bounds);
    const frame = this.#frame();
    frame.u32(limit);
    for (const number of after) frame.f64(number);
    const answer = await call(this.#session, CALL_DEAD_LIST, frame);
    const messages: DeadMessage[] = [];
    let at = LIST_HEAD_BYTES;
    let cursor = null;
    for (let left = readU32(answer, 0); left > 0; left--) {
      const { message, end } = readDead(answer, at);
      messages.push(message);
      at = end;
      cursor = cursorOf(message.diedAt.getTime(), Number(message.id));
    }
    return { messages, cursor: answer[4] === 1 ? cursor : null };
  }

  async get(id: string, options?: unknown): Promise<DeadMessage | null> {
    const answer = await this.#about("get", CALL_DEAD_GET, id, options);
    return answer.length === 0 ? null : readDead(answer, 0).message;
  }

  async requeue(id: string, options?: unknown): Promise<boolean> {
    return readU32(await this.#about("requeue", CALL_DEAD_REQUEUE, id, options), 0) > 0;
  }

  async requeueAll(options?: unknown): Promise<number> {
    const method = "kv.queue().dead.requeueAll";
    return await abortable(method, options, (rest, signal) => this.#requeueAll(rest, signal));
  }

  async #requeueAll(options: unknown, signal: AbortSignal | undefined): Promise<number> {
    checkOptions("kv.queue().dead.requeueAll", options, ["signal"]);
    const step = this.#session.port.bounds.deadRequeueRowsMax;
    // That of the first step, by the clock of the database.
    let before = 0;
    let requeued = 0;
    for (;;) {
      const frame = this.#frame();
      frame.f64(before);
      const answer = await call(this.#session, CALL_DEAD_REQUEUE_ALL, frame);
      const count = readU32(answer, 0);
      before = answer.readDoubleLE(4);
      requeued += count;
      if (count < step || signal?.aborted) return requeued;
    }
  }

  async delete(id: string, options?: unknown): Promise<boolean> {
    return readU32(await this.#about("delete", CALL_DEAD_DELETE, id, options), 0) > 0;
  }

  async purge(options?: unknown): Promise<number> {
    const method = "kv.queue().dead.purge";
    return await abortable(method, options, (rest, signal) => this.#purge(rest, signal));
  }

  async #purge(options: unknown, signal: AbortSignal | undefined): Promise<number> {
    const before = checkPurge(options, this.#session.now);
    const step = this.#session.port.bounds.deadPurgeRowsMax;
    let purged = 0;
    for (;;) {
      const frame = this.#frame();
      frame.f64(before);
      const count = readU32(await call(this.#session, CALL_DEAD_PURGE, frame), 0);
      purged += count;
      if (count < step || signal?.aborted) return purged;
    }
  }

  #about(name: string, command: number, id: unknown, options: unknown): Promise<Buffer> {
    const method = `kv.queue().dead.${name}`;
    const number = checkId(method, id);
    const frame = this.#frame();
    frame.f64(number);
    return signalled(method, options, () => call(this.#session, command, frame));
  }

  #frame(): Writer {
    const frame = new Writer();
    putText(frame, this.#queue);
    return frame;
  }
}

/** f64 id, four times, u32 attempts; then the texts and the value. */
function readDead(data: Buffer, at: number): { message: DeadMessage; end: number } {
  const time = (index: number) => new Date(data.readDoubleLE(at + 8 * index));
  let next = at + 44;
  const sized = (): [number, number] => {
    const start = next + 4;
    next = start + readU32(data, next);
    return [start, next];
  };
  const name = data.toString("utf8", ...sized());
  const message = data.toString("utf8", ...sized());
  const [start, end] = sized();
  const value = decodeValue(ENCODING_CBOR, data, valueStart(data, start, end), end);
  return {
    message: {
      id: String(data.readDoubleLE(at)),
      value,
      error: { name, message },
      attempts: readU32(data, at + 40),
      enqueuedAt: time(1),
      firstAttemptAt: time(2),
      lastAttemptAt: time(3),
      diedAt: time(4),
    },
    end: next,
  };
}
