// Duty: what a component does by requests: one action at a time, and whether it is still there when the answer comes.

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
