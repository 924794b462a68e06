// Duty: the name of the open queue, whether it is paused; pauses, resumes and drains it.

import { useEffect, useState } from "preact/hooks";
import type { Depth } from "../../api/metrics";
import { drain, isPaused, pauseQueue, resumeQueue } from "../../api/queues";
import { useActing, useNewest } from "../../parts/acting";
import { queueName } from "../../parts/depths";
import { confirm } from "../../parts/dialog";
import { counted } from "../../parts/figures";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { say } from "../../shell/toasts";

interface QueueHeadProps {
  readonly queue: string;
  /** How many messages there are, as far as is known: the head follows it. */
  readonly depth: Depth | undefined;
}

export function QueueHead({ queue, depth }: QueueHeadProps) {
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const [paused, setPaused] = useState(false);
  const depths = depth && Object.values(depth).join(" ");
  const newest = useNewest();
  const load = (): void => void newest((signal) => isPaused(queue, signal), setPaused);
  useEffect(load, [depths]);
  const toggle = async (): Promise<void> => {
    await (paused ? resumeQueue : pauseQueue)(database, queue);
    load();
  };
  const empty = async (): Promise<void> => {
    const isSure = await confirm({
      title: `Drain the queue ${queueName(queue)}?`,
      text: "Its messages that wait, also those that are delayed, are deleted. They leave no dead letters.",
      action: "Drain it",
    });
    if (isSure) say(`Deleted ${counted(await drain(database, queue), "message", "messages")}`);
  };
  return (
    <div class="row">
      <h2 class="grow">
        Queue {queueName(queue)} {paused && <span class="badge warn">paused</span>}
      </h2>
      <button
        type="button"
        disabled={readOnly.value || isActing}
        aria-label={`${paused ? "Resume" : "Pause"} the queue`}
        onClick={acting(toggle)}
      >
        {paused ? "Resume" : "Pause"}
      </button>
      <button
        type="button"
        class="danger"
        disabled={readOnly.value || isActing}
        aria-label="Drain the queue"
        onClick={acting(empty)}
      >
        Drain
      </button>
    </div>
  );
}
