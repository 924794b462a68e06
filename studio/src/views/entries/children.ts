// Duty: the children of a branch of the tree: the distinct parts that follow a prefix.
// The server lists keys, so a child with much below it is skipped: the next list starts behind it.

import { list } from "../../api/entries";
import { type Entry, type Key, type Node, sameNode } from "../../values/node";
import { successor } from "../../values/successor";

export interface Child {
  readonly part: Node;
  /** Of the entry with this very key, if there is one. */
  entry: { versionstamp: string; expireAt?: number } | undefined;
  /** Whether there are keys below this one. */
  hasBelow: boolean;
}

/** What one request has found. */
export interface Step {
  /** In order. The first may be the last of the step before, with more of it known. */
  readonly found: readonly Child[];
  /** Where the rest begins; `undefined` at the end. */
  readonly next: Key | undefined;
}

/** Children of one load, and how long a load may take once it has found some. */
const CHILDREN_MAX = 500;
const CHILDREN_ENOUGH = 60;
const LOAD_MS_MAX = 200;
/** Keys of one request. Where children have much below them, few keys find the next. */
const KEYS_MAX = 500;
const KEYS_FIRST = 125;
const KEYS_MIN = 8;

export async function* childrenOf(
  prefix: Key,
  start: Key | undefined,
  signal: AbortSignal,
): AsyncGenerator<Step> {
  const begun = performance.now();
  let from = start;
  let limit = KEYS_FIRST;
  for (let count = 0; ; ) {
    const request = { prefix, ...(from && { start: from }), limit, keysOnly: true };
    const page = await list(request, signal);
    const found = childrenIn(page.entries, prefix.length);
    const last = found.at(-1);
    from =
      !page.hasMore || last === undefined
        ? undefined
        : last.hasBelow
          ? behind(prefix, last.part)
          : page.entries.at(-1)!.key;
    yield { found, next: from };
    count += found.length;
    const isEnough = count >= CHILDREN_ENOUGH && performance.now() - begun > LOAD_MS_MAX;
    if (from === undefined || isEnough || count >= CHILDREN_MAX) return;
    limit = last!.hasBelow ? Math.max(KEYS_MIN, Math.min(KEYS_MAX, found.length * 4)) : KEYS_MAX;
  }
}

function childrenIn(entries: readonly Entry[], level: number): Child[] {
  const found: Child[] = [];
  for (const { key, versionstamp, expireAt } of entries) {
    const child = childIn(found, key[level]!);
    if (key.length > level + 1) child.hasBelow = true;
    else child.entry = { versionstamp: versionstamp!, ...(expireAt && { expireAt }) };
  }
  return found;
}

function childIn(found: Child[], part: Node): Child {
  const last = found.at(-1);
  if (last !== undefined && sameNode(last.part, part)) return last;
  const child: Child = { part, entry: undefined, hasBelow: false };
  found.push(child);
  return child;
}

function behind(prefix: Key, part: Node): Key | undefined {
  const next = successor(part);
  return next && [...prefix, next];
}
