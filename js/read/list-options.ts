// Duty: the options of a list, each in one place: its check, whether the list is a scan with it, its field in the
// frame of the scan, and its effect on an entry that a transaction has written itself.

import { checkFlag, shown } from "../arguments/check.js";
import { refuseMistaken } from "../arguments/names.js";
import { owned } from "../arguments/options.js";
import type { Writer } from "../codec/writer.js";
import { coded, invalid, misuse } from "../model/errors.js";
import type { KvEntryKey } from "../model/types.js";
import {
  SCAN_DEPTH,
  SCAN_EXPIRY,
  SCAN_INDEXED,
  SCAN_KEYS,
  SCAN_PASSED,
  SCAN_REVERSE,
  SCAN_WHERE,
} from "../native/contract.js";
import { putSized } from "../native/frame.js";
import type { Bounds, Selector } from "./range.js";
import { encodeWhere } from "./where.js";

/** The options of lists, those of a transaction among them. */
export const LIST_OPTIONS = [
  "limit",
  "cursor",
  "reverse",
  "consistency",
  "batchSize",
  "where",
  "keysOnly",
  "depth",
  "withExpiry",
  "orderBy",
  "sort",
  "signal",
] as const;
/** A key has fewer parts than this. */
const DEPTH_MAX = 0xffff;

/** Checked options of a list. */
export type ListOptions = ReturnType<typeof checkListOptions>;

export function checkListOptions(options: object | null) {
  if (options === null) {
    throw misuse("Cannot read options of a list: received null; leave them out, or give an object");
  }
  // Read by their names here: in a loop over the names, each read costs ten times as much.
  const given = options as { readonly [N in (typeof LIST_OPTIONS)[number]]?: unknown };
  const limit = owned(options, "limit", given.limit);
  const batchSize = owned(options, "batchSize", given.batchSize);
  const reverse = owned(options, "reverse", given.reverse);
  const cursor = owned(options, "cursor", given.cursor);
  const consistency = owned(options, "consistency", given.consistency);
  const where = owned(options, "where", given.where);
  const keysOnly = owned(options, "keysOnly", given.keysOnly);
  const depth = owned(options, "depth", given.depth);
  const withExpiry = owned(options, "withExpiry", given.withExpiry);
  const orderBy = owned(options, "orderBy", given.orderBy);
  const sort = owned(options, "sort", given.sort);
  refuseMistaken(options, LIST_OPTIONS);
  if (limit !== undefined && !isPositiveInteger(limit)) {
    throw coded("INVALID", new Error(`Limit must be a positive integer: received ${shown(limit)}`));
  }
  if (batchSize != null && !isPositiveInteger(batchSize)) {
    throw coded(
      "INVALID",
      new Error(`batchSize must be a positive integer: received ${shown(batchSize)}`),
    );
  }
  checkFlag("keysOnly", keysOnly);
  checkFlag("withExpiry", withExpiry);
  return {
    where,
    keysOnly: keysOnly === true,
    depth: checkDepth(depth),
    withExpiry: withExpiry === true,
    orderBy,
    sort,
    limit,
    batchSize: batchSize ?? undefined,
    // As in Deno: only `true` counts.
    reverse: reverse === true,
    cursor,
    consistency,
  };
}

function isPositiveInteger(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

/** Checks the option depth. */
function checkDepth(depth: unknown): number | undefined {
  if (depth === undefined || (isPositiveInteger(depth) && depth <= DEPTH_MAX)) return depth;
  throw invalid(`depth must be a positive integer: received ${shown(depth)}`);
}

/** Checks the option depth of a method: it counts from the end of a prefix. */
function checkDepthBelow(method: string, depth: unknown, { prefix }: Selector): number | undefined {
  const checked = checkDepth(depth);
  if (checked !== undefined && prefix === undefined) {
    throw invalid(`${method}: depth counts the parts behind a prefix: give a prefix`);
  }
  return checked;
}

/** The options that make a list a scan. */
export interface ScanOptions {
  /** A filter in CBOR. */
  readonly where: Buffer | null;
  readonly keysOnly: boolean;
  /** Most parts of a key behind the prefix. */
  readonly depth: number | undefined;
  readonly withExpiry: boolean;
  /** Entries that are not selected are returned too, with key and versionstamp only. */
  readonly passed: boolean;
  /** Of the entries that are not selected, value indexes may leave some out. */
  readonly indexed: boolean;
}

/** All entries, whole. */
export const WHOLE: ScanOptions = {
  where: null,
  keysOnly: false,
  depth: undefined,
  withExpiry: false,
  passed: false,
  indexed: false,
};

/** The scan that a list with these options is; null if it is none. */
export function scanOptions(
  method: string,
  { where: given, keysOnly, depth: parts, withExpiry }: ListOptions,
  selector: Selector,
  passed: boolean,
): ScanOptions | null {
  const where = encodeWhere(method, given);
  const depth = checkDepthBelow(method, parts, selector);
  const selects = where !== null || depth !== undefined;
  if (!selects && !keysOnly && !withExpiry) return null;
  const indexed = passed && where !== null && depth === undefined;
  return { where, keysOnly, depth, withExpiry, passed: passed && selects, indexed };
}

/** Refuses what does not go together with orderBy. */
export function refuseWithOrder(method: string, { depth }: ListOptions): void {
  if (depth === undefined) return;
  throw invalid(`${method}: orderBy and depth do not go together: leave one out`);
}

/** The options of a count. */
export const COUNT_OPTIONS = ["where", "depth", "signal"] as const;

/** What selects entries. */
export interface Selection {
  readonly where?: unknown;
  readonly depth?: unknown;
}

/** The scan of a count with these options. */
export function countScan(method: string, given: Selection, selector: Selector): ScanOptions {
  return { ...selectionScan(method, given, selector), keysOnly: true };
}

/** The scan of the whole entries that are selected. */
export function selectionScan(
  method: string,
  { where, depth }: Selection,
  selector: Selector,
): ScanOptions {
  return {
    ...WHOLE,
    where: encodeWhere(method, where),
    depth: checkDepthBelow(method, depth, selector),
  };
}

/** The request of a scan or count. */
export function putScan(
  frame: Writer,
  { start, end, prefixBytes }: Bounds,
  { where, keysOnly, depth, withExpiry, passed, indexed }: ScanOptions,
  reverse: boolean,
  limit: number,
  now: number,
): void {
  frame.u8(
    (reverse ? SCAN_REVERSE : 0) |
      (keysOnly ? SCAN_KEYS : 0) |
      (depth === undefined ? 0 : SCAN_DEPTH) |
      (where === null ? 0 : SCAN_WHERE) |
      (withExpiry ? SCAN_EXPIRY : 0) |
      (passed ? SCAN_PASSED : 0) |
      (indexed ? SCAN_INDEXED : 0),
  );
  frame.u32(limit);
  frame.f64(now);
  putSized(frame, start);
  putSized(frame, end);
  if (depth !== undefined) {
    frame.u32(prefixBytes);
    frame.u32(depth);
  }
  if (where !== null) putSized(frame, where);
}

/** A pending entry of a transaction that matches `where`, as its list has it; null if another option leaves it out. */
export function pendingEntry(
  key: KvEntryKey,
  value: unknown,
  expireAt: Date | null | undefined,
  { depth, keysOnly, withExpiry }: ScanOptions,
  selector: Selector,
): object | null {
  if (depth !== undefined && key.length - selector.prefix!.length > depth) return null;
  return {
    key,
    ...(keysOnly ? {} : { value }),
    versionstamp: null,
    ...(withExpiry ? { expireAt } : {}),
  };
}
