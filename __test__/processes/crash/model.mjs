// What the database must hold, from what writers said before they were killed. One model lives as
// long as one file, through all kills; `settle` folds a round into it, verify.mjs compares it with
// the file.

import {
  HANDLED_KEY,
  chainKey,
  counterKey,
  doneKey,
  fill,
  markKey,
  plan,
  slotKey,
} from "./plan.mjs";

/**
 * @typedef {object} Operation a step that a writer said it would take
 * @property {string} lane
 * @property {number} n
 * @property {number} started ms since the epoch, before the call
 * @property {number} ended ms since the epoch, after the answer; Infinity without one
 * @property {"flying" | "acknowledged" | "refused" | "uncertain"} fate `uncertain`: may be lost
 * @property {string | undefined} stamp
 * @property {import("./plan.mjs").Step} step
 * @property {{ stamp: string | null, count: number } | undefined} read of the chain
 *
 * @typedef {object} Expected an entry
 * @property {any[]} key
 * @property {string} stamp
 * @property {any} value
 * @property {number} [aliveUntil] ms since the epoch: before, it must be there
 * @property {number} [goneFrom] ms since the epoch: from then on, it must not be there
 */

export class Model {
  /** @type {Map<string, Expected>} by the text of its key */
  entries = new Map();
  /** The newest versionstamp that anybody has seen. */
  newest = "0".repeat(20);
  /** Messages by id: whether their enqueue was acknowledged or seen, or may have happened. */
  messages = new Map();
  /** Messages whose handler said that its mark is committed. */
  handled = new Set();
  /** What went wrong, in words. */
  faults = [];
  counts = {
    acknowledged: 0,
    refused: 0,
    flying: 0,
    uncertain: 0,
    landed: 0,
    spilled: 0,
    expired: 0,
  };

  /** The newest versionstamp that a feed was told of. */
  told = "";
  #stamps = new Set();
  /** @type {Map<string, Operation[]>} this round's, by lane */
  #round = new Map();

  constructor(seed) {
    this.seed = seed;
  }

  fault(what) {
    this.faults.push(what);
  }

  /** Takes one line of a writer (see writer.mjs). */
  hear(line) {
    const [word, a, b, ms, c, d] = line.split(" ");
    if (word === "S") {
      const step = plan(this.seed, a, Number(b));
      const read = c && { stamp: c === "-" ? null : c, count: Number(d) };
      const operation = {
        lane: a,
        n: Number(b),
        started: Number(ms),
        ended: Infinity,
        fate: "flying",
        step,
        read,
      };
      if (!this.#round.has(a)) this.#round.set(a, []);
      this.#round.get(a).push(operation);
    } else if (word === "A" || word === "F") {
      const operation = this.#round.get(a)?.at(-1);
      if (operation?.n !== Number(b)) return this.fault(`answer without a question: ${line}`);
      operation.fate = word === "A" ? "acknowledged" : "refused";
      operation.ended = Number(ms);
      if (c !== "-" && word === "A") operation.stamp = c;
    } else if (word === "T") {
      this.told = a;
    } else if (word === "H") {
      this.handled.add(a);
    } else if (word === "X") {
      this.fault(`an operation was rejected: ${line.slice(2)}`);
      const operation = this.#round.get(a)?.at(-1);
      if (operation) operation.fate = "refused";
    }
  }

  /**
   * Takes back every answer of this round about a commit after `stamp`: they may be lost.
   *
   * @returns {number} how many acknowledged ones that were
   */
  forgetAfter(stamp) {
    let lost = 0;
    for (const [lane, operations] of this.#round) {
      const last = operations.findLastIndex((operation) => operation.stamp <= stamp);
      const kept = operations.slice(0, last + 1);
      // A plain delete has no versionstamp, and neither has what was in flight: they may be there
      // or not.
      for (const operation of operations.slice(last + 1)) {
        const uncertain = operation.fate === "acknowledged" && operation.step.kind === "delete";
        if (operation.fate === "acknowledged" && !uncertain) break;
        kept.push(uncertain ? { ...operation, fate: "uncertain" } : operation);
      }
      lost += operations.slice(kept.length).filter(({ fate }) => fate === "acknowledged").length;
      this.#round.set(lane, kept);
    }
    return lost;
  }

  /** Whether nothing was ever written, so that the file may not even exist. */
  get untouched() {
    return this.entries.size === 0 && this.#round.size === 0;
  }

  /**
   * Folds the round into the expected entries. `observed` tells which commits that were in flight
   * have landed.
   *
   * @param {Map<string, { value: any, versionstamp: string }>} observed by the text of their keys
   * @param {number} killed ms since the epoch, when no writer ran any more
   */
  settle(observed, killed) {
    const landed = [];
    for (const [lane, operations] of this.#round) {
      const mark = observed.get(text(markKey(lane)));
      for (const operation of operations) {
        if (operation.fate === "flying" && operation !== operations.at(-1)) {
          this.fault(`${lane} went on without an answer to ${operation.n}`);
        }
        this.#count(operation);
        if (operation.fate === "refused") continue;
        if (operation.fate === "uncertain") {
          this.#maybeDeleted(slotKey(lane, operation.step.deletes[0]), observed);
          continue;
        }
        const { kind, message } = operation.step;
        const marks = kind !== "delete" && kind !== "enqueue";
        if (operation.fate === "flying") {
          if (marks && mark?.value?.n === operation.n) operation.stamp = mark.versionstamp;
          else if (kind === "enqueue") this.messages.set(`${lane}/${operation.n}`, "maybe");
          else if (kind === "delete")
            this.#maybeDeleted(slotKey(lane, operation.step.deletes[0]), observed);
          if (operation.stamp === undefined) continue;
          this.counts.landed++;
        }
        if (message !== undefined) this.messages.set(`${lane}/${operation.n}`, "must");
        this.#own(operation, Math.min(operation.ended, killed));
        if (operation.stamp) landed.push(operation);
      }
    }
    this.#round.clear();
    landed.sort((a, b) => (a.stamp < b.stamp ? -1 : 1));
    this.#order(landed);
    for (const operation of landed) this.#share(operation);
  }

  #count({ fate, step }) {
    this.counts[fate]++;
    if (step.sets.some(({ size }) => size > 1000) || step.markSize > 1000) this.counts.spilled++;
  }

  /** The lane's own keys, which nobody else writes: its steps' order is enough. */
  #own({ lane, n, step, stamp, started, ended }, latest) {
    for (const slot of step.deletes) this.entries.delete(text(slotKey(lane, slot)));
    for (const { slot, size, expireIn } of step.sets) {
      const life = expireIn !== undefined && {
        aliveUntil: started + expireIn,
        goneFrom: Math.min(ended, latest) + expireIn,
      };
      this.put(slotKey(lane, slot), stamp, fill(this.seed, lane, n, slot, size), life);
    }
    if (step.kind !== "delete" && step.kind !== "enqueue") {
      const fills = step.kind === "put" ? fill(this.seed, lane, n, -1, step.markSize) : null;
      this.put(markKey(lane), stamp, { n, fill: fills });
    }
  }

  /** Everybody's keys: the order is the versionstamps'. */
  #share({ lane, n, step, stamp, read }) {
    for (const { counter, amount } of step.sums) {
      const before = this.entries.get(text(counterKey(counter)))?.value.value ?? 0n;
      this.put(counterKey(counter), stamp, { value: before + amount });
    }
    if (step.kind !== "advance") return;
    const key = chainKey(step.chain);
    const before = this.entries.get(text(key));
    if ((before?.stamp ?? null) !== read.stamp || (before?.value ?? 0) !== read.count) {
      this.fault(
        `lost update: step ${n} of ${lane} advanced chain ${step.chain} ` +
          `from ${read.count} (${read.stamp}), ` +
          `but before its commit ${stamp} it stood at ${before?.value} (${before?.stamp})`,
      );
    }
    this.put(key, stamp, read.count + 1);
  }

  /** Versionstamps are unique, rise within a lane, and follow the order of real time. */
  #order(landed) {
    const last = new Map();
    let soonest = Infinity;
    for (const operation of landed) {
      const { lane, n, stamp } = operation;
      if (this.#stamps.has(stamp))
        this.fault(`two commits got the versionstamp ${stamp}, one is ${lane} ${n}`);
      this.#stamps.add(stamp);
      if (stamp <= this.newest)
        this.fault(`${lane} ${n} got ${stamp}, not above ${this.newest} of earlier rounds`);
      if ((last.get(lane) ?? -1) > n)
        this.fault(`${lane} ${n} got a smaller versionstamp than its successor`);
      last.set(lane, n);
    }
    for (const { lane, n, stamp, started, ended } of landed.toReversed?.() ??
      [...landed].reverse()) {
      if (soonest < started) {
        this.fault(
          `${lane} ${n} (${stamp}) started after a commit with a larger versionstamp had ended`,
        );
      }
      soonest = Math.min(soonest, ended);
    }
    if (landed.length > 0) this.newest = landed.at(-1).stamp;
  }

  #maybeDeleted(key, observed) {
    if (!observed.has(text(key))) this.entries.delete(text(key));
  }

  put(key, stamp, value, life) {
    this.entries.set(text(key), { key, stamp, value, ...life });
  }

  /**
   * Takes over which messages the file says are handled: a handler may have died before saying so.
   */
  settleHandled(observed) {
    let count = 0n;
    let newest = "";
    for (const [name, { key, value, versionstamp }] of observed) {
      if (key[0] !== "done") continue;
      count++;
      if (!this.messages.has(key[1]))
        this.fault(`a message was handled that nobody enqueued: ${key[1]}`);
      this.messages.set(key[1], "must");
      this.handled.add(key[1]);
      if (value !== true) this.fault(`the mark of message ${key[1]} is damaged`);
      this.entries.set(name, { key, stamp: versionstamp, value: true });
      if (versionstamp > newest) newest = versionstamp;
    }
    for (const id of this.handled) {
      if (!observed.has(text(doneKey(id))))
        this.fault(`message ${id} was handled, but its mark is gone`);
    }
    if (count > 0n) this.put(HANDLED_KEY, newest, { value: count });
    if (newest > this.newest) this.newest = newest;
  }
}

/** A key as text, equal for equal keys. */
export function text(key) {
  return key
    .map((part) => (typeof part === "bigint" ? `${part}n` : JSON.stringify(part)))
    .join(",");
}
