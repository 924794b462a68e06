// Duty: what is known of each message of a queue: its last state, progress and result, kept up to date by events.
// Invariant: an event that is older than what is known changes nothing, so lists and events may come in any order.

import { signal } from "@preact/signals";
import { type EventType, type MessageEvent, followEvents, knownEvents } from "../../api/jobs";
import { report } from "../../shell/toasts";
import type { Node } from "../../values/node";

/** What is known of a message. */
export interface Job {
  readonly id: string;
  /** What happened last, beside its progress; undefined while only that is known. */
  readonly last: MessageEvent | undefined;
  readonly progress: MessageEvent | undefined;
}

/** Messages that are kept, those with the highest ids. */
const JOBS_MAX = 5000;

const newer = (before: MessageEvent | undefined, event: MessageEvent): MessageEvent | undefined =>
  before === undefined || before.versionstamp <= event.versionstamp ? event : before;

/** What is known with these events too. */
export function withEvents(
  jobs: ReadonlyMap<string, Job>,
  events: readonly MessageEvent[],
): ReadonlyMap<string, Job> {
  const known = new Map(jobs);
  for (const event of events) {
    const { id } = event;
    const job = known.get(id) ?? { id, last: undefined, progress: undefined };
    const changed =
      event.type === "progress"
        ? { progress: newer(job.progress, event) }
        : { last: newer(job.last, event) };
    known.set(id, { ...job, ...changed });
  }
  if (known.size <= JOBS_MAX) return known;
  return new Map(
    newestFirst(known)
      .slice(0, JOBS_MAX)
      .map((job) => [job.id, job]),
  );
}

/** The messages by their ids, which are numbers in the order of the enqueueing. */
export const newestFirst = (jobs: ReadonlyMap<string, Job>): Job[] =>
  [...jobs.values()].sort((a, b) => Number(b.id) - Number(a.id));

/** The states in which a message has ended. */
const ENDS: readonly (EventType | undefined)[] = ["completed", "dead", "cancelled"];
export const hasEnded = ({ last }: Job): boolean => ENDS.includes(last?.type);

/** What the handler has returned; undefined if the message is not completed. */
export const resultOf = ({ last }: Job): Node | undefined =>
  last?.type === "completed" ? last.value : undefined;

/** What is known of the messages of a queue. */
export class Jobs {
  readonly jobs = signal<ReadonlyMap<string, Job>>(new Map());
  readonly #cursor = signal<string | null>(null);
  readonly #queue: string;
  readonly #ending = new AbortController();
  #isBroken = false;

  constructor(queue: string) {
    this.#queue = queue;
  }

  /** Begins to follow, once the view is in the page. */
  begin(): void {
    followEvents(this.#queue, this.#ending.signal, {
      onPosition: () => this.#list().catch(report),
      onEvents: (events) => {
        this.#isBroken = false;
        this.#take(events);
      },
      onBreak: (error) => {
        if (!this.#isBroken) report(error);
        this.#isBroken = true;
      },
    });
  }

  end(): void {
    this.#ending.abort();
  }

  /** Whether there are messages that are neither listed nor followed, and room for them. */
  get hasMore(): boolean {
    return this.#cursor.value !== null && this.jobs.value.size < JOBS_MAX;
  }

  /** Lists the messages behind those that are listed. */
  more(): Promise<void> {
    return this.#list(this.#cursor.value ?? undefined);
  }

  /** Reads what is known of one message. */
  async look(id: string): Promise<void> {
    this.#take((await knownEvents(this.#queue, { id }, this.#ending.signal)).events);
  }

  async #list(from?: string): Promise<void> {
    const of = from === undefined ? {} : { cursor: from };
    const { events, cursor } = await knownEvents(this.#queue, of, this.#ending.signal);
    this.#cursor.value = cursor;
    this.#take(events);
  }

  #take(events: readonly MessageEvent[]): void {
    if (events.length > 0) this.jobs.value = withEvents(this.jobs.value, events);
  }
}
