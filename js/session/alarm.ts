// Duty: what happens after a while of a session's time: that of a monotonic clock, or of the clock that its
// database was given.
// Invariant: an alarm does not keep the process alive.

import { clearTimeout, elapsed, setTimeout } from "../model/clock.js";
import type { Alarm, Session } from "./session.js";

/** The longest wait of a timer, in ms. A longer alarm rings early, so the owner of one looks at the time. */
const TIMER_MS_MAX = 0x7fff_ffff;

/** Milliseconds that only go forward. */
export function timeOf({ clock }: Session): number {
  return clock === null ? elapsed() : clock.now();
}

/** Calls `ring` after `ms`; the returned function cancels that. */
export function setAlarm(session: Session, ms: number, ring: Alarm["ring"]): () => void {
  const { clock, alarms } = session;
  if (clock !== null) {
    const alarm = { atMs: clock.now() + ms, ring };
    alarms.add(alarm);
    return () => void alarms.delete(alarm);
  }
  const timer = setTimeout(() => void ring(), Math.min(Math.ceil(ms), TIMER_MS_MAX));
  timer.unref?.();
  return () => clearTimeout(timer);
}

/** Rings what is due at `nowMs`, in order, and waits until that is done. */
export async function ringAlarms({ alarms }: Session, nowMs: number): Promise<void> {
  const due = [...alarms].filter(({ atMs }) => atMs <= nowMs).sort((a, b) => a.atMs - b.atMs);
  for (const alarm of due) if (alarms.delete(alarm)) await alarm.ring();
}
