// Duty: decides what a copy does with an entry that the destination already has.
// Invariant: pure. Versionstamps are compared only where both count the commits of one database.

/** The treatment of entries that the destination already has. */
export type CopyRule = "refuse" | "keep" | "replace" | "if-newer";

/** The decision for one entry of the source. `conflict`: both sides changed it; it is kept. */
export type Verdict = "copy" | "keep" | "conflict";

/** An entry of the source and the destination's of the same key; null for none. */
export interface Pair {
  readonly source: string | null;
  readonly destination: string | null;
}

/**
 * The last common commit of two states of one database, derived from the versionstamps of their
 * entries. Two copies that both continued share the commits up to a point and number the later ones
 * independently: a higher versionstamp on one side says nothing about the other.
 */
export class CommonHistory {
  /** The highest versionstamp of an entry that both have. */
  #shared: string | null = null;
  #sourceLast = "";
  #destinationLast = "";
  /** The lowest versionstamp of an entry that only one side has. */
  #sourceOwn: string | null = null;
  #destinationOwn: string | null = null;
  #met = false;

  add({ source, destination }: Pair): void {
    if (source !== null && source > this.#sourceLast) this.#sourceLast = source;
    if (destination !== null && destination > this.#destinationLast)
      this.#destinationLast = destination;
    if (source !== null && destination !== null) this.#met = true;
    if (source !== null && source === destination) {
      if (this.#shared === null || source > this.#shared) this.#shared = source;
      return;
    }
    if (source !== null) this.#sourceOwn = lower(this.#sourceOwn, source);
    if (destination !== null) this.#destinationOwn = lower(this.#destinationOwn, destination);
  }

  /** Whether both have an entry of the same key. */
  get met(): boolean {
    return this.#met;
  }

  /** The highest versionstamp of an entry that both have; null for none. */
  get shared(): string | null {
    return this.#shared;
  }

  /** The last common commit, as far as the entries show it; null if they show none. */
  get last(): string | null {
    if (this.#shared === null) return null;
    // Only one side continued, so the other's last commit is common.
    if (this.#sourceOwn === null || this.#sourceOwn > this.#destinationLast)
      return this.#destinationLast;
    if (this.#destinationOwn === null || this.#destinationOwn > this.#sourceLast)
      return this.#sourceLast;
    return this.#shared;
  }
}

function lower(one: string | null, other: string): string {
  return one === null || other < one ? other : one;
}

/** `common`: {@link CommonHistory.last}; only the rule `if-newer` needs it. */
export function verdict(
  rule: CopyRule,
  source: string,
  destination: string | null,
  common: string | null,
): Verdict {
  if (destination === null || rule === "replace") return "copy";
  if (rule !== "if-newer" || common === null || source === destination) return "keep";
  if (source <= common) return "keep";
  return destination <= common ? "copy" : "conflict";
}
