// Duty: the option orderBy: its paths, and the pages of a list in their order.

import { shown } from "../arguments/check.js";
import { decodeCursor, encodeCursor } from "../codec/cursor.js";
import type { Writer } from "../codec/writer.js";
import { invalid } from "../model/errors.js";
import { SORT_ENTRIES_MAX } from "../model/limits.js";
import { CALL_ORDERED_LIST } from "../native/contract.js";
import { putSized, readU32 } from "../native/frame.js";
import type { Session } from "../session/session.js";
import type { KvIndexPath } from "../model/types.js";
import type { Bounds } from "./range.js";
import type { ScanOptions } from "./list-options.js";
import { STEP_HEAD_BYTES, Scan, type ScanStep } from "./scan.js";

/** Flags of an ordered list. */
const SORT = 1;
const AFTER = 2;

/** An order of a list. */
export interface Order {
  readonly paths: readonly KvIndexPath[];
  readonly sort: boolean;
}

/** A path of an index: its name, or with its order. */
export function checkPath(what: string, given: unknown): KvIndexPath {
  if (typeof given === "string") return { path: given, order: "asc" };
  if (typeof given === "object" && given !== null) {
    const { path, order = "asc" } = given as { path?: unknown; order?: unknown };
    if (typeof path === "string" && (order === "asc" || order === "desc")) return { path, order };
  }
  throw invalid(
    `${what}: a path is a string, or { path, order: "asc" | "desc" }: received ${shown(given)}`,
  );
}

/** The order of a list; null without one. */
export function checkOrder(method: string, orderBy: unknown, sort: unknown): Order | null {
  if (sort !== undefined && typeof sort !== "boolean") {
    throw invalid(`${method}: sort must be a boolean: received ${shown(sort)}`);
  }
  if (orderBy === undefined) {
    if (sort !== true) return null;
    throw invalid(`${method}: sort says how orderBy is executed: give orderBy`);
  }
  if (typeof orderBy === "string") {
    return { paths: [{ path: orderBy, order: "asc" }], sort: sort === true };
  }
  if (typeof orderBy !== "object" || orderBy === null || Array.isArray(orderBy)) {
    throw invalid(
      `${method}: orderBy must be a path, or an object such as { createdAt: "desc" }: received ${shown(orderBy)}`,
    );
  }
  const paths = Object.entries(orderBy as Record<string, unknown>).map(([path, order]) => {
    if (order === "asc" || order === "desc") return { path, order } as const;
    throw invalid(`${method}: orderBy.${path} must be "asc" or "desc": received ${shown(order)}`);
  });
  return { paths, sort: sort === true };
}

export function putPaths(frame: Writer, paths: readonly KvIndexPath[]): void {
  frame.u32(paths.length);
  for (const { path, order } of paths) {
    frame.u8(order === "desc" ? 1 : 0);
    putSized(frame, Buffer.from(path, "utf8"));
  }
}

/** The order of a list, and the position behind which it continues. Null is the order of keys. */
export function putOrder(frame: Writer, order: Order | null, after: Uint8Array | null): void {
  const { paths, sort } = order ?? { paths: [], sort: false };
  frame.u8((sort ? SORT : 0) | (after === null ? 0 : AFTER));
  putPaths(frame, paths);
  if (after !== null) putSized(frame, after);
}

/** Reads the pages of a list in an order. Behind each row is its position. */
export class OrderedScan extends Scan {
  readonly #order: Order;
  #after: Uint8Array | null = null;
  /** The position of the row that was taken last. */
  #page: Buffer | null = null;
  #start = 0;
  #end = 0;

  constructor(
    session: Session,
    options: ScanOptions,
    reverse: boolean,
    signal: AbortSignal | undefined,
    freshness: number,
    order: Order,
    cursor: unknown,
  ) {
    super(session, options, reverse, signal, freshness, CALL_ORDERED_LIST);
    this.#order = order;
    if (cursor !== undefined && cursor !== null && cursor !== "") {
      this.#after = decodeCursor(cursor);
    }
  }

  protected override putRequest(frame: Writer, bounds: Bounds, limit: number): void {
    putOrder(frame, this.#order, this.#after);
    super.putRequest(frame, bounds, limit);
  }

  /** Its bound is the position of the next page; those of the keys stay. */
  protected override stepOf(page: Buffer, bounds: Bounds): ScanStep {
    const step = super.stepOf(page, { ...bounds });
    if (!step.done) this.#after = Buffer.from(page.subarray(STEP_HEAD_BYTES, step.at - 4));
    return { ...step, from: bounds.start };
  }

  /** A sorted page reads the whole range, so it is as large as it may be. */
  override rowsOf(rows: number): number {
    return this.#order.sort ? SORT_ENTRIES_MAX : rows;
  }

  override behind(page: Buffer, end: number): number {
    this.#page = page;
    this.#start = super.behind(page, end) + 4;
    this.#end = this.#start + readU32(page, this.#start - 4);
    return this.#end;
  }

  /** The position of the row that was taken last. */
  get position(): string {
    return this.#page!.toString("latin1", this.#start, this.#end);
  }

  override get cursor(): string | null {
    return this.#page === null ? null : encodeCursor(this.#page, this.#start, this.#end, 0);
  }
}
