// Duty: parses the description of an atomic operation: one object for each check, mutation or
// message, which has a method and its properties.
// Invariant: an unknown or missing property is wrong usage, reported before a database is opened.

import type { AtomicOperation } from "../atomic/atomic.js";
import { isVersionstamp } from "../arguments/moment.js";
import type { KvKey } from "../model/types.js";
import { MESSAGE_OPTIONS } from "../queue/queue-options.js";
import { parseLiteral } from "./literal.js";
import { WrongUsage } from "./outcome.js";
import { quoted } from "./literal-grammar.js";

/** One check, mutation or message. */
export interface Step {
  readonly method: string;
  /** The key; for `enqueue` the message. */
  readonly of: unknown;
  readonly rest: Readonly<Record<string, unknown>>;
}

interface Method {
  readonly required: readonly string[];
  readonly optional: readonly string[];
  apply(operation: AtomicOperation, of: never, rest: never): void;
}

type Limited = { value: never; min?: never; max?: never; clamp?: boolean };

/** Every method, with its other properties. */
export const METHODS: Readonly<Record<string, Method>> = {
  check: method(
    ["versionstamp"],
    [],
    (operation, key: KvKey, { versionstamp }: { versionstamp: string | null }) =>
      operation.check({ key, versionstamp }),
  ),
  set: method(
    ["value"],
    ["expireIn"],
    (operation, key: KvKey, { value, ...options }: { value: unknown }) =>
      operation.set(key, value, options),
  ),
  delete: method([], [], (operation, key: KvKey) => operation.delete(key)),
  sum: method(
    ["value"],
    ["min", "max", "clamp"],
    (operation, key: KvKey, { value, ...options }: Limited) => operation.sum(key, value, options),
  ),
  min: method(["value"], [], (operation, key: KvKey, { value }: Limited) =>
    operation.min(key, value),
  ),
  max: method(["value"], [], (operation, key: KvKey, { value }: Limited) =>
    operation.max(key, value),
  ),
  append: method(["items"], [], (operation, key: KvKey, { items }: { items: unknown[] }) =>
    operation.append(key, items),
  ),
  prepend: method(["items"], [], (operation, key: KvKey, { items }: { items: unknown[] }) =>
    operation.prepend(key, items),
  ),
  touch: method(["expireIn"], [], (operation, key: KvKey, options: { expireIn: number }) =>
    operation.touch(key, options),
  ),
  persist: method([], [], (operation, key: KvKey) => operation.persist(key)),
  enqueue: method(
    [],
    ["queue", "delay", ...MESSAGE_OPTIONS],
    (operation, message: unknown, options: object) => operation.enqueue(message, options),
  ),
};

function method<K, R>(
  required: readonly string[],
  optional: readonly string[],
  apply: (operation: AtomicOperation, of: K, rest: R) => unknown,
): Method {
  return { required, optional, apply: (operation, of, rest) => void apply(operation, of, rest) };
}

/** Parses steps: each text is one step, or an array of steps. */
export function parseSteps(texts: readonly string[]): Step[] {
  const steps = texts.flatMap((text) => parseLiteral(text)).map(stepOf);
  if (steps.length === 0) throw new WrongUsage("an atomic operation has at least one step");
  return steps;
}

/** Splits a stream: it is one array of steps, or has a step in each line. */
export function textsOf(input: string): string[] {
  if (/^\s*\[/.test(input)) return [input];
  return input.split("\n").filter((line) => line.trim() !== "");
}

function stepOf(described: unknown, at: number): Step {
  const wrong = (what: string): WrongUsage => new WrongUsage(`step ${at}: ${what}`);
  if (typeof described !== "object" || described === null || Array.isArray(described)) {
    throw wrong('a step is an object, as { set: ["a"], value: 1 }');
  }
  const [name, ...others] = Object.keys(described).filter(
    (property) => Object.hasOwn(METHODS, property) && isMethodOf(described, property),
  );
  if (name === undefined || others.length > 0) {
    throw wrong(`it has one of ${Object.keys(METHODS).join(", ")}`);
  }
  const { [name]: of, ...rest } = described as Record<string, unknown>;
  const { required, optional } = METHODS[name]!;
  for (const property of required) {
    if (!Object.hasOwn(rest, property)) throw wrong(`${name} needs ${property}`);
  }
  for (const property of Object.keys(rest)) {
    if (![...required, ...optional].includes(property)) throw wrong(`${name} has no ${property}`);
  }
  if (name === "check" && rest.versionstamp !== null && !isVersionstamp(rest.versionstamp)) {
    const given = quoted(String(rest.versionstamp));
    throw wrong(`versionstamp must be null or 20 hexadecimal digits in quotes: received ${given}`);
  }
  return { method: name, of: name === "enqueue" || typeof of !== "string" ? of : [of], rest };
}

/** Whether a property is the method: `min` and `max` are methods, and also bounds of a sum. */
function isMethodOf(described: object, property: string): boolean {
  return !(Object.hasOwn(described, "sum") && (property === "min" || property === "max"));
}

export function applySteps(operation: AtomicOperation, steps: readonly Step[]): void {
  for (const { method: name, of, rest } of steps)
    METHODS[name]!.apply(operation, of as never, rest as never);
}
