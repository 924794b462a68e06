// Duty: the rows of a long list that are in view; all have the same height.

import { signal } from "@preact/signals";
import {
  Virtualizer,
  elementScroll,
  observeElementOffset,
  observeElementRect,
} from "@tanstack/virtual-core";
import { useLayoutEffect, useReducer, useRef } from "preact/hooks";

/** Rows are higher where a finger presses them: the same condition and heights as in style/base.css. */
const touched = matchMedia("(max-width: 760px), (pointer: coarse)");
const heightPx = (): number => (touched.matches ? 40 : 26);
export const rowPx = signal(heightPx());
touched.addEventListener("change", () => {
  rowPx.value = heightPx();
});

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
    estimateSize: () => rowPx.peek(),
    overscan: OVERSCAN_ROWS,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw(0 as never),
  };
  kept.current ??= new Virtualizer<HTMLDivElement, Element>(options);
  kept.current.setOptions(options);
  const height = rowPx.value;
  useLayoutEffect(() => kept.current!.measure(), [height]);
  useLayoutEffect(() => kept.current!._didMount(), []);
  useLayoutEffect(() => kept.current!._willUpdate());
  return kept.current;
}
