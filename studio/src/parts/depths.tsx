// Duty: the table of queues and how many messages each has, by state.

import type { Depth } from "../api/metrics";
import { hrefOf } from "../shell/router";
import { whole } from "./figures";

const STATES = ["pending", "delayed", "processing", "dead"] as const;

/** The name of a queue as it is shown; the default queue, that of `kv.enqueue`, has none. */
export const queueName = (queue: string): string => (queue === "" ? "(default)" : queue);

interface DepthsProps {
  readonly queues: readonly string[];
  readonly known: Readonly<Record<string, Depth>>;
  /** The queue that is open. */
  readonly open?: string;
}

export function Depths({ queues, known, open }: DepthsProps) {
  return (
    <div class="scroll" role="region" aria-label="Depths of queues" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Queue</th>
            {STATES.map((state) => (
              <th key={state} scope="col" class="num">
                {state.replace(/^./, (first) => first.toUpperCase())}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {queues.map((name) => (
            <tr key={name}>
              <td>
                <a
                  href={hrefOf("queues", { queue: name })}
                  aria-current={name === open ? "true" : undefined}
                >
                  {queueName(name)}
                </a>
              </td>
              {STATES.map((state) => (
                <td key={state} class="num">
                  {whole(known[name]?.[state] ?? 0)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
