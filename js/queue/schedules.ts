// Duty: the schedules of a queue: set, removed and listed.

import { invalid } from "../model/errors.js";
import { callBehindWrites } from "../session/call.js";
import { decodeValue } from "../codec/value/decode.js";
import { valueStart } from "../codec/message-context.js";
import { ENCODING_CBOR } from "../codec/value/tags.js";
import { Writer } from "../codec/writer.js";
import { checkOptions, shown } from "../arguments/check.js";
import { inMs } from "../arguments/duration.js";
import { abortable, signalled } from "../arguments/signal.js";
import { putText, readU32 } from "../native/frame.js";
import { CALL_SCHEDULES, OP_SCHEDULE, OP_UNSCHEDULE } from "../native/contract.js";
import type { Session } from "../session/session.js";
import { commitMessage, contextFor } from "../write/writes.js";
import { putEnqueue, putMessage } from "../records/records.js";
import {
  MESSAGE_OPTIONS,
  type QueueDefaults,
  checkNamedEnqueue,
  checkSchedulesPage,
  checkText,
} from "./queue-options.js";

/** What happens for missed due times, by the numbers in frames. */
const MISSED = ["skip", "once", "all"] as const;
const TIMING_OPTIONS = ["cron", "timeZone", "every", "offset", "missed"] as const;

export interface Schedule {
  name: string;
  cron?: string;
  timeZone?: string;
  every?: number;
  offset?: number;
  missed: (typeof MISSED)[number];
  nextAt: Date;
  priority: number;
  value: any;
}

export interface SchedulesPage {
  schedules: Schedule[];
  cursor: string | null;
}

/** A checked timing. The addon checks what it says. */
interface Timing {
  readonly cron: string | undefined;
  readonly zone: string;
  readonly every: number;
  readonly offset: number;
  readonly missed: number;
}

export class Schedules {
  readonly #session: Session;
  readonly #queue: string;

  constructor(session: Session, queue: string) {
    this.#session = session;
    this.#queue = queue;
  }

  set(
    name: unknown,
    timing: unknown,
    value: unknown,
    options: unknown,
    defaults: QueueDefaults,
  ): Promise<boolean> {
    const method = "kv.queue().schedule";
    return abortable(method, options, async (rest) => {
      const session = this.#session;
      const put = setting(session, method, this.#queue, name, timing, value, rest, defaults);
      const { deduplicated } = await commitMessage(session, put);
      return !deduplicated;
    });
  }

  remove(name: unknown, options: unknown): Promise<boolean> {
    const method = "kv.queue().unschedule";
    return signalled(method, options, async () => {
      const put = removal(this.#session, method, this.#queue, name);
      const { deduplicated } = await commitMessage(this.#session, put);
      return !deduplicated;
    });
  }

  list(options: unknown): Promise<SchedulesPage> {
    const method = "kv.queue().schedules";
    return abortable(method, options, async (rest, signal) => {
      const { limit, cursor } = checkSchedulesPage(method, rest, this.#session.port.bounds);
      const frame = new Writer();
      putText(frame, this.#queue);
      frame.u32(limit);
      putText(frame, cursor);
      return readPage(await callBehindWrites(this.#session, CALL_SCHEDULES, frame, signal));
    });
  }
}

/** Checks a schedule, and returns what writes its records. */
export function setting(
  session: Session,
  method: string,
  queue: string,
  name: unknown,
  timing: unknown,
  value: unknown,
  options: unknown,
  defaults?: QueueDefaults,
): (writer: Writer) => void {
  const { limits, port, now } = session;
  const given = checkOptions(method, options, MESSAGE_OPTIONS);
  const checked = checkNamedEnqueue(method, queue, given, limits, port.bounds, now, defaults);
  const checkedName = checkText(`${method}: name`, name, port.bounds.scheduleNameBytesMax);
  const checkedTiming = checkTiming(method, timing);
  return (writer) => {
    putEnqueue(writer, checked, limits);
    putMessage(writer, value, checked, limits, contextFor(session, checked, null));
    putSchedule(writer, checkedName, checkedTiming);
  };
}

/** Checks the name of a schedule, and returns what writes the record of its removal. */
export function removal(
  session: Session,
  method: string,
  queue: string,
  name: unknown,
): (writer: Writer) => void {
  const checked = checkText(`${method}: name`, name, session.port.bounds.scheduleNameBytesMax);
  return (writer) => {
    writer.u8(OP_UNSCHEDULE);
    putText(writer, queue);
    putText(writer, checked);
  };
}

function checkTiming(method: string, timing: unknown): Timing {
  if (typeof timing !== "object" || timing === null) {
    throw invalid(
      `${method}: timing must be { cron, timeZone } or { every, offset }: received ${shown(timing)}`,
    );
  }
  const given = checkOptions(method, timing, TIMING_OPTIONS);
  const { cron, timeZone, every, offset, missed = "once" } = given;
  const number = (MISSED as readonly unknown[]).indexOf(missed);
  if (number < 0) {
    throw invalid(`${method}: missed must be "skip", "once" or "all": received ${shown(missed)}`);
  }
  if ((cron === undefined) === (every === undefined)) {
    throw invalid(`${method}: give either cron or every`);
  }
  if (cron !== undefined) {
    if (offset !== undefined) throw invalid(`${method}: offset is for every, not for cron`);
    const zone = timeZone ?? "UTC";
    return {
      cron: text(method, "cron", cron),
      zone: text(method, "timeZone", zone),
      every: 0,
      offset: 0,
      missed: number,
    };
  }
  if (timeZone !== undefined) throw invalid(`${method}: timeZone is for cron, not for every`);
  return {
    cron: undefined,
    zone: "",
    every: duration(method, "every", every),
    offset: duration(method, "offset", offset ?? 0),
    missed: number,
  };
}

function text(method: string, name: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw invalid(`${method}: ${name} must be a string: received ${shown(value)}`);
}

/** Ms, or a text with units. The addon checks the bounds, which depend on each other. */
function duration(method: string, name: string, value: unknown): number {
  const ms = inMs(value);
  if (typeof ms === "number" && Number.isSafeInteger(ms)) return ms;
  throw invalid(
    `${method}: ${name} must be an integer, in ms, or a text with a unit (ms, s, m, h, d), for example "5m": ` +
      `received ${shown(value)}`,
  );
}

/** A record SCHEDULE, behind the message. */
function putSchedule(writer: Writer, name: string, timing: Timing): void {
  writer.u8(OP_SCHEDULE);
  writer.u8(timing.missed);
  writer.f64(timing.every);
  writer.f64(timing.offset);
  writer.u8(timing.cron === undefined ? 0 : 1);
  if (timing.cron !== undefined) putText(writer, timing.cron);
  putText(writer, timing.zone);
  putText(writer, name);
}

/** u32 count, sized cursor; then the schedules. */
function readPage(answer: Buffer): SchedulesPage {
  let at = 8 + readU32(answer, 4);
  const cursor = answer.toString("utf8", 8, at);
  const sized = (): [number, number] => {
    const start = at + 4;
    at = start + readU32(answer, at);
    return [start, at];
  };
  const schedules: Schedule[] = [];
  for (let left = readU32(answer, 0); left > 0; left--) {
    const name = answer.toString("utf8", ...sized());
    const [missed, priority] = [MISSED[answer[at]!]!, answer[at + 1]!];
    const [next, every, offset] = [2, 10, 18].map((from) => answer.readDoubleLE(at + from));
    at += 26;
    const cron = answer.toString("utf8", ...sized());
    const timeZone = answer.toString("utf8", ...sized());
    const [start, end] = sized();
    const value = decodeValue(ENCODING_CBOR, answer, valueStart(answer, start, end), end);
    const timing = every === 0 ? { cron, timeZone } : { every: every!, offset: offset! };
    schedules.push({ name, ...timing, missed, nextAt: new Date(next!), priority, value });
  }
  return { schedules, cursor: cursor === "" ? null : cursor };
}
