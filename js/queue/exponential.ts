// Duty: a backoff schedule whose intervals double, as the list of its intervals.

import { invalid, tooLarge } from "../model/errors.js";
import { type Limits, checkOptions, raising, shown } from "../arguments/check.js";
import { inMs, textAdvice } from "../arguments/duration.js";

const OPTIONS = ["type", "base", "max", "jitter", "attempts"] as const;

/** Whether a schedule is given by its rule. */
export function isRule(schedule: unknown): schedule is object {
  return typeof schedule === "object" && schedule !== null && !Array.isArray(schedule);
}

/**
 * The intervals of a rule: the first is `base`, each later one twice as long, up to `max`. `jitter` shortens
 * each by up to that share; `random` is from 0 to 1.
 */
export function exponential(
  method: string,
  rule: object,
  limits: Limits,
  random: () => number,
): number[] {
  const what = `${method}: backoffSchedule`;
  const given = checkOptions(what, rule, OPTIONS);
  if (given.type !== "exponential") {
    throw invalid(`${what}.type must be "exponential": received ${shown(given.type)}`);
  }
  const longest = limits.backoffIntervalMsMax;
  const base = intervalIn(`${what}.base`, inMs(given.base), 1, longest);
  const most = inMs(given.max);
  const max = most === undefined ? longest : intervalIn(`${what}.max`, most, base, longest);
  const jitter = given.jitter ?? 0;
  if (typeof jitter !== "number" || !(jitter >= 0 && jitter <= 1)) {
    throw invalid(`${what}.jitter must be a number from 0 to 1: received ${shown(jitter)}`);
  }
  // One attempt more than there are intervals.
  const attemptsMax = limits.backoffIntervalsMax + 1;
  const attempts = given.attempts ?? attemptsMax;
  if (typeof attempts === "number" && Number.isInteger(attempts) && attempts > attemptsMax) {
    throw tooLarge(
      `${what}.attempts is too large (max ${attemptsMax}): ${attempts} given` +
        raising("backoffIntervalsMax"),
    );
  }
  const intervals = numberIn(`${what}.attempts`, attempts, 1, attemptsMax) - 1;
  return Array.from({ length: intervals }, (_, retry) => {
    const interval = Math.min(base * 2 ** retry, max);
    return Math.round(interval * (1 - jitter * random()));
  });
}

/** `max` is the limit of the handle. */
function intervalIn(what: string, value: unknown, min: number, max: number): number {
  const isLonger = typeof value === "number" && value > max;
  const advice = isLonger ? raising("backoffIntervalMsMax") : textAdvice(value);
  return numberIn(what, value, min, max, advice);
}

function numberIn(what: string, value: unknown, min: number, max: number, advice = ""): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) {
    return value;
  }
  throw invalid(
    `${what} must be an integer from ${min} to ${max}: received ${shown(value)}${advice}`,
  );
}
