// Duty: the changes of a prefix as they come, with the value before each where it is known.

import { signal } from "@preact/signals";
import { follow } from "../../api/stream";
import { report } from "../../shell/toasts";
import { type Entry, type Key, type Node, readable } from "../../values/node";
import { printKey } from "../../values/print";

export interface Change {
  readonly id: number;
  readonly at: number;
  readonly key: Key;
  readonly literal: string;
  /** `null` for a deletion. */
  readonly value: Node | null;
  readonly versionstamp: string | null;
  /** `undefined` if this page has not seen one. */
  readonly before: Node | null | undefined;
  /** Of a change of the expiry alone. */
  readonly expireAt: number | undefined;
}

/** Changes that are kept, the newest. */
const CHANGES_MAX = 1000;
/** Keys whose last value is kept for the next difference. */
const VALUES_MAX = 5000;

export class Feed {
  readonly changes = signal<readonly Change[]>([]);
  readonly isPaused = signal(false);
  /** Changes that came while the feed is paused. */
  readonly held = signal(0);
  readonly state = signal<"connecting" | "live" | "broken">("connecting");
  readonly #prefix: Key;
  readonly #ending = new AbortController();
  readonly #values = new Map<string, Node | null>();
  #waiting: Change[] = [];
  #count = 0;

  constructor(prefix: Key) {
    this.#prefix = prefix;
  }

  /**
   * Begins to follow, once the view is in the page: a view that is replaced before has no end in which to close the
   * stream, and a browser has few connections to one server.
   */
  begin(): void {
    const prefix = this.#prefix;
    const query = prefix.length === 0 ? {} : { prefix: printKey(prefix) };
    const onBreak = (error: unknown): void => {
      if (this.state.value !== "broken") report(error);
      this.state.value = "broken";
    };
    const take = ({ type, data }: { type: string; data: string }): void => {
      this.state.value = "live";
      if (type === "change") this.#take(JSON.parse(data) as Entry[]);
      if (type !== "gap") return;
      // A value from before the gap is not the one before the next change.
      this.#values.clear();
      report(new Error("Changes were lost: the log is bounded."));
    };
    void follow("/watch/prefix", query, this.#ending.signal, take, onBreak);
  }

  end(): void {
    this.#ending.abort();
  }

  pause(isPaused: boolean): void {
    this.isPaused.value = isPaused;
    if (!isPaused) this.#show();
  }

  clear(): void {
    this.changes.value = [];
  }

  #take(entries: readonly Entry[]): void {
    for (const { key, value, versionstamp, expireAt } of entries.map(readable)) {
      const literal = printKey(key);
      const before = this.#values.get(literal);
      const isOfExpiry = value === undefined;
      if (!isOfExpiry) this.#keep(literal, value);
      this.#waiting.push({
        ...{ id: this.#count++, at: Date.now(), key, literal, versionstamp, before },
        value: isOfExpiry ? (before ?? null) : value,
        expireAt: isOfExpiry ? (expireAt ?? 0) : undefined,
      });
    }
    this.#waiting = this.#waiting.slice(-CHANGES_MAX);
    if (this.isPaused.value) this.held.value = this.#waiting.length;
    else this.#show();
  }

  #keep(literal: string, value: Node | null): void {
    if (this.#values.size >= VALUES_MAX) this.#values.clear();
    this.#values.set(literal, value);
  }

  #show(): void {
    this.changes.value = [...this.#waiting.reverse(), ...this.changes.value].slice(0, CHANGES_MAX);
    this.#waiting = [];
    this.held.value = 0;
  }
}
