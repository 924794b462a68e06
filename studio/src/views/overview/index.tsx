// Duty: the state of the database at a glance.

import { useEffect, useState } from "preact/hooks";
import "./overview.css";
import { count } from "../../api/entries";
import { type Metrics, operationsOf, rates, useSamples } from "../../api/metrics";
import { Chart } from "../../parts/chart";
import { Depths } from "../../parts/depths";
import { Empty } from "../../parts/empty";
import { size, whole } from "../../parts/figures";
import { report } from "../../shell/toasts";
import { KeySpace } from "./key-space";
import { SlowLog } from "./slow-log";

/** Operations that are listed as the slowest. */
const SLOWEST = 6;

const ms = (n: number): string => `${n < 10 ? n.toFixed(2) : n.toFixed(0)} ms`;

export function Overview() {
  const samples = useSamples();
  const [entries, setEntries] = useState<number>();
  const last = samples.at(-1)?.metrics;
  const isShown = last !== undefined;
  useEffect(() => {
    // To count is to read all keys: the other figures are shown first.
    if (!isShown) return undefined;
    const ending = new AbortController();
    count([], ending.signal).then(setEntries, report);
    return () => ending.abort();
  }, [isShown]);
  if (last === undefined) return <p class="empty">Loading…</p>;
  const times = samples.map(({ at }) => at);
  const latency = (of: "p50Ms" | "p99Ms") => samples.map(({ metrics }) => worst(metrics, of));
  return (
    <div class="view">
      <dl class="tiles">
        <Tile name="Entries" value={entries === undefined ? "…" : whole(entries)} />
        <Tile name="Database" value={size(last.databaseBytes ?? 0)} />
        <Tile name="Log" value={size(last.walBytes ?? 0)} />
        <Tile name="Commits" value={whole(last.commits)} />
        <Tile name="Conflicts" value={whole(last.conflicts)} />
        <Tile name="Rejections" value={whole(last.rejections)} />
        <Tile name="Watches" value={whole(last.watches + last.feeds)} />
        <Tile name="Cache hits" value={`${(last.cache.hitRate * 100).toFixed(0)} %`} />
      </dl>
      <div class="charts">
        <Chart
          title="Operations per second"
          times={times}
          series={[{ name: "operations", values: rates(samples, operationsOf) }]}
        />
        <Chart
          title="Slowest kind of operation, latency"
          times={times}
          unit=" ms"
          series={[
            { name: "p50", values: latency("p50Ms") },
            { name: "p99", values: latency("p99Ms") },
          ]}
        />
      </div>
      <div class="charts">
        <Queues metrics={last} />
        <Slowest metrics={last} />
      </div>
      <SlowLog metrics={last} />
      <KeySpace />
    </div>
  );
}

function worst({ operations }: Metrics, of: "p50Ms" | "p99Ms"): number {
  return Math.max(0, ...Object.values(operations).map(({ latency }) => latency?.[of] ?? 0));
}

function Tile({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div class="panel tile">
      <dt>{name}</dt>
      <dd class="num">{value}</dd>
    </div>
  );
}

function Queues({ metrics }: { readonly metrics: Metrics }) {
  const queues = Object.keys(metrics.queues);
  return (
    <section class="panel" aria-label="Queues">
      <header>
        <h2>Queues</h2>
      </header>
      {queues.length === 0 ? (
        <Empty
          what="There are no messages."
          next="The view Queues enqueues one, as kv.enqueue does in a program."
        />
      ) : (
        <Depths queues={queues} known={metrics.queues} />
      )}
    </section>
  );
}

function Slowest({ metrics }: { readonly metrics: Metrics }) {
  const all = Object.entries(metrics.operations)
    .filter(([, { latency }]) => latency !== null)
    .sort(([, a], [, b]) => b.latency!.p99Ms - a.latency!.p99Ms)
    .slice(0, SLOWEST);
  return (
    <section class="panel" aria-label="Slow operations">
      <header>
        <h2>Slow operations</h2>
      </header>
      <div class="scroll" role="region" aria-label="Slowest operations" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Operation</th>
              <th class="num">Count</th>
              <th class="num">p50</th>
              <th class="num">p99</th>
              <th class="num">Longest</th>
            </tr>
          </thead>
          <tbody>
            {all.map(([name, { count: times, latency }]) => (
              <tr key={name}>
                <td class="mono">{name}</td>
                <td class="num">{whole(times)}</td>
                <td class="num">{ms(latency!.p50Ms)}</td>
                <td class="num">{ms(latency!.p99Ms)}</td>
                <td class="num">{ms(latency!.maxMs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {all.length === 0 && (
        <Empty what="There are no metrics yet." next="They come with the first operations." />
      )}
    </section>
  );
}
