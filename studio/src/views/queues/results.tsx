// Duty: what is known of the messages of a queue whose results are kept: their states, progress and results, live.

import { useState } from "preact/hooks";
import { Empty } from "../../parts/empty";
import { counted } from "../../parts/figures";
import { Time } from "../../parts/time";
import { reporting } from "../../shell/toasts";
import { preview, printNode } from "../../values/print";
import { type Job, type Jobs, hasEnded, newestFirst, resultOf } from "./jobs";

/** Messages that are drawn. */
const SHOWN_MAX = 100;

const SHOWN = { all: () => true, running: (job: Job) => !hasEnded(job), ended: hasEnded } as const;

export function ResultsOf({ jobs }: { readonly jobs: Jobs }) {
  const [choice, setChoice] = useState<keyof typeof SHOWN>("all");
  const [drawn, setDrawn] = useState(SHOWN_MAX);
  const listed = newestFirst(jobs.jobs.value).filter(SHOWN[choice]);
  const hasMore = listed.length > drawn || jobs.hasMore;
  const more = async (): Promise<void> => {
    if (listed.length <= drawn + SHOWN_MAX && jobs.hasMore) await jobs.more();
    setDrawn(drawn + SHOWN_MAX);
  };
  return (
    <section class="panel" aria-label="Results">
      <header>
        <h2 class="grow">Results</h2>
        <div class="choice" role="group" aria-label="Results that are shown">
          {(Object.keys(SHOWN) as (keyof typeof SHOWN)[]).map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === choice}
              onClick={() => setChoice(one)}
            >
              {one}
            </button>
          ))}
        </div>
      </header>
      {listed.length === 0 && (
        <Empty
          what="Nothing is known of messages."
          next="With the option keepResult of an enqueue or of kv.queue, results and progress are kept and shown here as they come."
        />
      )}
      {listed.slice(0, drawn).map((job) => (
        <Result key={job.id} job={job} />
      ))}
      {hasMore && (
        <div class="body">
          <button type="button" onClick={reporting(more)}>
            Load more
          </button>
        </div>
      )}
    </section>
  );
}

/** The badges of states that call for attention. */
const BADGES: Readonly<Record<string, string>> = { failed: "warn", dead: "danger" };

function Result({ job }: { readonly job: Job }) {
  const { id, last, progress } = job;
  const { at, attempts } = last ?? progress!;
  const shown = resultOf(job) ?? progress?.value;
  return (
    <details class="letter">
      <summary>
        Message {id}{" "}
        <span class={`badge ${BADGES[last?.type ?? ""] ?? ""}`}>{last?.type ?? "started"}</span>{" "}
        <span class="soft">
          {attempts !== undefined && `${counted(attempts, "attempt", "attempts")}, `}
          <Time at={at} />
        </span>{" "}
        {last?.error !== undefined && (
          <>
            <span class="badge danger">{last.errorName}</span> {last.error}
          </>
        )}
        {shown !== undefined && <span class="preview mono">{preview(shown)}</span>}
      </summary>
      <Known job={job} />
    </details>
  );
}

/** The progress and the result of a message. */
export function Known({ job }: { readonly job: Job }) {
  const { last, progress } = job;
  const result = resultOf(job);
  return (
    <>
      {progress?.value !== undefined && (
        <>
          <p class="soft">
            Progress, <Time at={progress.at} />
          </p>
          <pre class="shown">{printNode(progress.value)}</pre>
        </>
      )}
      {result !== undefined && (
        <>
          <p class="soft">
            Result, <Time at={last!.at} />
          </p>
          <pre class="shown">{printNode(result)}</pre>
        </>
      )}
    </>
  );
}
