// Duty: the slowest operations of the last hour, with their keys.

import type { Metrics } from "../../api/metrics";
import { whole } from "../../parts/figures";
import { Time } from "../../parts/time";

/** Operations that are shown. */
const SHOWN_MAX = 10;

export function SlowLog({ metrics: { slowest = [] } }: { readonly metrics: Metrics }) {
  if (slowest.length === 0) return null;
  return (
    <section class="panel" aria-label="Slowest of the last hour">
      <header>
        <h2>Slowest of the last hour</h2>
      </header>
      <div class="scroll" role="region" aria-label="Slow log" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Operation</th>
              <th>Key</th>
              <th class="num">ms</th>
              <th>Ended</th>
            </tr>
          </thead>
          <tbody>
            {slowest.slice(0, SHOWN_MAX).map((of) => (
              <tr key={`${of.atMs} ${of.operation} ${of.durationMs}`}>
                <td class="mono">
                  {of.operation}
                  {of.times > 1 && ` ×${of.times}`}
                  {of.failed && " failed"}
                </td>
                <td class="mono">{of.key ?? (of.prefix && `${of.prefix} and below`)}</td>
                <td class="num">{whole(Math.round(of.durationMs))}</td>
                <td>
                  <Time at={of.atMs} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
