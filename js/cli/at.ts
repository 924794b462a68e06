// Duty: moments of the past on a command line: the option --at, and the commands that read at one.

import { type Command, InvalidArgumentError } from "commander";
import type { Kv } from "../api/kv.js";
import { parseDuration } from "../arguments/duration.js";
import { isVersionstamp } from "../arguments/moment.js";
import { timeOf } from "../interchange/iso-time.js";
import { withDatabase } from "./database.js";
import { asOutcome } from "./outcome.js";
import type { Style } from "./output.js";

/** A moment as `kv.at` takes it. */
export type Moment = Date | string;

export interface AtOptions {
  at?: Moment;
}

/** The beginning of a time in ISO 8601. Without a zone a time is local. */
const DAY = /^\d{4}-\d{2}-\d{2}/;

/** Milliseconds since the epoch. Fewer digits are taken for a year or a mistake. */
const EPOCH_MS = /^\d{11,15}$/;

/** A versionstamp, a time in ISO 8601, milliseconds since the epoch, or a duration before now. */
export function moment(text: string): Moment {
  if (isVersionstamp(text)) return text;
  const time = timeIn(text);
  if (time === undefined || Number.isNaN(time.getTime())) {
    throw new InvalidArgumentError(
      "Give a time, as 2026-11-24T15:00:00Z, a duration for the time so long ago, as 1h30m, milliseconds since " +
        "the epoch, or a versionstamp of 20 hexadecimal digits.",
    );
  }
  return time;
}

function timeIn(text: string): Date | undefined {
  if (DAY.test(text)) return timeOf(text);
  if (EPOCH_MS.test(text)) return new Date(Number(text));
  const ago = parseDuration(text);
  return Number.isNaN(ago) ? undefined : new Date(Date.now() - ago);
}

/** The option of every command that reads entries. */
export const AT: readonly [string, string, (text: string) => Moment] = [
  "--at <moment>",
  "as it was at this time (2026-11-24T15:00:00Z) or right after the commit of this versionstamp; needs the history of the database",
  moment,
];

/**
 * The database at a moment, or as it is. Closes `kv` if that is not what it returns, or if the moment
 * cannot be read.
 */
export async function momentOf(kv: Kv, at: Moment | undefined): Promise<Kv> {
  if (at === undefined) return kv;
  try {
    return await atMoment(kv, at);
  } finally {
    await kv.close();
  }
}

/** Whether the database has a moment is no fault of the command line. */
export function atMoment(kv: Kv, at: Moment): Promise<Kv> {
  return asOutcome(() => kv.at(at));
}

/** Runs work on the existing database of the command line, at a moment if one is given. */
export async function withDatabaseReading(
  command: Command,
  { at }: AtOptions,
  work: (kv: Kv, style: Style) => Promise<void>,
): Promise<void> {
  await withDatabase(command, "read", async (kv, style) => {
    if (at === undefined) return await work(kv, style);
    const then = await atMoment(kv, at);
    try {
      await work(then, style);
    } finally {
      await then.close();
    }
  });
}
