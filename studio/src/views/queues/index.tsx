// Duty: the view of queues: their depths, and of one of them its messages.

import { useEffect, useMemo, useState } from "preact/hooks";
import { type Depth, useSamples } from "../../api/metrics";
import { Depths } from "../../parts/depths";
import { route, setParams } from "../../shell/router";
import { DeadLettersOf } from "./dead-letters";
import { EnqueueForm } from "./enqueue-form";
import { GroupsOf } from "./groups";
import { Jobs } from "./jobs";
import { Look } from "./look";
import { MessagesOf } from "./messages";
import { QueueHead } from "./queue-head";
import { ResultsOf } from "./results";
import { SchedulesOf } from "./schedules";

export function Queues() {
  const samples = useSamples();
  const known = samples.at(-1)?.metrics.queues ?? {};
  const { queue = "" } = route.value.params;
  const [other, setOther] = useState("");
  const [loads, setLoads] = useState(0);
  const names = [...new Set(["", queue, ...Object.keys(known)])].sort();
  return (
    <div class="view">
      <section class="panel" aria-label="All queues">
        <header>
          <h2 class="grow">Queues</h2>
          <form
            class="row"
            onSubmit={(event) => {
              event.preventDefault();
              setParams({ queue: other });
            }}
          >
            <input
              aria-label="Name of a queue"
              data-find
              placeholder="Another queue"
              value={other}
              onInput={(event) => setOther(event.currentTarget.value)}
            />
            <button type="submit">Open</button>
          </form>
        </header>
        <Depths queues={names} known={known} open={queue} />
      </section>
      <QueueHead key={`head ${queue}`} queue={queue} depth={known[queue]} />
      <div class="charts">
        <EnqueueForm key={queue} queue={queue} />
        <Look key={`look ${queue}`} queue={queue} />
      </div>
      {queue === "" ? (
        <MessagesOf key="messages" queue={queue} depth={known[queue]} jobs={undefined} />
      ) : (
        <NamedQueue key={`named ${queue}`} queue={queue} depth={known[queue]} />
      )}
      <DeadLettersOf
        key={`${queue} ${loads}`}
        queue={queue}
        dead={known[queue]?.dead ?? 0}
        onReload={() => setLoads(loads + 1)}
      />
    </div>
  );
}

interface NamedQueueProps {
  readonly queue: string;
  readonly depth: Depth | undefined;
}

/** What only a queue with a name has, beside its messages. */
function NamedQueue({ queue, depth }: NamedQueueProps) {
  const jobs = useMemo(() => new Jobs(queue), []);
  useEffect(() => {
    jobs.begin();
    return () => jobs.end();
  }, []);
  return (
    <>
      <MessagesOf queue={queue} depth={depth} jobs={jobs} />
      <ResultsOf jobs={jobs} />
      <GroupsOf queue={queue} depth={depth} />
      <SchedulesOf queue={queue} />
    </>
  );
}
