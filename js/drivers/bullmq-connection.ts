// Duty: what a backend of BullMQ is beside its operations: its names, its life from ready to closed, its presence in
// the list of clients, and waiting for jobs and events.

import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import type { KvKey } from "openkv";
import type { QueueEvent } from "./bullmq-batch.js";
import { hasJob } from "./bullmq-job.js";
import type { Manner, Operation } from "./bullmq-lane.js";
import type { Place, SharedPlace } from "./bullmq-place.js";
import { nextDue } from "./bullmq-states.js";

const PREFIX_DEFAULT = "bull";
/** Entries of events that one call answers; each has those of a commit. */
const EVENT_ENTRIES_MAX = 100;
/** Timers of JavaScript go so far. */
const TIMER_MS_MAX = 2 ** 31 - 1;
const SECOND_MS = 1000;
const DAY_SECONDS = 86_400;
/** A client that has not renewed its entry for so many of its intervals is gone. */
const PRESENCE_INTERVALS = 3;
const PRESENCE_INTERVAL_MS_DEFAULT = 30_000;
/** A worker that could not ask for a job asks again so many milliseconds later. */
const AGAIN_MS = 1000;

type Woken = { member: string; score: number } | null;

export class Connection extends EventEmitter {
  readonly shared: SharedPlace;
  readonly prefix: string;
  readonly #name: string;
  readonly qualifiedName: string;
  readonly #id = randomUUID();
  /** The name of a client that the list of clients has, as workers are found. */
  #client: string | null;
  #owns = true;
  #ready: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #interrupted = false;
  #presentSince = -Infinity;
  /** The last event that there was when somebody began to read "from now on". */
  #start: number | undefined;
  /** The last attempt to get a job, if it has failed, and the pause after it. */
  #failure: { error: unknown; pause: Promise<void> } | undefined;
  readonly #uses = new Map<string, () => void>();
  readonly #cancels = new Set<() => void>();

  constructor(
    shared: SharedPlace,
    name: string,
    prefix: string | undefined,
    clientSuffix: string | null,
  ) {
    super();
    this.shared = shared;
    this.prefix = prefix ?? PREFIX_DEFAULT;
    this.#name = name;
    this.qualifiedName = `${this.prefix}:${name}`;
    this.#client = clientSuffix === null ? null : this.clientName(clientSuffix);
    shared.use();
  }

  /** Makes this backend one that lives with another. */
  borrow(_owner: Connection): this {
    this.#owns = false;
    void this.shared.release();
    return this;
  }

  // Names

  /** The entries of a queue have no single keys. */
  get keys(): Record<string, string> {
    return {};
  }

  toKey(type: string): string {
    return `${this.qualifiedName}:${type}`;
  }

  parseNodeKey(key: string): { prefix: string; queueName: string; id: string } {
    const last = key.lastIndexOf(":");
    const before = key.lastIndexOf(":", last - 1);
    return {
      prefix: key.slice(0, Math.max(before, 0)),
      queueName: key.slice(before + 1, last),
      id: key.slice(last + 1),
    };
  }

  clientName(suffix = ""): string {
    return `${this.prefix}:${Buffer.from(this.#name).toString("base64")}${suffix}`;
  }

  // Life

  get closing(): Promise<void> | undefined {
    return this.#closing;
  }

  /** The place of the queues. BullMQ knows these words as those of a connection that it has closed itself. */
  async place(): Promise<Place> {
    if (this.#closing !== undefined) throw new Error("Connection is closed.");
    return await this.shared.open();
  }

  /** Executes an operation in a commit. */
  protected write<T>(run: Operation<T>, manner?: Manner): Promise<T> {
    const open = this.#closing === undefined ? this.shared.opened : undefined;
    return open === undefined
      ? this.place().then(({ lane }) => lane.write(run, manner))
      : open.lane.write(run, manner);
  }

  waitUntilReady(): Promise<void> {
    if (this.#ready !== undefined) return this.#ready;
    const ready = (async () => {
      const { lane } = await this.shared.open();
      this.#start ??= await this.#lastEvent(lane);
      await this.#writePresence(PRESENCE_INTERVAL_MS_DEFAULT);
      this.emit("ready");
    })();
    this.#ready = ready;
    // The next call tries again.
    ready.catch(() => {
      if (this.#ready === ready) this.#ready = undefined;
    });
    return ready;
  }

  close(_force = false): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#cancelAll();
    for (const end of this.#uses.values()) end();
    this.#uses.clear();
    if (!this.#owns) return;
    if (this.#client !== null && this.#presentSince > -Infinity) {
      const { kv, base } = await this.shared.open();
      await kv.delete(this.#presenceKey(base)).catch(() => {});
    }
    await this.shared.release();
    this.emit("close");
  }

  async disconnect(): Promise<void> {
    this.#interrupted = true;
    this.#cancelAll();
  }

  #cancelAll(): void {
    for (const cancel of [...this.#cancels]) cancel();
  }

  // Presence

  async setName(name: string): Promise<void> {
    this.#client = name;
    this.#presentSince = -Infinity;
    await this.#writePresence(PRESENCE_INTERVAL_MS_DEFAULT);
  }

  #presenceKey(base: KvKey): KvKey {
    return [...base, this.qualifiedName, "client", this.#id];
  }

  /** Has the presence of this client written that nobody waits for. */
  tellPresence(intervalMs: number): void {
    this.#writePresence(intervalMs).catch((error: unknown) => this.emit("error", error));
  }

  /** Writes that this client is there, once in an interval. It is no more three intervals after it has ended without a word. */
  async #writePresence(intervalMs: number): Promise<void> {
    const now = performance.now();
    if (this.#client === null || now < this.#presentSince + intervalMs || this.#closing) return;
    this.#presentSince = now;
    const { kv, base } = await this.shared.open();
    const expireIn = Math.max(intervalMs, PRESENCE_INTERVAL_MS_DEFAULT) * PRESENCE_INTERVALS;
    await kv.set(this.#presenceKey(base), this.#client, { expireIn });
  }

  async getClientList(): Promise<string[]> {
    const { kv, base } = await this.place();
    const prefix = [...base, this.qualifiedName, "client"];
    const entries = await kv.list<string>({ prefix }).toArray();
    return [entries.map(({ key, value }) => `id=${String(key.at(-1))} name=${value}`).join("\n")];
  }

  // Waiting

  get minimumBlockTimeout(): number {
    return 1 / SECOND_MS;
  }

  get maximumBlockTimeout(): number {
    return DAY_SECONDS;
  }

  /** Watches this queue from now until the backend is closed. */
  #use({ waiting }: Place, kind: "jobs" | "events"): void {
    if (this.#uses.has(kind) || this.#closing !== undefined) return;
    const failed = (error: unknown) => this.emit("error", error);
    this.#uses.set(kind, waiting.use(this.qualifiedName, kind, failed));
  }

  /**
   * Executes an attempt to get a job. BullMQ repeats one that fails at once, so the one after it waits first; what ends
   * waiting ends that too, and the attempt fails as the one before.
   */
  protected async attempt<T>(run: () => Promise<T>): Promise<T> {
    const failure = this.#failure;
    try {
      await failure?.pause;
      if (failure !== undefined && this.#isInterrupted()) throw failure.error;
      const answer = await run();
      this.#failure = undefined;
      return answer;
    } catch (error) {
      this.#failure = { error, pause: this.#pause(AGAIN_MS) };
      throw error;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#cancels.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#cancels.add(end);
    });
  }

  /** Waits until a job may be there, or a delayed one is due. */
  async waitForJob(blockTimeout: number): Promise<Woken> {
    await this.#failure?.pause;
    if (this.#isInterrupted()) return null;
    return await this.attempt(() => this.#waitForJob(blockTimeout));
  }

  async #waitForJob(blockTimeout: number): Promise<Woken> {
    const place = await this.shared.open();
    if (this.#isInterrupted()) return null;
    this.#use(place, "jobs");
    if (place.lane.hasJob(this.qualifiedName)) return { member: "0", score: 0 };
    return await new Promise<Woken>((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const end = (woken: Woken): void => {
        clearTimeout(timer);
        unlisten();
        this.#cancels.delete(cancel);
        resolve(woken);
      };
      const cancel = (): void => end(null);
      const wake = (): void => end({ member: "0", score: 0 });
      const unlisten = place.waiting.listen(this.qualifiedName, "jobs", wake);
      this.#cancels.add(cancel);
      const arm = (ms: number): void => {
        clearTimeout(timer);
        timer = setTimeout(cancel, Math.min(ms, TIMER_MS_MAX));
      };
      arm(blockTimeout * SECOND_MS);
      // A job that came before the listener.
      const look = place.lane.read(async (queues) => {
        const view = await queues(this.qualifiedName);
        return hasJob(view.head) ? "now" : await nextDue(view);
      });
      look.then(
        (due) => {
          if (!this.#cancels.has(cancel)) return;
          if (due === "now") return wake();
          if (due === 0) return;
          const ms = due - Date.now();
          if (ms <= 0) cancel();
          else if (ms < blockTimeout * SECOND_MS) arm(ms);
        },
        (error) => {
          reject(error);
          cancel();
        },
      );
    });
  }

  #isInterrupted(): boolean {
    return this.#interrupted || this.#closing !== undefined;
  }

  async disconnectBlocking(_wait?: boolean): Promise<void> {
    this.#interrupted = true;
    this.#cancelAll();
  }

  async reconnectBlocking(): Promise<void> {
    this.#interrupted = false;
  }

  /** Events after one, or "from now on" with "$"; waits for them so many milliseconds. */
  async readEvents(id: string, blockTimeout: number): Promise<any> {
    if (this.#isInterrupted()) return null;
    const place = await this.shared.open();
    this.#use(place, "events");
    let after: number;
    if (id === "$") {
      this.#start ??= await this.#lastEvent(place.lane);
      after = this.#start;
    } else {
      after = Number.parseInt(id, 10) || 0;
    }
    this.tellPresence(PRESENCE_INTERVAL_MS_DEFAULT);
    const arrived = this.#eventArrives(place, blockTimeout);
    let events = await this.#eventsAfter(place, after);
    if (events.length === 0) {
      await arrived.promise;
      if (this.#isInterrupted()) return null;
      events = await this.#eventsAfter(place, after);
    }
    arrived.end();
    if (events.length === 0) return null;
    const rows = events.map(([number, fields]) => [String(number), Object.entries(fields).flat()]);
    return [["events", rows]];
  }

  /** The number of the last event. A queue that is still to be created has none, and may get any number. */
  async #lastEvent(lane: Place["lane"]): Promise<number> {
    const view = await lane.read(async (queues) => await queues(this.qualifiedName));
    return view.isNew ? 0 : view.head.event;
  }

  #eventArrives({ waiting }: Place, ms: number): { promise: Promise<void>; end(): void } {
    let end = (): void => {};
    const promise = new Promise<void>((resolve) => {
      const unlisten = waiting.listen(this.qualifiedName, "events", () => end());
      const timer = ms > 0 ? setTimeout(() => end(), Math.min(ms, TIMER_MS_MAX)) : undefined;
      end = () => {
        clearTimeout(timer);
        unlisten();
        this.#cancels.delete(end);
        resolve();
      };
      this.#cancels.add(end);
    });
    return { promise, end: () => end() };
  }

  async #eventsAfter({ kv, base }: Place, after: number): Promise<QueueEvent[]> {
    const prefix = [...base, this.qualifiedName, "event"];
    const selector = { prefix, start: [...prefix, after + 1] };
    const entries = await kv.list<string>(selector, { limit: EVENT_ENTRIES_MAX }).toArray();
    const events = entries.flatMap(({ value }) => JSON.parse(value) as QueueEvent[]);
    return events.filter(([number]) => number > after);
  }
}
