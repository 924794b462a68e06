// Duty: all entries of a range with their expiry, if the database supports that.
// Invariant: if it does not, the caller is informed once, before the first entry.

import { KvError } from "../model/errors.js";
import type { Kv } from "../api/kv.js";
import type { KvListSelector } from "../model/types.js";
import type { ExportedEntry } from "./encode.js";

/**
 * `onWithoutExpiry` is called when the entries have no expiry. The result is the database's own
 * iterator, without a wrapper: callers read millions of entries.
 */
export async function listWithExpiry(
  kv: Kv,
  selector: KvListSelector,
  batchSize: number,
  onWithoutExpiry?: () => void,
): Promise<AsyncIterable<ExportedEntry>> {
  const withExpiry = await supportsExpiry(kv, selector);
  if (!withExpiry) onWithoutExpiry?.();
  return kv.list(selector, { batchSize, withExpiry });
}

/** Whether the database supports `withExpiry`. A plain KV Connect server does not. */
export async function supportsExpiry(kv: Kv, selector: KvListSelector): Promise<boolean> {
  try {
    await kv.list(selector, { limit: 1, withExpiry: true }).next();
    return true;
  } catch (error) {
    if (error instanceof KvError && error.code === "UNSUPPORTED") return false;
    throw error;
  }
}
