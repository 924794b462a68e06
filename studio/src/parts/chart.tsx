// Duty: lines over time. The numbers are beside the chart as text, so a chart needs no more than a name.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { isDark } from "../shell/theme";

export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  /** In ms since the epoch. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly unit?: string;
}

const HEIGHT_PX = 150;

export function Chart({ title, times, series, unit = "" }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const names = series.map(({ name }) => name).join("\n");
  const dark = isDark.value;
  useEffect(() => {
    const element = host.current!;
    const colour = (name: string): string =>
      getComputedStyle(document.documentElement).getPropertyValue(name);
    const axis = {
      stroke: colour("--soft"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui, sans-serif",
    };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        ms: 1,
        legend: { show: series.length > 1 },
        cursor: { drag: { x: false, y: false } },
        scales: { y: { range: (_, min, max) => [Math.min(0, min), Math.max(1, max * 1.1)] } },
        axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map((n) => `${n}${unit}`) }],
        series: [
          {},
          ...series.map(({ name }, at) => ({
            label: name,
            stroke: colour(`--chart-${(at % 3) + 1}`),
            width: 1.5,
            points: { show: false },
          })),
        ],
      },
      dataOf(times, series),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: HEIGHT_PX });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [names, dark, unit]);
  useEffect(() => plot.current?.setData(dataOf(times, series)));
  return (
    <figure class="panel chart">
      <figcaption>{title}</figcaption>
      <div ref={host} role="img" aria-label={`Chart: ${title}`} />
    </figure>
  );
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [times, ...series.map(({ values }) => values)] as unknown as uPlot.AlignedData;
}
