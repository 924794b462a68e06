// Duty: all entries of a range with their ends, where the database tells them.
// Invariant: what is not told is said, once, before the first entry: nothing is lost in silence.

import { KvError } from "../errors.js";
import type { Kv } from "../kv.js";
import type { KvListSelector } from "../types.js";
import type { ExportedEntry } from "./encode.js";

/**
 * `untold`: called when the entries come without their ends. The list is the database's own: nothing
 * stands between it and whoever reads a million entries.
 */
export async function listWithEnds(
  kv: Kv,
  selector: KvListSelector,
  batchSize: number,
  untold?: () => void,
): Promise<AsyncIterable<ExportedEntry>> {
  const withExpiry = await tellsEnds(kv, selector);
  if (!withExpiry) untold?.();
  return kv.list(selector, { batchSize, withExpiry });
}

/** Whether the database tells when its entries end: a plain server of KV Connect does not. */
export async function tellsEnds(kv: Kv, selector: KvListSelector): Promise<boolean> {
  try {
    await kv.list(selector, { limit: 1, withExpiry: true }).next();
    return true;
  } catch (error) {
    // A plain server of KV Connect has no word for them.
    if (error instanceof KvError && error.code === "UNSUPPORTED") return false;
    throw error;
  }
}
