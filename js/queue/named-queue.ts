// Duty: kv.queue(name): enqueue, listen, receive, peek, delete, stats, its schedules and its dead letters.

import { callBehindWrites } from "../session/call.js";
import { Writer } from "../codec/writer.js";
import { RECEIVES } from "../instruments/channels.js";
import { DeadLetters } from "./dead-letters.js";
import { type GroupsPage, type QueueLimits, readGroups, setLimits } from "./groups.js";
import { HandlerFailures } from "./handler-failures.js";
import { putText, readU32 } from "../native/frame.js";
import { type KvMessage, receive } from "./message.js";
import {
  CALL_CANCEL_MESSAGE,
  CALL_DELETE_MESSAGE,
  CALL_DRAIN_QUEUE,
  CALL_PAUSE_QUEUE,
  CALL_QUEUE_STATS,
} from "../native/contract.js";
import {
  Cancellations,
  type JobEvent,
  type JobResult,
  complete,
  events,
  jobOf,
  progressOf,
  result,
  tellStarted,
} from "./jobs.js";
import {
  type QueueDefaults,
  checkDrainOptions,
  checkEvents,
  checkGroupsPage,
  checkId,
  checkLimits,
  checkListen,
  checkNamedEnqueue,
  checkPause,
  checkPeek,
  checkQueueDefaults,
  checkQueueName,
  checkResult,
} from "./queue-options.js";
import { Listener } from "./listener.js";
import { type PeekedPage, peek } from "./peek.js";
import { HandledMessage, cancelled, lockLost, withinTime } from "./handler-signal.js";
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
  paused: boolean;
}

/** The answer of DELETE_MESSAGE for a message that is deleted. */
const DELETED = 1;

export class KvQueue {
  readonly name: string;
  readonly dead: DeadLetters;
  readonly #session: Session;
  readonly #defaults: QueueDefaults;
  readonly #schedules: Schedules;

  constructor(session: Session, name: unknown, options: unknown) {
    session.requireOpen();
    const { bounds } = session.port;
    this.name = checkQueueName(name, bounds);
    this.#defaults = checkQueueDefaults(options, bounds);
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
      this.#defaults,
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
    const queue = this.name;
    const failures = new HandlerFailures(queue, onError);
    const cancellations = new Cancellations(session, this.name);
    const listener = new Listener(session, {
      queue,
      credits,
      lockMs,
      drainMs,
      closeDrains: true,
      keepsReasons: true,
      async handle(raw, lock, stop) {
        const job = jobOf(queue, raw);
        const message = new HandledMessage(session, job, lock, infoOf(raw), stop);
        const longest = job.timeoutMs ?? timeoutMs;
        stop.onRequested = () => cancellations.add(job.id, () => stop.abort(cancelled(lock)));
        stop.whyLost = async () =>
          (await cancellations.has(job.id)) ? cancelled(lock) : lockLost(lock);
        tellStarted(session, job);
        try {
          const value = await withinTime(() => handler(message.value, message), longest, stop);
          await complete(session, job, message, value);
        } catch (error) {
          failures.report(error, message);
          throw error;
        } finally {
          // A handler may go on after its time.
          stop.onRequested = null;
          cancellations.delete(job.id);
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
    return this.#schedules.set(name, timing, value, options, this.#defaults);
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

  pause(options?: unknown): Promise<void> {
    return this.#pause("kv.queue().pause", true, options);
  }

  resume(options?: unknown): Promise<void> {
    return this.#pause("kv.queue().resume", false, options);
  }

  setLimits(limits: unknown, options?: unknown): Promise<boolean> {
    const method = "kv.queue().setLimits";
    return signalled(method, options, (signal) => {
      const session = this.#session;
      const checked = checkLimits(method, limits, session.port.bounds);
      return setLimits(session, this.name, checked, signal);
    });
  }

  limits(options?: unknown): Promise<QueueLimits> {
    return signalled("kv.queue().limits", options, async (signal) => {
      const none = { limit: 1, cursor: "" };
      return (await readGroups(this.#session, this.name, none, signal)).limits;
    });
  }

  groups(options?: unknown): Promise<GroupsPage> {
    return abortable("kv.queue().groups", options, async (rest, signal) => {
      const session = this.#session;
      const groupsPage = checkGroupsPage(rest, session.port.bounds);
      return (await readGroups(session, this.name, groupsPage, signal)).page;
    });
  }

  drain(options?: unknown): Promise<number> {
    return abortable("kv.queue().drain", options, (rest, signal) => this.#drain(rest, signal));
  }

  cancel(id: string, options?: unknown): Promise<boolean> {
    const method = "kv.queue().cancel";
    return signalled(method, options, (signal) => this.#cancel(checkId(method, id), signal));
  }

  result(id: string, options?: unknown): Promise<JobResult | null> {
    const method = "kv.queue().result";
    return abortable(method, options, (rest, signal) => {
      const waitMs = checkResult(rest, this.#session.port.bounds);
      return result(this.#session, this.name, String(checkId(method, id)), waitMs, signal);
    });
  }

  progress(id: string, options?: unknown): Promise<any> {
    const method = "kv.queue().progress";
    return signalled(method, options, () =>
      progressOf(this.#session, this.name, String(checkId(method, id))),
    );
  }

  events(options?: unknown): ReadableStream<JobEvent> {
    const { since, signal } = checkEvents(options);
    return events(this.#session, this.name, since, signal);
  }

  #pause(method: string, pauses: boolean, options: unknown): Promise<void> {
    return abortable(method, options, async (rest, signal) => {
      const group = checkPause(method, rest, this.#session.port.bounds);
      const frame = this.#frame();
      frame.u8(pauses ? 1 : 0);
      if (group !== undefined) putText(frame, group);
      await callBehindWrites(this.#session, CALL_PAUSE_QUEUE, frame, signal);
    });
  }

  async #drain(options: unknown, signal: AbortSignal | undefined): Promise<number> {
    const { delayed, group } = checkDrainOptions(options, this.#session.port.bounds);
    let until = 0;
    for (let drained = 0; ; ) {
      const frame = this.#frame();
      frame.u8(delayed ? 1 : 0);
      frame.f64(until);
      if (group !== undefined) putText(frame, group);
      const answer = await callBehindWrites(this.#session, CALL_DRAIN_QUEUE, frame, signal);
      const count = readU32(answer, 0);
      until = answer.readDoubleLE(4);
      drained += count;
      if (count === 0) return drained;
    }
  }

  async #cancel(id: number, signal: AbortSignal | undefined): Promise<boolean> {
    const frame = this.#frame();
    frame.f64(id);
    const answer = await callBehindWrites(this.#session, CALL_CANCEL_MESSAGE, frame, signal);
    return answer[0] === 1;
  }

  #frame(): Writer {
    const frame = new Writer();
    putText(frame, this.name);
    return frame;
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
    const total = pending + delayed + processing + dead;
    // A server of an earlier version pauses nothing.
    const paused = answer.length > 32 && answer.readDoubleLE(32) === 1;
    return { pending, delayed, processing, dead, total, paused };
  }
}
