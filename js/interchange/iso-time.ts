// Duty: times in ISO 8601, as exports, literals and command lines write them. JavaScript reads more: 2026-02-30 is March 2 for it,
// and "5" a day in 2001.

/** A year, a month or a day, and a day with a time. Years beyond 9999 have six digits and a sign. */
const ISO_TIME =
  /^(?:\d{4}|[+-]\d{6})(?:-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?)?)?$/;

/** The time that a text in ISO 8601 says, or that is so many milliseconds after the epoch; undefined if there is none. */
export function timeOf(given: string | number): Date | undefined {
  if (typeof given === "string" && !(ISO_TIME.test(given) && hasDay(given))) return undefined;
  const time = new Date(given);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

/** Whether the month of a time in ISO 8601 has its day. */
export function hasDay(time: string): boolean {
  const [, year, month, day] = /^([+-]?\d{4,6})-(\d{2})-(\d{2})/.exec(time) ?? [];
  if (day === undefined) return true;
  // The calendar repeats after 400 years; Date.UTC() takes the years 0 to 99 for those from 1900 on.
  const last = new Date(Date.UTC((Number(year) % 400) + 2000, Number(month), 0));
  return Number(day) <= last.getUTCDate();
}
