// Duty: a limiter of rate-limiter-flexible. A key has two entries: its window, [...base, key], which is
// written once, and its points, [...base, key, "points"], which every call adds to on condition that the
// window is the one that it has read. So calls do not conflict with each other, and both entries expire
// at the same time.

import type { KvEntry, KvKey } from "openkv";
import {
  RateLimiterRes,
  type IRateLimiterOptions,
  type RateLimiterStoreAbstract,
} from "rate-limiter-flexible";
// @ts-expect-error: the library exports its class for stores only as a type.
import StoreAbstract from "rate-limiter-flexible/lib/RateLimiterStoreAbstract.js";
import { Database, type DatabaseOptions } from "./database.js";
import { msUntil } from "./deadline.js";

const NAME = "rate-limiter";
const POINTS = "points";
/** Two callers begin a window at once at most this often in a row before one of them gives up. */
const ATTEMPTS_MAX = 16;

/** Options of {@link RateLimiterOpenKv}: those of the library for stores, and of the database. */
export interface RateLimiterOpenKvOptions extends IRateLimiterOptions, DatabaseOptions {
  /** The number of consumed points from which a key is refused without asking the database. */
  inMemoryBlockOnConsumed?: number | undefined;
  /** For how many seconds. */
  inMemoryBlockDuration?: number | undefined;
  /** The number of consumed points from which a key is blocked for `blockDuration`. */
  blockOnConsumed?: number | undefined;
}

/** The stored state of a key: its points, and when its window ends; null: never. */
interface State {
  points: number;
  end: number | null;
}

/** The stored window of a key, with its length, and when it ends. */
interface Window {
  end: number | null;
  ms?: number;
}

/** Whether a window is of a time before the clock was set back. */
const isOver = ({ end, ms }: Window): boolean =>
  end !== null && end > Date.now() && msUntil(end, ms, Date.now()) === 0;

const Base: typeof RateLimiterStoreAbstract = StoreAbstract as any;

/**
 * A limiter of rate-limiter-flexible on openkv, shared by all processes and servers on the database. A call
 * of `consume` is a read and a commit. `close` closes the handle if the limiter has opened it.
 *
 * @example
 * const limiter = new RateLimiterOpenKv({ path: "limits.sqlite3", points: 5, duration: 1 });
 * await limiter.consume(request.ip); // rejects with a RateLimiterRes above 5 points in a second
 */
export class RateLimiterOpenKv extends Base {
  readonly #database: Database;

  constructor(options: RateLimiterOpenKvOptions) {
    const { path, open, kv, base, ...forward } = options;
    super({ storeClient: null, ...forward } as any);
    this.#database = new Database({ path, open, kv, base }, NAME);
  }

  /** Closes the handle if the limiter has opened it. */
  async close(): Promise<void> {
    await this.#database.close();
  }

  /** Called by the library: adds points, or with `force` begins a window with them. */
  protected async _upsert(
    key: string,
    points: number,
    ms: number,
    force: boolean = false,
  ): Promise<State> {
    const kv = await this.#database.kv();
    const [window, counter] = this.#keys(key);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const read = await kv.get<Window>(window);
      const isNew = force || read.versionstamp === null || isOver(read.value);
      const end = isNew ? (ms > 0 ? Date.now() + ms : null) : (read as KvEntry<Window>).value.end;
      const expiry = { expireAt: end };
      const atomic = kv.atomic();
      if (!force) atomic.check(read);
      if (isNew) atomic.set(window, { end, ms }, expiry).set(counter, points, expiry);
      else atomic.sum(counter, points, expiry);
      const result = await atomic.commit({ values: true });
      if (result.ok) return { points: isNew ? points : Number(result.values![0]), end };
    }
    throw new Error(
      `openkv/${NAME}: the window of a key has changed ${ATTEMPTS_MAX} times in a row`,
    );
  }

  /** Called by the library: the state of a key, null if it has none. */
  protected async _get(key: string): Promise<State | null> {
    const kv = await this.#database.kv();
    const [window, points] = await kv.getMany<[Window, number]>(this.#keys(key));
    if (window.versionstamp === null || isOver(window.value)) return null;
    return { points: points.value ?? 0, end: window.value.end };
  }

  /** Called by the library: forgets a key; whether there was one. */
  protected async _delete(key: string): Promise<boolean> {
    const { count } = await (await this.#database.kv()).deleteMany(this.#keys(key), {
      atomic: true,
    });
    return count > 0;
  }

  /** Called by the library: what it answers for a state. */
  protected _getRateLimiterRes(
    _key: string,
    changed: number,
    { points, end }: State,
  ): RateLimiterRes {
    const { points: allowed } = this as unknown as { points: number };
    return new RateLimiterRes(
      Math.max(allowed - points, 0),
      end === null ? -1 : Math.max(end - Date.now(), 0),
      points,
      points === changed,
    );
  }

  #keys(key: string): [KvKey, KvKey] {
    return [this.#database.key(key), this.#database.key(key, POINTS)];
  }
}
