// Duty: wakes callers that wait for jobs or events of a queue: at once for a commit of this process, and by a watch of
// the database for those of others. There is one watch for a queue and a kind, while backends of it are open.

import type { Kv, KvKey } from "openkv";
import type { Head } from "./bullmq-job.js";

/** After a failure a watch begins again so many milliseconds later. */
const AGAIN_MS = 1000;

// Kept before a test replaces it, as in bullmq-lane.ts.
const setTimer = globalThis.setTimeout;

export type Kind = "jobs" | "events";

/** The entry of a queue that changes with what somebody waits for. */
const WATCHED = { jobs: "mark", events: "head" } as const;

interface Watched {
  listeners: Set<() => void>;
  users: number;
  stop: AbortController | null;
  /** The last number of which this process has notified its listeners: the watch of it wakes none again. */
  notified: number;
}

export class Waiting {
  readonly #kv: Kv;
  readonly #base: KvKey;
  readonly #watched = new Map<string, Watched>();

  constructor(kv: Kv, base: KvKey) {
    this.#kv = kv;
    this.#base = base;
  }

  #of(queue: string, kind: Kind): Watched {
    const name = `${kind} ${queue}`;
    let watched = this.#watched.get(name);
    if (watched === undefined) {
      watched = { listeners: new Set(), users: 0, stop: null, notified: 0 };
      this.#watched.set(name, watched);
    }
    return watched;
  }

  /** Begins to watch a queue for other processes; answers what ends it. */
  use(queue: string, kind: Kind, failed: (error: unknown) => void): () => void {
    const watched = this.#of(queue, kind);
    watched.users += 1;
    if (watched.stop === null) {
      watched.stop = new AbortController();
      void this.#watchAll(queue, kind, watched, watched.stop.signal, failed);
    }
    return () => {
      watched.users -= 1;
      if (watched.users > 0) return;
      watched.stop?.abort();
      watched.stop = null;
      if (watched.listeners.size === 0) this.#watched.delete(`${kind} ${queue}`);
    };
  }

  /** Watches until the signal or the closing of the handle, again after a failure. */
  async #watchAll(
    queue: string,
    kind: Kind,
    watched: Watched,
    signal: AbortSignal,
    failed: (error: unknown) => void,
  ): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#watch(queue, kind, watched, signal);
        return;
      } catch (error) {
        if ((error as Error).name === "BadResource") return;
        failed(error);
        await new Promise((resolve) => setTimer(resolve, AGAIN_MS).unref());
      }
    }
  }

  async #watch(queue: string, kind: Kind, watched: Watched, signal: AbortSignal): Promise<void> {
    const key = [...this.#base, queue, WATCHED[kind]];
    const reader = this.#kv.watch<[number | Head]>([key], { signal }).getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done || signal.aborted) return;
        const now = value[0].value;
        const number = now === null ? 0 : typeof now === "number" ? now : now.event;
        if (number !== watched.notified) this.#wake(watched);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Wakes those who wait for jobs before the commit that adds one, so that they take it in the same. */
  offer(queue: string): void {
    const watched = this.#watched.get(`jobs ${queue}`);
    if (watched !== undefined) this.#wake(watched);
  }

  /** A commit of this process has changed a queue. */
  tell(queue: string, kind: Kind, number: number): void {
    const watched = this.#watched.get(`${kind} ${queue}`);
    if (watched === undefined) return;
    watched.notified = number;
    this.#wake(watched);
  }

  #wake({ listeners }: Watched): void {
    for (const listener of [...listeners]) listener();
  }

  /** Calls a function at each change until the answer is called. */
  listen(queue: string, kind: Kind, listener: () => void): () => void {
    const { listeners } = this.#of(queue, kind);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }
}
