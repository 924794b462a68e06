// Duty: checks the names of options and properties; the error suggests the right name.
//
// Methods that only openkv has, and all selectors, refuse every unknown name. Deno's own methods
// refuse misspellings and the names that other stores use. They ignore the rest, because libraries
// for Deno KV pass their own options through (kv-toolbox `blob` and
// `stream`, kvdex `retry`, `offset` and a function as `filter`).

import { misuse } from "../model/errors.js";
import { quote } from "../codec/key-text.js";

const MS = "write expireIn: milliseconds";
const SECONDS = "write expireIn: seconds * 1000";
const CONDITION = "write where: { field: value }";
const IF_ABSENT = "write atomic().check({ key, versionstamp: null }).set(key, value).commit()";

/** By option: the names that other stores use for it, and what to write. */
const OTHER_STORES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  expireIn: {
    ttl: MS,
    px: MS,
    ex: SECONDS,
    expirationTtl: SECONDS,
    exp: MS,
    expire: MS,
    expires: MS,
    expiry: MS,
    expiration: MS,
    maxAge: MS,
    nx: IF_ABSENT,
    ifAbsent: IF_ABSENT,
    ifNotExists: IF_ABSENT,
  },
  where: { filter: CONDITION, match: CONDITION },
  reverse: { desc: "write reverse: true", descending: "write reverse: true" },
  delay: { delaySeconds: "write delay: seconds * 1000" },
  backoffSchedule: { backoff: "write backoffSchedule: [milliseconds, …]" },
  versionstamp: { version: "write versionstamp", etag: "write versionstamp" },
};

/** All of these names: a call that has no such option refuses them too. */
const FOREIGN_NAMES: ReadonlySet<string> = new Set(
  Object.values(OTHER_STORES).flatMap((names) => Object.keys(names)),
);

/** Refuses names that cannot be meant for the method of Deno's that takes the `known` ones. */
export function refuseMistaken(options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const slip = slipOf(name, known);
    if (slip === undefined) {
      if (!FOREIGN_NAMES.has(name)) continue;
      // No option of Deno KV is a function, so this one belongs to a library.
      if (typeof (options as Record<string, unknown>)[name] === "function") continue;
    }
    const remedy = slip ?? ofOtherStore(name, known) ?? `known are ${known.join(", ")}`;
    throw misuse(`Unknown option ${nameText(name)}: ${remedy}`);
  }
}

/** Refuses every name but the `known` ones: for methods that Deno does not have. */
export function refuseUnknown(method: string, options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const remedy = slipOf(name, known) ?? ofOtherStore(name, known);
    const hint = remedy === undefined ? "" : `; ${remedy}`;
    throw misuse(
      `${method}: unknown option ${nameText(name)}: known are ${known.join(", ")}${hint}`,
    );
  }
}

const SELECTOR_NAMES = ["prefix", "start", "end"] as const;

/**
 * Refuses every property of a selector but its bounds. Deno ignores unknown ones; a misplaced option
 * of the method would then have no effect, or a deletion would reach further than meant.
 */
export function refuseUnknownBounds(
  method: string,
  selector: object,
  options: readonly string[],
): void {
  for (const name of Object.keys(selector)) {
    if ((SELECTOR_NAMES as readonly string[]).includes(name)) continue;
    const call = (option: string) => `${method}({ prefix }, { ${option} })`;
    const remedy = options.includes(name)
      ? `${name} belongs into the second argument: ${call(name)}`
      : (slipOf(name, SELECTOR_NAMES) ??
        ofOtherStore(name, options) ??
        "it has prefix, start and end");
    throw misuse(`${method}: selector: unknown property ${nameText(name)}: ${remedy}`);
  }
}

/** A name that a caller wrote, quoted. */
export function nameText(name: string): string {
  const text = quote(name);
  return `'${text.slice(1, -1)}'`;
}

function slipOf(name: string, known: readonly string[]): string | undefined {
  const meant = known.find((option) => isSlip(name.toLowerCase(), option.toLowerCase()));
  return meant === undefined ? undefined : `did you mean '${meant}'?`;
}

function ofOtherStore(name: string, known: readonly string[]): string | undefined {
  for (const option of known) {
    const names = Object.hasOwn(OTHER_STORES, option) ? OTHER_STORES[option] : {};
    if (Object.hasOwn(names, name)) return names[name];
  }
  return undefined;
}

/** Names shorter than this may differ by one letter, longer ones by two. */
const SHORT_NAME_LETTERS = 6;

function isSlip(name: string, option: string): boolean {
  const most = option.length < SHORT_NAME_LETTERS ? 1 : 2;
  return Math.abs(name.length - option.length) <= most && distance(name, option) <= most;
}

/** The edit distance: letters to insert, delete, change or swap with a neighbour. */
function distance(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const changed = row[j - 1] + (from[i - 1] === to[j - 1] ? 0 : 1);
      next[j] = Math.min(changed, row[j] + 1, next[j - 1] + 1);
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        next[j] = Math.min(next[j], before[j - 2] + 1);
      }
    }
    before = row;
    row = next;
  }
  return row[to.length];
}
