// Duty: the groups of a queue with a name that have messages which wait, and the limits; paused, resumed and drained.

import { useEffect, useState } from "preact/hooks";
import type { Depth } from "../../api/metrics";
import {
  type Group,
  type Groups,
  type Limit,
  drain,
  groups,
  pauseQueue,
  resumeQueue,
} from "../../api/queues";
import { useActing, useNewest } from "../../parts/acting";
import { confirm } from "../../parts/dialog";
import { Empty } from "../../parts/empty";
import { Fault } from "../../parts/fault";
import { counted, duration, whole } from "../../parts/figures";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { say } from "../../shell/toasts";

interface GroupsProps {
  readonly queue: string;
  /** How many messages there are, as far as is known: the list follows it. */
  readonly depth: Depth | undefined;
}

export function GroupsOf({ queue, depth }: GroupsProps) {
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const [listed, setListed] = useState<Groups>();
  const [fault, setFault] = useState("");
  const [reloads, setReloads] = useState(0);
  const newest = useNewest();
  const load = (from?: Groups): void => {
    void newest(
      (signal) => groups(queue, from?.cursor ?? undefined, signal),
      (page) => {
        setFault("");
        setListed({ ...page, groups: [...(from?.groups ?? []), ...page.groups] });
      },
      ({ message }) => setFault(message),
    );
  };
  const reload = (): void => setReloads((count) => count + 1);
  const pause = async ({ name, paused }: Group): Promise<void> => {
    await (paused ? resumeQueue : pauseQueue)(database, queue, name);
    reload();
  };
  const empty = async ({ name }: Group): Promise<void> => {
    const isSure = await confirm({
      title: `Drain the group ${name}?`,
      text: "Its messages that wait, also those that are delayed, are deleted. They leave no dead letters.",
      action: "Drain it",
    });
    if (!isSure) return;
    say(`Deleted ${counted(await drain(database, queue, name), "message", "messages")}`);
    reload();
  };
  const depths = depth && `${depth.pending} ${depth.delayed} ${depth.processing}`;
  useEffect(() => load(), [depths, reloads]);
  const all = listed?.groups ?? [];
  return (
    <section class="panel" aria-label="Groups">
      <header>
        <h2 class="grow">Groups</h2>
        <button type="button" onClick={reload}>
          Reload
        </button>
      </header>
      <Fault text={fault} />
      {listed !== undefined && (
        <p class="body soft">
          Limits of the queue: {limitText(listed.limits)}. Of each group:{" "}
          {limitText(listed.limits.group)}.
        </p>
      )}
      {listed !== undefined && all.length === 0 && (
        <Empty
          what="No group has messages that wait."
          next="The option group of an enqueue names the group of a message; groups take turns."
        />
      )}
      {all.length > 0 && (
        <div class="scroll" role="region" aria-label="Table of groups" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Group</th>
                <th scope="col" class="num">
                  Pending
                </th>
                <th scope="col" class="num">
                  Delayed
                </th>
                <th scope="col" class="num">
                  Processing
                </th>
                <th />
              </tr>
            </thead>
            <tbody>
              {all.map((group) => (
                <tr key={group.name}>
                  <td>
                    {group.name} {group.paused && <span class="badge warn">paused</span>}
                  </td>
                  <td class="num">{whole(group.pending)}</td>
                  <td class="num">{whole(group.delayed)}</td>
                  <td class="num">{whole(group.processing)}</td>
                  <td>
                    <div class="row end">
                      <button
                        type="button"
                        disabled={readOnly.value || isActing}
                        aria-label={`${group.paused ? "Resume" : "Pause"} the group ${group.name}`}
                        onClick={acting(() => pause(group))}
                      >
                        {group.paused ? "Resume" : "Pause"}
                      </button>
                      <button
                        type="button"
                        class="danger"
                        disabled={readOnly.value || isActing}
                        aria-label={`Drain the group ${group.name}`}
                        onClick={acting(() => empty(group))}
                      >
                        Drain
                      </button>
                    </div>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {listed?.cursor != null && (
        <div class="body">
          <button type="button" onClick={() => load(listed)}>
            Load more
          </button>
        </div>
      )}
    </section>
  );
}

/** A limit as text: `5 at a time, 10 in 1 min`. */
function limitText({ concurrency, rate }: Limit): string {
  const parts = [
    ...(concurrency === null ? [] : [`${whole(concurrency)} at a time`]),
    ...(rate === null ? [] : [`${whole(rate.limit)} in ${timeText(rate.per)}`]),
  ];
  return parts.length === 0 ? "none" : parts.join(", ");
}

const timeText = (ms: number): string => (ms % 1000 === 0 ? duration(ms) : `${whole(ms)} ms`);
