// Duty: paginate: one page of a list, and the cursor of the next one.

import { invalid, misuse } from "../model/errors.js";
import { checkOptions, shown } from "../arguments/check.js";
import { KvListIterator, forKv } from "./list.js";
import { checkSelector } from "./range.js";
import type { Session } from "../session/session.js";
import type { KvFilter, KvListOptions, KvListSelector, KvOrder, KvPage } from "../model/types.js";
import { PAGE_ENTRIES_MAX } from "../model/limits.js";

const OPTIONS = ["limit", "cursor", "reverse", "where", "orderBy", "sort", "signal"] as const;
const BOUNDS = ["prefix", "start", "end"] as const;
/** The older form has both in one object. */
const ALL_NAMES = [...BOUNDS, ...OPTIONS] as const;
const LIMIT_DEFAULT = 100;
/** Most rows of one read. */
const READ_ROWS_MAX = 500;

/** A list with a cursor. */
interface Listed<E> {
  next(): Promise<IteratorResult<E, undefined>>;
  readonly cursor: string;
}

export function paginate<T>(
  session: Session,
  selector: unknown,
  options: unknown,
  signal?: AbortSignal,
): Promise<KvPage<T>> {
  return pageOf("kv.paginate", selector, options, (selector, page) => {
    session.requireOpen();
    return new KvListIterator<T>(session, selector, page, forKv(signal));
  });
}

/** A page of a list. */
export async function pageOf<E>(
  method: string,
  which: unknown,
  options: unknown,
  list: (selector: KvListSelector, options: KvListOptions<any>) => Listed<E>,
): Promise<{ entries: E[]; cursor: string | null; hasMore: boolean }> {
  const { selector, given } = shapeOf(method, which, options);
  const { limit = LIMIT_DEFAULT, cursor, reverse, where, orderBy, sort } = given;
  if (
    typeof limit !== "number" ||
    !Number.isInteger(limit) ||
    limit < 1 ||
    limit > PAGE_ENTRIES_MAX
  ) {
    throw invalid(
      `${method}: limit must be an integer from 1 to ${PAGE_ENTRIES_MAX}: received ${shown(limit)}`,
    );
  }
  if (cursor !== undefined && cursor !== null && typeof cursor !== "string") {
    throw invalid(`${method}: cursor must be a string: received ${shown(cursor)}`);
  }
  if (reverse !== undefined && typeof reverse !== "boolean") {
    throw invalid(`${method}: reverse must be a boolean: received ${shown(reverse)}`);
  }
  // One entry more than requested shows whether there is a next page.
  const listed = list(selector, {
    limit: limit + 1,
    batchSize: Math.min(limit + 1, READ_ROWS_MAX),
    reverse: reverse === true,
    ...(where === undefined ? {} : { where: where as KvFilter<any> }),
    ...(orderBy === undefined ? {} : { orderBy: orderBy as KvOrder }),
    ...(sort === undefined ? {} : { sort: sort as boolean }),
    ...(cursor == null || cursor === "" ? {} : { cursor }),
  });
  const entries: E[] = [];
  let last: string | null = null;
  for (;;) {
    const next: IteratorResult<E, undefined> = await listed.next();
    if (next.done === true) return { entries, cursor: null, hasMore: false };
    if (entries.length === limit) return { entries, cursor: last, hasMore: true };
    entries.push(next.value);
    if (entries.length === limit) last = listed.cursor;
  }
}

/** The selector and options: two arguments, or one object with both (the older form). */
function shapeOf(
  method: string,
  which: unknown,
  options: unknown,
): {
  selector: KvListSelector;
  given: { readonly [Name in (typeof OPTIONS)[number]]?: unknown };
} {
  if (which === undefined || which === null) {
    throw misuse(`${method}: a selector with a prefix, or a start and an end, is missing`);
  }
  if (options !== undefined) {
    const given = checkOptions(method, options, OPTIONS);
    return { selector: checkSelector(method, which, OPTIONS) as KvListSelector, given };
  }
  const given = checkOptions(method, which, ALL_NAMES);
  const selector: Record<string, unknown> = {};
  for (const name of BOUNDS) if (given[name] !== undefined) selector[name] = given[name];
  return { selector: selector as unknown as KvListSelector, given };
}
