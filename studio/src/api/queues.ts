// Duty: requests about queues.

import { type Node, readable } from "../values/node";
import { ask, askJson } from "./request";

/** A message that this page has taken. */
export interface Message {
  readonly id: string;
  readonly lock: string;
  readonly value: Node;
  readonly attempts: number;
  readonly enqueuedAt: string;
}

export const STATES = ["pending", "delayed", "processing"] as const;
export type State = (typeof STATES)[number];

/** A message that is looked at and not taken. */
export interface PeekedMessage {
  readonly id: string;
  readonly value: Node;
  readonly state: State;
  readonly priority: number;
  readonly group?: string;
  readonly attempts: number;
  readonly enqueuedAt: string;
  readonly dueAt: string;
  readonly lockedUntil: string | null;
}

export interface PeekedMessages {
  readonly messages: readonly PeekedMessage[];
  readonly cursor: string | null;
}

/** What may run of a queue or of a group; `null`: any. */
export interface Limit {
  readonly concurrency: number | null;
  /** So many deliveries in so many ms. */
  readonly rate: { readonly limit: number; readonly per: number } | null;
}

/** A group with messages that wait. */
export interface Group {
  readonly name: string;
  readonly pending: number;
  readonly delayed: number;
  readonly processing: number;
  readonly paused: boolean;
}

export interface Groups {
  readonly limits: Limit & { readonly group: Limit };
  readonly groups: readonly Group[];
  readonly cursor: string | null;
}

export interface Schedule {
  readonly name: string;
  readonly cron?: string;
  readonly timeZone?: string;
  readonly every?: number;
  readonly offset?: number;
  readonly missed: string;
  readonly nextAt: string;
  readonly value: Node;
}

export interface SchedulesPage {
  readonly schedules: readonly Schedule[];
  readonly cursor: string | null;
}

export interface DeadLetter {
  readonly id: string;
  readonly value: Node;
  readonly attempts: number;
  readonly enqueuedAt: string;
  readonly diedAt: string;
  readonly errorName: string;
  readonly error: string;
}

export interface DeadLetters {
  readonly messages: readonly DeadLetter[];
  readonly cursor: string | null;
  readonly hasMore: boolean;
}

export interface NewMessage {
  readonly value: Node;
  readonly delay?: number;
  readonly priority?: number;
}

/** Messages, dead letters and groups of a page. */
const PAGE_MESSAGES = 50;
/** For how long a message that is looked at is hidden from consumers. */
export const LOOK_MS = 60_000;

export const enqueue = (
  database: string,
  queue: string,
  message: NewMessage,
): Promise<{ id: string | null }> =>
  askJson("/queue/enqueue", { database, query: { queue }, body: message });

export async function take(database: string, queue: string): Promise<Message | null> {
  const query = { queue, lockDuration: LOOK_MS };
  const { message } = await askJson<{ message: Message | null }>("/queue/poll", {
    database,
    query,
  });
  return message && readable(message);
}

/** Whether the lock of a message was still held. */
const held = async (
  database: string,
  path: "/queue/ack" | "/queue/extend" | "/queue/nack",
  body: object,
): Promise<boolean> => (await askJson<{ ok: boolean }>(path, { database, body })).ok;

export const acknowledge = (database: string, { id, lock }: Message): Promise<boolean> =>
  held(database, "/queue/ack", { id, lock });

export const extend = (database: string, { id, lock }: Message): Promise<boolean> =>
  held(database, "/queue/extend", { id, lock, lockDuration: LOOK_MS });

export const giveBack = (database: string, { id, lock }: Message): Promise<boolean> =>
  held(database, "/queue/nack", { id, lock, delay: 0, error: "given back in the studio" });

/** A page of the messages of a queue, in one state or in any; none of them is taken. */
export async function peek(
  queue: string,
  state: State | undefined,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<PeekedMessages> {
  const query = { queue, state, limit: PAGE_MESSAGES, cursor };
  const page = await askJson<PeekedMessages>("/queue/messages", { query, signal });
  return { ...page, messages: page.messages.map(readable) };
}

/** Deletes a message that no consumer has. */
export async function deleteMessage(database: string, queue: string, id: string): Promise<void> {
  await ask("/queue/messages/{id}", { database, method: "DELETE", id, query: { queue } });
}

/** Removes a message, also one that a consumer has: this aborts the signal of its handler. */
export async function cancelMessage(database: string, queue: string, id: string): Promise<void> {
  await ask("/queue/messages/{id}/cancel", { database, method: "POST", id, query: { queue } });
}

export async function isPaused(queue: string, signal: AbortSignal): Promise<boolean> {
  const request = { query: { queue }, signal };
  return (await askJson<{ paused: boolean }>("/queue/stats", request)).paused;
}

export async function pauseQueue(database: string, queue: string, group?: string): Promise<void> {
  await ask("/queue/pause", { database, method: "POST", query: { queue, group } });
}

export async function resumeQueue(database: string, queue: string, group?: string): Promise<void> {
  await ask("/queue/resume", { database, method: "POST", query: { queue, group } });
}

/** Deletes the messages that wait, also those that are not due yet, and returns how many. */
export async function drain(database: string, queue: string, group?: string): Promise<number> {
  const request = { database, method: "POST", query: { queue, group, delayed: true } };
  return (await askJson<{ deleted: number }>("/queue/drain", request)).deleted;
}

/** A page of the groups of a queue that have messages which wait, with the limits of the queue. */
export function groups(
  queue: string,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Groups> {
  const query = { queue, limit: PAGE_MESSAGES, cursor };
  return askJson("/queue/groups", { query, signal });
}

export async function schedules(
  queue: string,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<SchedulesPage> {
  const query = { queue, limit: PAGE_MESSAGES, cursor };
  const page = await askJson<SchedulesPage>("/queue/schedules", { query, signal });
  return { ...page, schedules: page.schedules.map(readable) };
}

export async function unschedule(database: string, queue: string, name: string): Promise<void> {
  await ask("/queue/schedules/{name}", { database, method: "DELETE", name, query: { queue } });
}

export async function deadLetters(
  queue: string,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<DeadLetters> {
  const query = { queue, limit: PAGE_MESSAGES, cursor };
  const page = await askJson<DeadLetters>("/queue/dlq", { query, signal });
  return { ...page, messages: page.messages.map(readable) };
}

export async function requeue(database: string, queue: string, id: string): Promise<void> {
  await ask("/queue/dlq/{id}/requeue", { database, method: "POST", id, query: { queue } });
}

interface Requeued {
  readonly requeued: number;
  readonly left: number;
}

/** Enqueues the dead letters of a queue again, and returns how many: not more than there are now. */
export async function requeueAll(database: string, queue: string): Promise<number> {
  let count = 0;
  /** Those that there were before the first request: one that dies again is not requeued again. */
  let all = Number.POSITIVE_INFINITY;
  while (count < all) {
    const path = "/queue/dlq/requeue";
    const answer = await askJson<Requeued>(path, { database, method: "POST", query: { queue } });
    count += answer.requeued;
    all = Math.min(all, answer.requeued + answer.left);
    if (answer.requeued === 0) break;
  }
  return count;
}

export async function deleteDead(database: string, queue: string, id: string): Promise<void> {
  await ask("/queue/dlq/{id}", { database, method: "DELETE", id, query: { queue } });
}

export async function purge(database: string, queue: string): Promise<number> {
  const request = { database, method: "DELETE", query: { queue } };
  return (await askJson<{ deleted: number }>("/queue/dlq", request)).deleted;
}
