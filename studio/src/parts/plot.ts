// Duty: the drawing of a chart, by uPlot; loaded when the first chart is shown.

import uPlot from "uplot";
import { clockText } from "./time";
import "uplot/dist/uPlot.min.css";

/** Between the labels of two times, so that they never touch. */
const TIME_LABEL_PX = 84;
/** Room for half of a time at the left edge. */
const LEFT_PX_MIN = TIME_LABEL_PX / 2;
const LABEL_CHAR_PX = 7;
const LABEL_GAP_PX = 16;

const longest = (labels: readonly string[]): number =>
  Math.max(0, ...labels.map(({ length }) => length));

export interface PlotOptions {
  readonly names: readonly string[];
  readonly unit: string;
  readonly height: number;
  readonly data: uPlot.AlignedData;
}

export function draw(host: HTMLElement, { names, unit, height, data }: PlotOptions): uPlot {
  const colour = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(name);
  const axis = {
    stroke: colour("--soft"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const lines = names.map((label, at) => ({
    label,
    stroke: colour(`--chart-${(at % 3) + 1}`),
    width: 1.5,
    points: { show: false },
  }));
  const options: uPlot.Options = {
    width: host.clientWidth,
    height,
    // At the right for half of a label, since the last time may be at the edge.
    padding: [null, TIME_LABEL_PX / 2, null, null],
    ms: 1,
    legend: { show: names.length > 1 },
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, min, max) => [Math.min(0, min), Math.max(1, max * 1.1)] } },
    axes: [
      { ...axis, space: TIME_LABEL_PX, values: (_, ticks) => ticks.map(clockText) },
      {
        ...axis,
        size: (_, labels) =>
          Math.max(LEFT_PX_MIN, longest(labels ?? []) * LABEL_CHAR_PX + LABEL_GAP_PX),
        values: (_, ticks) => ticks.map((n) => `${Number(n.toPrecision(6))}${unit}`),
      },
    ],
    series: [{ value: (_, atMs) => (atMs === null ? "" : clockText(atMs)) }, ...lines],
  };
  return new uPlot(options, data, host);
}
