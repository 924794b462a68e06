// Duty: all counters of the database: charts, a table of the operations, the text for Prometheus.

import { useState } from "preact/hooks";
import { type Metrics, type Sample, rates, useSamples } from "../../api/metrics";
import { ask } from "../../api/request";
import { Chart } from "../../parts/chart";
import { whole } from "../../parts/figures";
import { reporting } from "../../shell/toasts";
import { copyText } from "../../parts/clipboard";

const CHARTED_MAX = 3;
const ms = (n: number | undefined): string => (n === undefined ? "" : n.toFixed(2));

export function MetricsView() {
  const samples = useSamples();
  const last = samples.at(-1)?.metrics;
  if (last === undefined) return <p class="empty">Loading…</p>;
  const times = samples.map(({ at }) => at);
  const line = (name: string, of: (metrics: Metrics) => number, isRate: boolean) => ({
    name,
    values: isRate ? rates(samples, of) : samples.map(({ metrics }) => of(metrics)),
  });
  return (
    <div class="view">
      <div class="charts">
        <Chart
          title="Operations per second, the three most frequent"
          times={times}
          series={frequent(samples).map((name) =>
            line(name, ({ operations }) => operations[name]?.count ?? 0, true),
          )}
        />
        <Chart
          title="Commits and conflicts per second"
          times={times}
          series={[
            line("commits", ({ commits }) => commits, true),
            line("conflicts", ({ conflicts }) => conflicts, true),
          ]}
        />
        <Chart
          title="Size in MiB"
          times={times}
          series={[
            line("database", ({ databaseBytes }) => (databaseBytes ?? 0) / 2 ** 20, false),
            line("log", ({ walBytes }) => (walBytes ?? 0) / 2 ** 20, false),
          ]}
        />
        <Chart
          title="Watches, feeds, listeners"
          times={times}
          series={[
            line("watches", ({ watches }) => watches, false),
            line("feeds", ({ feeds }) => feeds, false),
            line("listeners", ({ listeners }) => listeners, false),
          ]}
        />
      </div>
      <Operations metrics={last} />
      <Prometheus />
    </div>
  );
}

/** The operations that have happened most often. */
function frequent(samples: readonly Sample[]): string[] {
  return Object.entries(samples.at(-1)?.metrics.operations ?? {})
    .sort(([, a], [, b]) => b.count - a.count)
    .slice(0, CHARTED_MAX)
    .map(([name]) => name);
}

function Operations({ metrics }: { readonly metrics: Metrics }) {
  return (
    <section class="panel" aria-label="All operations">
      <header>
        <h2>Operations, times in ms</h2>
      </header>
      <div class="scroll" role="region" aria-label="Operations" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {["Operation", "Count", "Errors", "p50", "p90", "p99", "Longest"].map((name, at) => (
                <th key={name} scope="col" class={at === 0 ? "" : "num"}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Object.entries(metrics.operations).map(([name, { count, errors, latency }]) => (
              <tr key={name}>
                <td class="mono">{name}</td>
                <td class="num">{whole(count)}</td>
                <td class="num">{whole(errors)}</td>
                <td class="num">{ms(latency?.p50Ms)}</td>
                <td class="num">{ms(latency?.p90Ms)}</td>
                <td class="num">{ms(latency?.p99Ms)}</td>
                <td class="num">{ms(latency?.maxMs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Prometheus() {
  const [text, setText] = useState<string>();
  const load = reporting(async () => {
    setText(await (await ask("/metrics/prometheus", { accept: "text/plain" })).text());
  });
  return (
    <section class="panel" aria-label="Prometheus">
      <header>
        <h2 class="grow">Prometheus</h2>
        {text !== undefined && (
          <button type="button" onClick={() => copyText(text, "Text")}>
            Copy
          </button>
        )}
        <button type="button" onClick={load}>
          {text === undefined ? "Show the text" : "Reload"}
        </button>
      </header>
      {text !== undefined && (
        <pre class="shown" role="region" aria-label="Text for Prometheus" tabIndex={0}>
          {text}
        </pre>
      )}
    </section>
  );
}
