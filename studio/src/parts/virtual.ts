// Duty: the rows of a long list that are in view; all have the same height.

import {
  Virtualizer,
  elementScroll,
  observeElementOffset,
  observeElementRect,
} from "@tanstack/virtual-core";
import { useLayoutEffect, useReducer, useRef } from "preact/hooks";

export const ROW_PX = 26;
const OVERSCAN_ROWS = 12;

type RowsInView = Virtualizer<HTMLDivElement, Element>;

/** The rows to draw. `scroller` is the element that scrolls. */
export function useVirtual(
  count: number,
  scroller: { current: HTMLDivElement | null },
): RowsInView {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const kept = useRef<RowsInView | undefined>(undefined);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw(0 as never),
  };
  kept.current ??= new Virtualizer<HTMLDivElement, Element>(options);
  kept.current.setOptions(options);
  useLayoutEffect(() => kept.current!._didMount(), []);
  useLayoutEffect(() => kept.current!._willUpdate());
  return kept.current;
}
