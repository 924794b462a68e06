// Duty: kv.queue(name): enqueue, listen, receive, peek, delete, stats, its schedules and its dead letters.

import { callBehindWrites } from "../session/call.js";
import { ownContext } from "../codec/message-context.js";
import { Writer } from "../codec/writer.js";
import { RECEIVES } from "../instruments/channels.js";
import { DeadLetters } from "./dead-letters.js";
import { HandlerFailures } from "./handler-failures.js";
import { putText } from "../native/frame.js";
import { type KvMessage, receive } from "./message.js";
import { CALL_DELETE_MESSAGE, CALL_QUEUE_STATS } from "../native/contract.js";
import {
  checkId,
  checkListen,
  checkNamedEnqueue,
  checkPeek,
  checkQueueDefaults,
  checkQueueName,
} from "./queue-options.js";
import { Listener } from "./listener.js";
import { type PeekedPage, peek } from "./peek.js";
import { HandledMessage, withinTime } from "./handler-signal.js";
import { infoOf } from "./raw-message.js";
import { Schedules, type SchedulesPage } from "./schedules.js";
import type { Session } from "../session/session.js";
import { abortable, signalled } from "../arguments/signal.js";
import type { KvEnqueueResult } from "../model/types.js";
import { send } from "../write/writes.js";

type Handler = (value: any, message: any) => unknown;

export interface QueueStats {
  pending: number;
  delayed: number;
  processing: number;
  dead: number;
  total: number;
}

/** The answer of DELETE_MESSAGE for a message that is deleted. */
const DELETED = 1;

export class KvQueue {
  readonly name: string;
  readonly dead: DeadLetters;
  readonly #session: Session;
  readonly #deadRetention: number | undefined;
  readonly #schedules: Schedules;

  constructor(session: Session, name: unknown, options: unknown) {
    session.requireOpen();
    const { bounds } = session.port;
    this.name = checkQueueName(name, bounds);
    this.#deadRetention = checkQueueDefaults(options, bounds);
    this.#session = session;
    this.dead = new DeadLetters(session, this.name);
    this.#schedules = new Schedules(session, this.name);
  }

  enqueue(value: unknown, options?: unknown): Promise<KvEnqueueResult> {
    const method = "kv.queue().enqueue";
    return abortable(method, options, (rest) => this.#enqueue(value, rest, method));
  }

  async #enqueue(value: unknown, options: unknown, method: string): Promise<KvEnqueueResult> {
    const session = this.#session;
    const { limits, port, now } = session;
    const checked = checkNamedEnqueue(
      method,
      this.name,
      options,
      limits,
      port.bounds,
      now,
      this.#deadRetention,
    );
    return await send(session, value, checked);
  }

  async listen(handler: Handler, options?: unknown): Promise<void> {
    const session = this.#session;
    const { bounds } = session.port;
    const checked = checkListen(handler, options, bounds);
    const { credits, lockMs, drainMs, timeoutMs, signal, onError } = checked;
    session.requireOpen();
    if (signal?.aborted) return;
    const failures = new HandlerFailures(this.name, onError);
    const listener = new Listener(session, {
      queue: this.name,
      credits,
      lockMs,
      drainMs,
      closeDrains: true,
      keepsReasons: true,
      async handle(raw, lock, stop) {
        const message = new HandledMessage(lock, infoOf(raw), stop);
        const own = ownContext(raw.data, raw.start, raw.end);
        try {
          const longest = own.timeoutMs ?? timeoutMs;
          await withinTime(() => handler(message.value, message), longest, stop);
        } catch (error) {
          failures.report(error, message);
          throw error;
        }
      },
    });
    await listener.until(signal);
  }

  receive(options?: unknown): Promise<KvMessage | null> {
    const session = this.#session;
    if (!RECEIVES.isObserved) return receive(session, this.name, options);
    const { database } = session;
    const headers: Record<string, string> = {};
    const event = { operation: "receive", database, synchronous: false, queue: this.name, headers };
    return RECEIVES.trace(event, receive, session, this.name, options, headers);
  }

  peek(options?: unknown): Promise<PeekedPage> {
    return abortable("kv.queue().peek", options, (rest, signal) => this.#peek(rest, signal));
  }

  stats(options?: unknown): Promise<QueueStats> {
    return signalled("kv.queue().stats", options, (signal) => this.#stats(signal));
  }

  schedule(name: string, timing: unknown, value: unknown, options?: unknown): Promise<boolean> {
    return this.#schedules.set(name, timing, value, options, this.#deadRetention);
  }

  unschedule(name: string, options?: unknown): Promise<boolean> {
    return this.#schedules.remove(name, options);
  }

  schedules(options?: unknown): Promise<SchedulesPage> {
    return this.#schedules.list(options);
  }

  delete(id: string, options?: unknown): Promise<boolean> {
    const method = "kv.queue().delete";
    return signalled(method, options, (signal) => this.#delete(checkId(method, id), signal));
  }

  async #delete(id: number, signal: AbortSignal | undefined): Promise<boolean> {
    const frame = new Writer();
    putText(frame, this.name);
    frame.f64(id);
    const answer = await callBehindWrites(this.#session, CALL_DELETE_MESSAGE, frame, signal);
    return answer[0] === DELETED;
  }

  async #peek(options: unknown, signal: AbortSignal | undefined): Promise<PeekedPage> {
    return await peek(
      this.#session,
      this.name,
      checkPeek(options, this.#session.port.bounds),
      signal,
    );
  }

  async #stats(signal: AbortSignal | undefined): Promise<QueueStats> {
    const frame = new Writer();
    putText(frame, this.name);
    const answer = await callBehindWrites(this.#session, CALL_QUEUE_STATS, frame, signal);
    const [pending, delayed, processing, dead] = [0, 8, 16, 24].map((at) =>
      answer.readDoubleLE(at),
    );
    return { pending, delayed, processing, dead, total: pending + delayed + processing + dead };
  }
}
