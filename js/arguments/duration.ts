// Duty: durations as options name them: milliseconds, or a text like "7d" or "1h30m".

import { invalid } from "../model/errors.js";
import { DURATION_MS_MAX } from "../model/limits.js";
import { shown } from "./shown.js";

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** A duration in milliseconds. `name` is that of the option, for errors. */
export function checkDuration(name: string, given: unknown): number {
  return checkDurationIn(name, given, 1, DURATION_MS_MAX);
}

/** A duration from `min` to `max` ms. */
export function checkDurationIn(name: string, given: unknown, min: number, max: number): number {
  const ms = typeof given === "string" ? parseDuration(given) : given;
  if (Number.isInteger(ms) && (ms as number) >= min && (ms as number) <= max) return ms as number;
  throw noDuration(name, given, min, max);
}

/**
 * A text with units as its milliseconds. Anything else is left to the check of the option, whose bounds and texts are
 * its own: those of Deno.
 */
export function inMs(given: unknown): unknown {
  if (typeof given !== "string") return given;
  const ms = parseDuration(given);
  return Number.isNaN(ms) ? given : ms;
}

/** What the refusal of a text says beside: how one is written. */
export function textAdvice(given: unknown): string {
  if (typeof given !== "string" || !Number.isNaN(parseDuration(given))) return "";
  return '; a text has a unit (ms, s, m, h, d), for example "7d" or "1h30m"';
}

function noDuration(name: string, given: unknown, min: number, max: number): TypeError {
  const most = max === DURATION_MS_MAX ? `${max} ms (36525d)` : `${max} ms`;
  return invalid(
    `${name} must be a duration from ${min} ms to ${most}, as an integer of milliseconds or ` +
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
