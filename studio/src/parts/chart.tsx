// Duty: lines over time. The numbers are beside the chart as text, so a chart needs no more than a name.

import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { isDark } from "../shell/theme";
import { report } from "../shell/toasts";

export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

/** Of the drawing, also while it is not there yet. */
const HEIGHT_PX = 150;

interface ChartProps {
  readonly title: string;
  /** In ms since the epoch. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly unit?: string;
}

export function Chart({ title, times, series, unit = "" }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const names = series.map(({ name }) => name);
  const given = dataOf(times, series);
  const latest = useRef(given);
  latest.current = given;
  useEffect(() => {
    const element = host.current!;
    let isEnded = false;
    let end = (): void => {};
    import("./plot").then(({ draw }) => {
      if (isEnded) return;
      const made = draw(element, { names, unit, height: HEIGHT_PX, data: latest.current });
      plot.current = made;
      const observer = new ResizeObserver(() => {
        made.setSize({ width: element.clientWidth, height: HEIGHT_PX });
      });
      observer.observe(element);
      end = () => {
        observer.disconnect();
        made.destroy();
        plot.current = undefined;
      };
    }, report);
    return () => {
      isEnded = true;
      end();
    };
  }, [names.join("\n"), isDark.value, unit]);
  useEffect(() => plot.current?.setData(given));
  return (
    <figure class="panel chart">
      <figcaption>{title}</figcaption>
      <div
        ref={host}
        role="img"
        aria-label={`Chart: ${title}`}
        style={{ minHeight: `${HEIGHT_PX}px` }}
      />
    </figure>
  );
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [times, ...series.map(({ values }) => values)] as unknown as uPlot.AlignedData;
}
