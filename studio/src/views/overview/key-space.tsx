// Duty: the key space: entries and bytes of each prefix, on request, as they are read.
// Invariant: another measurement, or another view, ends the one that runs.

import { useEffect, useRef, useState } from "preact/hooks";
import { type Sizes, sizesOf } from "../../api/sizes";
import { Empty } from "../../parts/empty";
import { counted, size, whole } from "../../parts/figures";
import { hrefOf } from "../../shell/router";
import { report } from "../../shell/toasts";

/** Prefixes that are shown, the largest. */
const SHOWN_MAX = 100;

interface Measured extends Sizes {
  /** The prefix that was measured, as a literal; empty: all keys. */
  readonly prefix: string;
  readonly isRunning: boolean;
}

export function KeySpace() {
  const [measured, setMeasured] = useState<Measured>();
  const ending = useRef(new AbortController());
  useEffect(() => () => ending.current.abort(), []);
  const cancel = (): void => {
    ending.current.abort();
    setMeasured((now) => now && { ...now, isRunning: false });
  };
  const measure = (prefix: string): void => {
    ending.current.abort();
    ending.current = new AbortController();
    setMeasured({ prefix, prefixes: [], entries: 0, isWhole: false, isRunning: true });
    run(prefix, ending.current.signal, setMeasured).catch(report);
  };
  const { prefix = "", isRunning = false } = measured ?? {};
  return (
    <section class="panel" aria-label="Key space">
      <header>
        <h2>Key space{prefix && <span class="mono"> {prefix}</span>}</h2>
        {measured && <Progress measured={measured} />}
        {prefix !== "" && (
          <button type="button" onClick={() => measure("")}>
            All keys
          </button>
        )}
        {isRunning ? (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        ) : (
          <button type="button" onClick={() => measure(prefix)}>
            Measure
          </button>
        )}
      </header>
      {measured === undefined ? (
        <Empty
          what="The sizes of prefixes are not measured."
          next="To measure them is to read all entries; it can be cancelled."
        />
      ) : (
        <Prefixes measured={measured} onOpen={measure} />
      )}
    </section>
  );
}

async function run(
  prefix: string,
  signal: AbortSignal,
  tell: (measured: Measured) => void,
): Promise<void> {
  try {
    for await (const sizes of sizesOf(prefix, signal)) {
      if (signal.aborted) return;
      tell({ ...sizes, prefix, isRunning: !sizes.isWhole });
    }
  } catch (error) {
    if (signal.aborted) return;
    tell({ prefix, prefixes: [], entries: 0, isWhole: false, isRunning: false });
    throw error;
  }
}

function Progress({ measured: { entries, isWhole, isRunning } }: { readonly measured: Measured }) {
  const state = isRunning ? ", reading…" : isWhole ? "" : ", cancelled";
  return (
    <span class="grow num" role="status">
      {counted(entries, "entry", "entries")}
      {state}
    </span>
  );
}

interface PrefixesProps {
  readonly measured: Measured;
  onOpen(prefix: string): void;
}

function Prefixes({ measured: { prefixes, isRunning }, onOpen }: PrefixesProps) {
  if (prefixes.length === 0 && !isRunning) {
    return <Empty what="There are no entries." next="The view Entries makes one." />;
  }
  const rest = prefixes.length - SHOWN_MAX;
  return (
    <div class="scroll" role="region" aria-label="Sizes of prefixes" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Prefix</th>
            <th class="num">Entries</th>
            <th class="num">Bytes</th>
            <th>
              <span class="visually-hidden">Below</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {prefixes.slice(0, SHOWN_MAX).map(({ prefix, entries, bytes }) => (
            <tr key={prefix}>
              <td class="mono">
                <a href={hrefOf("entries", { prefix })}>{prefix}</a>
              </td>
              <td class="num">{whole(entries)}</td>
              <td class="num">{size(bytes)}</td>
              <td>
                {entries > 1 && (
                  <button
                    type="button"
                    aria-label={`Measure below ${prefix}`}
                    onClick={() => onOpen(prefix)}
                  >
                    Below
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rest > 0 && <p class="empty">{counted(rest, "smaller prefix", "smaller prefixes")}</p>}
    </div>
  );
}
