// Duty: times as text, in one form: ISO 8601 in UTC, as in the API; and what is left until a time.

import { signal } from "@preact/signals";
import { duration } from "./figures";

/** The time, each second. */
export const nowMs = signal(Date.now());
setInterval(() => {
  nowMs.value = Date.now();
}, 1000);

/** A time, given in ms since the epoch or as RFC 3339, to the second: `2026-01-31 09:30:00Z`. */
export function timeText(at: number | string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime())
    ? String(at)
    : `${time.toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** The same within a day: `09:30:00Z`. */
export const clockText = (atMs: number): string => timeText(atMs).slice(11);

export function Time({ at }: { readonly at: number | string }) {
  return (
    <time class="num" dateTime={typeof at === "number" ? new Date(at).toISOString() : at}>
      {timeText(at)}
    </time>
  );
}

interface CountdownProps {
  readonly until: number;
  /** What is shown once the time has come. */
  readonly past?: string;
}

export function Countdown({ until, past = "expired" }: CountdownProps) {
  const left = until - nowMs.value;
  return (
    <time dateTime={new Date(until).toISOString()} title={timeText(until)}>
      {left > 0 ? `in ${duration(left)}` : past}
    </time>
  );
}
