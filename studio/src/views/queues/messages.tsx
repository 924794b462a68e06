// Duty: the messages of a queue that wait or are delivered, by state; looked into without taking them, and deleted.

import { useEffect, useState } from "preact/hooks";
import type { Depth } from "../../api/metrics";
import {
  type PeekedMessage,
  STATES,
  type State,
  cancelMessage,
  deleteMessage,
  peek,
} from "../../api/queues";
import { useActing, useNewest } from "../../parts/acting";
import { confirm } from "../../parts/dialog";
import { Empty } from "../../parts/empty";
import { Fault } from "../../parts/fault";
import { counted, duration } from "../../parts/figures";
import { Countdown, Time, nowMs } from "../../parts/time";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { report, say } from "../../shell/toasts";
import { preview, printNode } from "../../values/print";
import type { Jobs } from "./jobs";
import { Known } from "./results";

interface MessagesProps {
  readonly queue: string;
  /** How many there are, as far as is known: the list follows it. */
  readonly depth: Depth | undefined;
  /** What is known of the messages; nothing in the default queue. */
  readonly jobs: Jobs | undefined;
}

interface Loaded {
  readonly messages: readonly PeekedMessage[];
  readonly cursor: string | null;
}

export function MessagesOf({ queue, depth, jobs }: MessagesProps) {
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const [state, setState] = useState<State>();
  const [loaded, setLoaded] = useState<Loaded>();
  const [fault, setFault] = useState("");
  const [reloads, setReloads] = useState(0);
  const newest = useNewest();
  const load = (from?: Loaded): void => {
    void newest(
      (signal) => peek(queue, state, from?.cursor ?? undefined, signal),
      ({ messages, cursor }) => {
        setFault("");
        setLoaded({ messages: [...(from?.messages ?? []), ...messages], cursor });
      },
      ({ message }) => setFault(message),
    );
  };
  const remove = async ({ id }: PeekedMessage): Promise<void> => {
    const isSure = await confirm({
      title: `Delete message ${id}?`,
      text: "No consumer gets it, and it leaves no dead letter.",
      action: "Delete it",
    });
    if (!isSure) return;
    await deleteMessage(database, queue, id);
    say("Deleted");
    setReloads((count) => count + 1);
  };
  const cancel = async ({ id }: PeekedMessage): Promise<void> => {
    const isSure = await confirm({
      title: `Cancel message ${id}?`,
      text: "A consumer has it: the signal of its handler aborts, and the message is not delivered again.",
      action: "Cancel it",
    });
    if (!isSure) return;
    await cancelMessage(database, queue, id);
    say("Cancelled");
    setReloads((count) => count + 1);
  };
  const depths = depth && `${depth.pending} ${depth.delayed} ${depth.processing}`;
  useEffect(() => load(), [state, depths, reloads]);
  return (
    <section class="panel" aria-label="Messages">
      <header>
        <h2 class="grow">Messages</h2>
        <div class="choice" role="group" aria-label="State of the messages">
          {[undefined, ...STATES].map((one) => (
            <button
              key={one ?? "all"}
              type="button"
              aria-pressed={one === state}
              onClick={() => setState(one)}
            >
              {one ?? "all"}
            </button>
          ))}
        </div>
        <button type="button" onClick={() => setReloads(reloads + 1)}>
          Reload
        </button>
      </header>
      <Fault text={fault} />
      {loaded?.messages.length === 0 && (
        <Empty
          what={`There are no ${state === undefined ? "" : `${state} `}messages.`}
          next={
            state === undefined
              ? "Enqueue one above. Messages stay here until a consumer has handled them."
              : "Messages in other states are shown with all."
          }
        />
      )}
      {loaded?.messages.map((message) => (
        <details
          key={message.id}
          class="letter"
          onToggle={(event) => {
            if (event.currentTarget.open) jobs?.look(message.id).catch(report);
          }}
        >
          <summary>
            Message {message.id} <StateOf message={message} />{" "}
            <ProgressOf id={message.id} jobs={jobs} />{" "}
            <span class="soft">
              {message.group !== undefined && `group ${message.group}, `}
              {message.priority > 0 && `priority ${message.priority}, `}
              {counted(message.attempts, "attempt", "attempts")}
            </span>
            <span class="preview mono">{preview(message.value)}</span>
          </summary>
          <p class="soft">
            Enqueued <Time at={message.enqueuedAt} />, due <Time at={message.dueAt} />
          </p>
          <pre class="shown">{printNode(message.value)}</pre>
          <KnownOf id={message.id} jobs={jobs} />
          <div class="row end">
            <button
              type="button"
              class="danger"
              disabled={readOnly.value || isActing}
              onClick={acting(() =>
                message.state === "processing" ? cancel(message) : remove(message),
              )}
            >
              {message.state === "processing" ? "Cancel" : "Delete"}
            </button>
          </div>
        </details>
      ))}
      {loaded?.cursor != null && (
        <div class="body">
          <button type="button" onClick={() => load(loaded)}>
            Load more
          </button>
        </div>
      )}
    </section>
  );
}

interface OfMessage {
  readonly id: string;
  readonly jobs: Jobs | undefined;
}

/** The last progress of a message, if one is known. */
function ProgressOf({ id, jobs }: OfMessage) {
  const value = jobs?.jobs.value.get(id)?.progress?.value;
  if (value === undefined) return null;
  return <span class="badge mono">{preview(value)}</span>;
}

function KnownOf({ id, jobs }: OfMessage) {
  const job = jobs?.jobs.value.get(id);
  return job === undefined ? null : <Known job={job} />;
}

function StateOf({ message }: { readonly message: PeekedMessage }) {
  const { state, lockedUntil, dueAt } = message;
  if (lockedUntil !== null) {
    const left = Date.parse(lockedUntil) - nowMs.value;
    const text = left > 0 ? `processing, locked for ${duration(left)}` : "lock expired";
    return <span class="badge warn">{text}</span>;
  }
  if (state === "pending") return <span class="badge">pending</span>;
  return (
    <span class="badge">
      delayed, due <Countdown until={Date.parse(dueAt)} past="now" />
    </span>
  );
}
