// Duty: the view of queues: their depths, and of one of them its messages.

import { useState } from "preact/hooks";
import { useSamples } from "../../api/metrics";
import { Depths, queueName } from "../../parts/depths";
import { route, setParams } from "../../shell/router";
import { DeadLettersOf } from "./dead-letters";
import { EnqueueForm } from "./enqueue-form";
import { Look } from "./look";
import { MessagesOf } from "./messages";
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
      <h2 class="grow">Queue {queueName(queue)}</h2>
      <div class="charts">
        <EnqueueForm key={queue} queue={queue} />
        <Look key={`look ${queue}`} queue={queue} />
      </div>
      <MessagesOf key={`messages ${queue}`} queue={queue} depth={known[queue]} />
      {queue !== "" && <SchedulesOf key={`schedules ${queue}`} queue={queue} />}
      <DeadLettersOf
        key={`${queue} ${loads}`}
        queue={queue}
        dead={known[queue]?.dead ?? 0}
        onReload={() => setLoads(loads + 1)}
      />
    </div>
  );
}
