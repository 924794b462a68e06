// Duty: checks the moments of the past that callers name.

import { invalid } from "../model/errors.js";
import { shown } from "./check.js";
import { timeOfDate } from "../model/brands.js";

/** A moment of the past, as the addon takes it. */
export interface When {
  /** A versionstamp, or undefined for a time. */
  readonly stamp: string | undefined;
  /** In ms since the epoch. */
  readonly atMs: number;
}

const VERSIONSTAMP = /^[0-9a-f]{20}$/;

export function checkWhen(given: unknown): When {
  if (isVersionstamp(given)) return { stamp: given, atMs: 0 };
  const atMs = timeOfDate(given);
  if (atMs !== undefined && !Number.isNaN(atMs)) return { stamp: undefined, atMs };
  throw invalid(
    `kv.at: the moment must be a versionstamp (20 hexadecimal digits) or a valid Date: received ${shown(given)}`,
  );
}

/** The commit that the versions of an entry are older than; "" for all. */
export function checkBefore(given: unknown): string {
  if (given === undefined) return "";
  if (isVersionstamp(given)) return given;
  throw invalid(
    `kv.history: before must be a versionstamp (20 hexadecimal digits): received ${shown(given)}`,
  );
}

export function isVersionstamp(given: unknown): given is string {
  return typeof given === "string" && VERSIONSTAMP.test(given);
}
