// Duty: durations as options name them: milliseconds, or a text like "7d" or "1h30m".

import { invalid } from "../model/errors.js";
import { shown } from "./check.js";
import { DURATION_MS_MAX } from "../model/limits.js";

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** A duration in milliseconds. `name` is that of the option, for errors. */
export function checkDuration(name: string, given: unknown): number {
  const ms = typeof given === "string" ? parseDuration(given) : given;
  if (Number.isInteger(ms) && (ms as number) >= 1 && (ms as number) <= DURATION_MS_MAX) {
    return ms as number;
  }
  throw invalid(
    `${name} must be a duration from 1 ms to ${DURATION_MS_MAX} ms (36525d), as an integer of milliseconds or ` +
      `as a text with a unit (ms, s, m, h, d), for example "7d" or "1h30m": received ${shown(given)}`,
  );
}

/** The milliseconds of numbers with units; NaN if the text is something else. */
export function parseDuration(text: string): number {
  if (!/^(?:\d{1,15}(?:ms|[smhd]))+$/.test(text)) return Number.NaN;
  let ms = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|[smhd])/g))
    ms += Number(count) * UNIT_MS[unit];
  return ms;
}
