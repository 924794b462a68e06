// Duty: what a component does by requests: one action at a time, the newest of its loads, and whether it is still there
// when an answer comes.

import { useEffect, useRef, useState } from "preact/hooks";
import { report } from "../shell/toasts";

/** Handlers of events that act for a component, one at a time: what is begun while another runs is left out. */
export function useActing() {
  const [isActing, setActing] = useState(false);
  const runs = useRef(false);
  const acting = (work: () => Promise<unknown>) => (): void => {
    if (runs.current) return;
    runs.current = true;
    setActing(true);
    const end = (): void => {
      runs.current = false;
      setActing(false);
    };
    work().catch(report).finally(end);
  };
  return { isActing, acting };
}

/**
 * Loads of a component, of which only the newest counts: another load, or the end of the component, gives up the one that
 * is under way.
 */
export function useNewest() {
  const newest = useRef<AbortController | null>(new AbortController());
  useEffect(
    () => () => {
      newest.current?.abort();
      newest.current = null;
    },
    [],
  );
  return async function load<T>(
    from: (signal: AbortSignal) => Promise<T>,
    take: (found: T) => void,
    fail: (error: Error) => void = report,
  ): Promise<void> {
    if (newest.current === null) return;
    newest.current.abort();
    newest.current = new AbortController();
    const { signal } = newest.current;
    try {
      const found = await from(signal);
      if (!signal.aborted) take(found);
    } catch (error) {
      if (!signal.aborted) fail(error as Error);
    }
  };
}

/** Whether a component is gone, for what goes on behind its end. */
export function useGone(): { readonly current: boolean } {
  const isGone = useRef(false);
  useEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  return isGone;
}
