// Duty: what is known of the messages of a queue: a page of it, and the events that follow.

import { type Entry, type Node, readable } from "../values/node";
import { list } from "./entries";
import { type StreamEvent, follow } from "./stream";

/** What can happen to a message. */
export const EVENTS = [
  "enqueued",
  "started",
  "progress",
  "failed",
  "completed",
  "dead",
  "cancelled",
] as const;
export type EventType = (typeof EVENTS)[number];

/** What has happened to a message. */
export interface MessageEvent {
  readonly type: EventType;
  readonly id: string;
  /** RFC 3339. */
  readonly at: string;
  readonly attempts?: number;
  /** Of progress, and of a message that is completed. */
  readonly value?: Node;
  readonly errorName?: string;
  readonly error?: string;
  readonly versionstamp: string;
}

export interface EventsPage {
  readonly events: readonly MessageEvent[];
  readonly cursor: string | null;
}

/** The first part of the keys of the entries that tell of messages (docs/format.md). */
const JOB_ENTRIES = "openkv:jobs";
/** Entries of a page; a message has some three of them. */
const PAGE_ENTRIES = 1000;

const part = (value: string): Node => ({ type: "string", value });

/** A page of what is known of the messages of a queue, in the descending order of their ids as texts; or of one message. */
export async function knownEvents(
  queue: string,
  { id, cursor }: { readonly id?: string; readonly cursor?: string },
  signal: AbortSignal,
): Promise<EventsPage> {
  const prefix = [part(JOB_ENTRIES), part(queue), ...(id === undefined ? [] : [part(id)])];
  const listing = { prefix, limit: PAGE_ENTRIES, reverse: true };
  const page = await list({ ...listing, ...(cursor !== undefined && { cursor }) }, signal);
  return { events: page.entries.flatMap(eventOf), cursor: page.cursor };
}

/** The event that an entry tells; none for an entry of another form, which anyone who may write can store. */
function eventOf({ key, value, versionstamp }: Entry): MessageEvent[] {
  const [, , id, name] = key.map((one) => String(one.value));
  const type = EVENTS.find((known) => known === name);
  if (id === undefined || type === undefined || value?.type !== "object") return [];
  const { at, attempts, value: result, error } = value.value as Record<string, Node>;
  if (at?.type !== "Date" || versionstamp === null) return [];
  const of = error?.type === "object" ? (error.value as Record<string, Node>) : undefined;
  return [
    {
      ...{ type, id, at: String(at.value), versionstamp },
      ...(attempts && { attempts: Number(attempts.value) }),
      ...(result && { value: result }),
      ...(of && { errorName: String(of.name?.value), error: String(of.message?.value) }),
    },
  ];
}

interface Following {
  /** The stream has a position: what is listed from now on misses nothing that it will not tell. */
  onPosition(): void;
  onEvents(events: readonly MessageEvent[]): void;
  onBreak(error: unknown): void;
}

/** Follows what happens to the messages of a queue, until the signal ends it. */
export function followEvents(queue: string, signal: AbortSignal, to: Following): void {
  let isPlaced = false;
  const take = ({ type, id, data }: StreamEvent): void => {
    // The first ping of a connection has no id: the stream has a position with the next event. Behind a gap events are
    // missing, so the list is read again.
    if ((!isPlaced && id !== "") || type === "gap") to.onPosition();
    isPlaced ||= id !== "";
    if (type === "events") to.onEvents((JSON.parse(data) as MessageEvent[]).map(readable));
  };
  void follow("/queue/events", { queue }, signal, take, to.onBreak);
}
