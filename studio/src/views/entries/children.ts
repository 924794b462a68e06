// Duty: the children of a branch of the tree: the distinct parts that follow a prefix.
// The server lists keys, so a child with much below it is skipped: the next list starts behind it.

import { list } from "../../api/entries";
import { type Key, type Node, sameNode } from "../../values/node";
import { successor } from "../../values/successor";

export interface Child {
  readonly part: Node;
  /** Of the entry with this very key, if there is one. */
  entry: { versionstamp: string; expireAt?: number } | undefined;
  /** Whether there are keys below this one. */
  hasBelow: boolean;
}

export interface Children {
  readonly found: Child[];
  /** Where the rest begins; `undefined` at the end. */
  readonly next: Key | undefined;
}

/** Children of one step, and how long a step may take once it has found some. */
const CHILDREN_MAX = 500;
const CHILDREN_ENOUGH = 60;
const STEP_MS_MAX = 200;
/** Keys of one request. Where children have much below them, few keys find the next. */
const KEYS_MAX = 500;
const KEYS_MIN = 8;

export async function childrenOf(
  prefix: Key,
  start: Key | undefined,
  signal: AbortSignal,
): Promise<Children> {
  const begun = performance.now();
  const found: Child[] = [];
  let from = start;
  let limit = KEYS_MAX / 4;
  for (;;) {
    const before = found.length;
    const page = await list(
      { prefix, ...(from && { start: from }), limit, keysOnly: true },
      signal,
    );
    for (const { key, versionstamp, expireAt } of page.entries) {
      const child = childIn(found, key[prefix.length]!);
      if (key.length > prefix.length + 1) child.hasBelow = true;
      else child.entry = { versionstamp: versionstamp!, ...(expireAt && { expireAt }) };
    }
    const last = found.at(-1);
    if (!page.hasMore || last === undefined) return { found, next: undefined };
    from = last.hasBelow ? behind(prefix, last.part) : page.entries.at(-1)!.key;
    if (from === undefined) return { found, next: undefined };
    const isEnough = found.length >= CHILDREN_ENOUGH && performance.now() - begun > STEP_MS_MAX;
    if (isEnough || found.length >= CHILDREN_MAX) return { found, next: from };
    const isNew = found.length - before;
    limit = Math.max(KEYS_MIN, Math.min(KEYS_MAX, last.hasBelow ? isNew * 4 : KEYS_MAX));
  }
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
