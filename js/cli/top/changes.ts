// Duty: the changes of a database by prefix, counted from its change feed.
// Invariant: of one interval it reads at most `changesMax` changes, so that a database with many writes is not
// slowed down: it then cancels the feed, and opens it again for the next interval. Rates are of the time that was read.
// Never: a value that is kept.

import type { Kv } from "../../api/kv.js";
import type { KvChanges, KvKey } from "../../model/types.js";
import { shownKey } from "../output.js";

/** Changes of one interval that are read. */
const CHANGES_MAX = 10_000;
/** Prefixes that a picture has. */
const HOTTEST_MAX = 10;

/** How many changes a prefix has had. */
export interface HotPrefix {
  readonly prefix: string;
  readonly perSecond: number;
}

/** The changes of one interval. */
export interface Changes {
  readonly perSecond: number;
  /** Whether a part of the interval was read only. */
  readonly sampled: boolean;
  readonly hottest: readonly HotPrefix[];
}

type Reader = ReadableStreamDefaultReader<KvChanges>;

/** Counts the changes of a database while it is open. */
export class ChangeCounter {
  readonly #kv: Kv;
  readonly #depth: number;
  readonly #changesMax: number;
  #reader: Reader | null = null;
  /** Whether the database has no change feed, for this caller. */
  #isRefused = false;
  #counts = new Map<string, number>();
  #total = 0;
  #begunMs: number;
  /** When the feed was cancelled in this interval. */
  #endedMs: number | null = null;

  constructor(kv: Kv, depth: number, nowMs = Date.now(), changesMax = CHANGES_MAX) {
    this.#kv = kv;
    this.#depth = depth;
    this.#changesMax = changesMax;
    this.#begunMs = nowMs;
    this.#open();
  }

  /** The changes since the last call, or since the beginning; null without a feed. */
  take(nowMs = Date.now()): Changes | null {
    const seconds = Math.max((this.#endedMs ?? nowMs) - this.#begunMs, 1) / 1000;
    const taken = {
      perSecond: this.#total / seconds,
      sampled: this.#endedMs !== null,
      hottest: hottestOf(this.#counts, seconds),
    };
    this.#counts = new Map();
    this.#total = 0;
    this.#begunMs = nowMs;
    this.#endedMs = null;
    if (this.#isRefused) return null;
    if (this.#reader === null) this.#open();
    return taken;
  }

  async end(): Promise<void> {
    this.#isRefused = true;
    await this.#reader?.cancel().catch(() => {});
  }

  #open(): void {
    const reader = this.#kv.watch({ prefix: [] }).getReader() as Reader;
    this.#reader = reader;
    void this.#follow(reader).catch(() => {
      this.#isRefused = true;
    });
  }

  async #follow(reader: Reader): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const { key } of value.changes) this.#add(key);
      if (this.#total >= this.#changesMax) break;
    }
    this.#endedMs = Date.now();
    this.#reader = null;
    await reader.cancel();
  }

  #add(key: KvKey): void {
    const prefix = shownKey(key.slice(0, this.#depth));
    this.#counts.set(prefix, (this.#counts.get(prefix) ?? 0) + 1);
    this.#total++;
  }
}

function hottestOf(counts: ReadonlyMap<string, number>, seconds: number): HotPrefix[] {
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .slice(0, HOTTEST_MAX)
    .map(([prefix, count]) => ({ prefix, perSecond: count / seconds }));
}
