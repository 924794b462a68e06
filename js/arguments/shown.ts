// Duty: how messages name what a caller has given.

import { printGiven, printKey, quote } from "../codec/key-text.js";
import { timeOfDate } from "../model/brands.js";

/** The type of a value, for messages that must not have the value itself, and for Deno's. */
export function nameOf(given: unknown): string {
  if (given === null || typeof given !== "object") {
    return given === null ? "null" : typeof given;
  }
  try {
    const name: unknown = given.constructor?.name;
    if (typeof name === "string" && name !== "") return quote(name).slice(1, -1);
  } catch {
    // A getter or a proxy of the caller's.
  }
  return "object";
}

/**
 * A refused value, for messages: the literals that look like another type have their type, so that
 * "5000" and 5000n do not read as 5000. Numbers read as in Deno.
 */
export function shown(given: unknown): string {
  if (typeof given === "function") return "a function";
  if (typeof given === "string" || typeof given === "bigint" || typeof given === "symbol") {
    return `the ${typeof given} ${printGiven(given)}`;
  }
  if (typeof given !== "object" || given === null) return String(given);
  if (Array.isArray(given)) return `the array ${printKey(given)}`;
  if (Number.isNaN(timeOfDate(given))) return "an invalid Date";
  const name = nameOf(given);
  if (name === "Object") return "an object";
  return `${/^[aeiou]/i.test(name) ? "an" : "a"} ${name}`;
}
