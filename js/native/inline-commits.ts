// Duty: when commits of any handle may block this thread, and for how long in a turn of the event loop.
// Invariant: commits block for about the budget of a turn at most, and only in the first callback of a turn that commits.
// A program that awaits one write after the other stays in that callback. A program that serves many callers
// has many callbacks in a turn, and the writer thread commits the writes of the others together.

import { elapsed, nextTick } from "../model/clock.js";
import { INLINE_BYTES_MAX, INLINE_WRITES_MAX } from "../model/limits.js";
import { NativePromise } from "../model/native-promise.js";
import type { TurnMember, Turns } from "./turns.js";

/** Blocking in one turn, in microseconds. */
const BUDGET_US = 1000;
/** Mean of the last commits from which they are for the writer thread, in microseconds. */
const COMMIT_US_MAX = 500;

/** Where a batch commits. */
export type Place = "here" | "next turn" | "writer thread";

export class InlineCommits implements TurnMember {
  /** The commits of this turn, and the time that they have blocked. */
  #commits = 0;
  #blockedUs = 0;
  /** The callback that has blocked has ended. */
  #over = false;
  /** What waits for the next turn. */
  #waiting: (() => void)[] = [];
  readonly #turns: Turns;
  readonly #clock: () => number;

  /** `clock`: milliseconds of a monotonic clock. */
  constructor(turns: Turns, clock = elapsed) {
    this.#turns = turns;
    this.#clock = clock;
  }

  /** Where to commit writes of so many records in a frame of so many bytes. */
  placeFor(records: number, bytes: number): Place {
    const small = records <= INLINE_WRITES_MAX && bytes <= INLINE_BYTES_MAX;
    if (this.#over || !small) return "writer thread";
    const nextUs = this.#commits === 0 ? 0 : this.#blockedUs / this.#commits;
    return this.#blockedUs + nextUs > BUDGET_US ? "next turn" : "here";
  }

  /** Calls a function in the next turn, which has a budget of its own. This turn has committed, so its end is awaited. */
  inNextTurn(flush: () => void): void {
    this.#waiting.push(flush);
  }

  /**
   * Commits on this thread by `commit`, which gets the longest mean of the last commits. It answers a negative number if
   * it has left the commit to the writer thread.
   */
  block(commit: (mostUs: number) => number): number {
    const begun = this.#clock();
    const answer = commit(COMMIT_US_MAX);
    if (answer < 0) return answer;
    this.#blockedUs += (this.#clock() - begun) * 1000;
    if (this.#commits++ === 0) {
      this.#turns.atTurnEnd(this);
      // A tick that a microtask schedules runs after all microtasks; one of an immediate would run before.
      void NativePromise.resolve().then(() => nextTick(() => (this.#over = this.#commits > 0)));
    }
    return answer;
  }

  endTurn(): void {
    this.#commits = 0;
    this.#blockedUs = 0;
    this.#over = false;
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    for (const flush of waiting) flush();
  }
}
