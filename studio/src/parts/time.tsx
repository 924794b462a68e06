// Duty: what is left until a time.

import { signal } from "@preact/signals";
import { duration } from "./figures";

/** The time, each second. */
export const nowMs = signal(Date.now());
setInterval(() => {
  nowMs.value = Date.now();
}, 1000);

interface CountdownProps {
  readonly until: number;
  /** What is shown once the time has come. */
  readonly past?: string;
}

export function Countdown({ until, past = "expired" }: CountdownProps) {
  const left = until - nowMs.value;
  const at = new Date(until).toISOString();
  return (
    <time dateTime={at} title={at}>
      {left > 0 ? `in ${duration(left)}` : past}
    </time>
  );
}
