// Duty: the operands and bounds of sum, min and max of an operation: checks them and writes their
// records. The commit computes the result.

import { invalid, outOfRange } from "../model/errors.js";
import { types } from "node:util";
import { type Limits, checkOptions, shown } from "../arguments/check.js";
import {
  EXPIRY_OPTIONS,
  type Expiry,
  NO_EXPIRY,
  checkExpiry,
} from "../arguments/expiry-options.js";
import { KvU64, isU64 } from "../codec/u64.js";
import type { Writer } from "../codec/writer.js";
import { CALCULATE_CLAMP, CALCULATE_MAX, CALCULATE_MIN } from "../native/contract.js";
import { putCalculateHead } from "../records/layout.js";
import { putKey, putValue } from "../records/records.js";
import type { KvKey } from "../model/types.js";

export type Method = "sum" | "min" | "max";

const NUMBERS: Record<Method, number> = { sum: 0, min: 1, max: 2 };

const U64_MAX = 0xffff_ffff_ffff_ffffn;

const SUM_OPTIONS = ["min", "max", "clamp", ...EXPIRY_OPTIONS] as const;
type SumOptions = { readonly [Name in (typeof SUM_OPTIONS)[number]]?: unknown };

/** A checked calculation. */
export interface Calculation {
  readonly method: Method;
  /** A KvU64 if a missing entry becomes one. */
  readonly operand: number | bigint | KvU64;
  readonly min: number | bigint | undefined;
  readonly max: number | bigint | undefined;
  readonly clamp: boolean;
  readonly expiry: Expiry;
}

/** Throws TypeError for a wrong operand, and for options that do not fit it. */
export function checkCalculation(method: Method, n: unknown, options: unknown): Calculation {
  const operand = checkNumber("Value", n);
  if (options === undefined || options === null) return plain(method, operand, NO_EXPIRY);
  const known = method === "sum" ? SUM_OPTIONS : EXPIRY_OPTIONS;
  const given: SumOptions = checkOptions(`atomic().${method}`, options, known);
  const expiry = checkExpiry(given);
  const { clamp } = given;
  if (clamp !== undefined && typeof clamp !== "boolean") {
    throw invalid(`atomic().sum: clamp must be a boolean: received ${shown(clamp)}`);
  }
  const min = checkBound("min", given.min, operand);
  const max = checkBound("max", given.max, operand);
  if (min !== undefined && max !== undefined && min > max) {
    throw outOfRange(`atomic().sum: min (${min}) is above max (${max})`);
  }
  if (min === undefined && max === undefined && clamp !== true)
    return plain(method, operand, expiry);
  return { method, operand, min, max, clamp: clamp === true, expiry };
}

/** As in Deno, a bigint without bounds that fits a KvU64 becomes one. */
function plain(method: Method, given: number | bigint | KvU64, expiry: Expiry): Calculation {
  const fits = typeof given === "bigint" && given >= 0n && given <= U64_MAX;
  const operand = fits ? new KvU64(given) : given;
  return { method, operand, min: undefined, max: undefined, clamp: false, expiry };
}

function checkNumber(what: string, given: unknown): number | bigint | KvU64 {
  if (typeof given === "bigint") return given;
  if (typeof given === "number") {
    if (Number.isFinite(given)) return given;
    throw invalid(`${what} must be a finite number: received ${given}`);
  }
  if (typeof given === "object" && given !== null && !types.isProxy(given)) {
    if (isU64(given)) return given;
  }
  const type = given === null ? "null" : typeof given;
  // Deno's words, and the other types that openkv accepts.
  throw invalid(`${what} must be a bigint: received ${type}; a number or KvU64 goes too`);
}

function checkBound(
  name: string,
  given: unknown,
  operand: number | bigint | KvU64,
): number | bigint | undefined {
  if (given === undefined) return undefined;
  const checked = checkNumber(`atomic().sum: ${name}`, given);
  const bound = typeof checked === "object" ? checked.value : checked;
  const type = typeof operand === "number" ? "number" : "bigint";
  if (typeof bound === type) return bound;
  throw invalid(
    `atomic().sum: ${name} must be a ${type}, as the value is: received ${shown(given)}`,
  );
}

/** Writes a calculation; `tryKey` runs the part that may refuse the key. */
export function putCalculation(
  writer: Writer,
  key: KvKey,
  { method, operand, min, max, clamp, expiry }: Calculation,
  limits: Limits,
  tryKey: (put: () => void) => void,
): void {
  const bounds = (min === undefined ? 0 : CALCULATE_MIN) | (max === undefined ? 0 : CALCULATE_MAX);
  const flags = bounds | (clamp ? CALCULATE_CLAMP : 0);
  putCalculateHead(writer, NUMBERS[method], flags, expiry.afterMs, expiry.atMs);
  tryKey(() => putKey(writer, key, limits));
  putValue(writer, key, operand, limits);
  if (min !== undefined) putValue(writer, key, min, limits);
  if (max !== undefined) putValue(writer, key, max, limits);
}
