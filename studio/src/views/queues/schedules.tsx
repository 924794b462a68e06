// Duty: the schedules of a queue with a name: listed and removed.

import { useEffect, useState } from "preact/hooks";
import { type Schedule, schedules, unschedule } from "../../api/queues";
import { useActing, useNewest } from "../../parts/acting";
import { confirm } from "../../parts/dialog";
import { Empty } from "../../parts/empty";
import { duration } from "../../parts/figures";
import { Time } from "../../parts/time";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { say } from "../../shell/toasts";
import { preview } from "../../values/print";

export function SchedulesOf({ queue }: { readonly queue: string }) {
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const [listed, setListed] = useState<readonly Schedule[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const newest = useNewest();
  const load = (from?: string): void => {
    void newest(
      (signal) => schedules(queue, from, signal),
      (page) => {
        setListed((before) =>
          from === undefined ? page.schedules : [...before, ...page.schedules],
        );
        setCursor(page.cursor);
      },
    );
  };
  useEffect(() => load(), []);
  const remove = async ({ name }: Schedule): Promise<void> => {
    const isSure = await confirm({
      title: `Remove the schedule ${name}?`,
      text: "It makes no more messages. Those that it has made stay in the queue.",
      action: "Remove it",
    });
    if (!isSure) return;
    await unschedule(database, queue, name);
    say("Removed");
    load();
  };
  return (
    <section class="panel" aria-label="Schedules">
      <header>
        <h2 class="grow">Schedules</h2>
        <button type="button" onClick={() => load()}>
          Reload
        </button>
      </header>
      {listed.length === 0 && (
        <Empty
          what="There are no schedules."
          next="queue.schedule() or openkv queue schedule sets one: the queue gets a message at each due time."
        />
      )}
      {listed.length > 0 && (
        <div class="scroll" role="region" aria-label="Table of schedules" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Due</th>
                <th>Next</th>
                <th>If missed</th>
                <th>Value</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {listed.map((schedule) => (
                <tr key={schedule.name}>
                  <td>{schedule.name}</td>
                  <td class="mono">{timingOf(schedule)}</td>
                  <td>
                    <Time at={schedule.nextAt} />
                  </td>
                  <td>{schedule.missed}</td>
                  <td class="mono">{preview(schedule.value)}</td>
                  <td>
                    <button
                      type="button"
                      class="danger"
                      disabled={readOnly.value || isActing}
                      onClick={acting(() => remove(schedule))}
                    >
                      Remove
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {cursor !== null && (
        <div class="body">
          <button type="button" onClick={() => load(cursor)}>
            Load more
          </button>
        </div>
      )}
    </section>
  );
}

function timingOf({ cron, timeZone, every, offset }: Schedule): string {
  if (every === undefined) return `${cron} (${timeZone})`;
  return `every ${duration(every)}${offset ? `, ${duration(offset)} later` : ""}`;
}
