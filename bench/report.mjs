// Turns trials into two Markdown tables: ratios against targets, and the numbers behind them.

import { median } from "./measure.mjs";

const SUBJECT = "openkv";

/** Three significant digits, thousands as k, millions as M. */
export function short(number) {
  if (number >= 1e6) return `${(number / 1e6).toPrecision(3)}M`;
  if (number >= 1e3) return `${(number / 1e3).toPrecision(3)}k`;
  return number.toPrecision(3);
}

/** `{ min, median, max }` of a list of numbers, or undefined of an empty one. */
export function summary(values) {
  if (values.length === 0) return undefined;
  return { min: Math.min(...values), median: median(values), max: Math.max(...values) };
}

/** openkv's median over the peer's, with the target and whether it is met; undefined without data. */
export function compare(workload, subject, peer, peerName) {
  if (!subject || !peer) return undefined;
  const ratio = subject.median / peer.median;
  const target = workload.targets[peerName];
  if (target === undefined) return { ratio };
  return { ratio, target, met: workload.better === "less" ? ratio <= target : ratio >= target };
}

const bound = (workload) => (workload.better === "less" ? "≤" : "≥");

function ratioCell(workload, comparison) {
  if (!comparison) return "";
  const { ratio, target, met } = comparison;
  const measured = ratio >= 100 ? ratio.toFixed(0) : ratio.toPrecision(3);
  if (target === undefined) return measured;
  return `**${measured}** (${bound(workload)} ${target}) ${met ? "✓" : "✗"}`;
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Ratio of medians: measured (target) and whether it is met. */
export function ratioTable(results, peers) {
  const others = peers.filter((peer) => peer.name !== SUBJECT);
  return table(
    ["workload", ...others.map((peer) => `× ${peer.title}`)],
    results.map(({ workload, byPeer }) => [
      workload.title,
      ...others.map((peer) =>
        ratioCell(workload, compare(workload, byPeer[SUBJECT], byPeer[peer.name], peer.name)),
      ),
    ]),
  );
}

/** Per peer: median, with the smallest and the largest trial. */
export function numberTable(results, peers) {
  return table(
    ["workload", ...peers.map((peer) => peer.title)],
    results.map(({ workload, byPeer }) => [
      `${workload.title} (${workload.unit})`,
      ...peers.map((peer) => {
        const s = byPeer[peer.name];
        return s ? `**${short(s.median)}** (${short(s.min)} – ${short(s.max)})` : "";
      }),
    ]),
  );
}

/** Per peer: median processor time of an operation, all threads, in µs. */
export function cpuTable(results, peers) {
  return table(
    ["CPU µs per operation", ...peers.map((peer) => peer.title)],
    results.map(({ workload, cpuByPeer }) => [
      workload.title,
      ...peers.map((peer) => {
        const s = cpuByPeer[peer.name];
        return s ? short(s.median) : "";
      }),
    ]),
  );
}

/** `met` and `missed` counts over all cells that have a target and a measurement. */
export function score(results, peers) {
  let met = 0;
  let missed = 0;
  for (const { workload, byPeer } of results) {
    for (const peer of peers) {
      const comparison = compare(workload, byPeer[SUBJECT], byPeer[peer.name], peer.name);
      if (comparison?.met === true) met += 1;
      if (comparison?.met === false) missed += 1;
    }
  }
  return { met, missed };
}
