// Duty: get and getMany with all their options: a signal, the expiry, or neither.

import { option } from "../arguments/options.js";
import { abortable } from "../arguments/signal.js";
import type { KvConsistencyLevel, KvKey } from "../model/types.js";
import type { Session } from "../session/session.js";
import { asksForExpiry, getEntries } from "./entries.js";
import { getLater, getManyLater, getManyNow, getNow } from "./reads.js";

export interface GetOptions {
  consistency?: KvConsistencyLevel | undefined;
  withExpiry?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

export async function get(session: Session, key: KvKey, options?: GetOptions): Promise<any> {
  if (options != null && option(options, "signal") !== undefined) {
    return await abortableGet(session, key, options);
  }
  if (asksForExpiry(options)) return (await getEntries(session, [key], options!))[0];
  const entry = getNow(session, key, options);
  if (entry !== undefined) return entry;
  return await getLater(session, key, options);
}

export async function getMany(
  session: Session,
  keys: readonly KvKey[],
  options?: GetOptions,
): Promise<any> {
  if (options != null && option(options, "signal") !== undefined) {
    return await abortableGetMany(session, keys, options);
  }
  if (asksForExpiry(options)) return await getEntries(session, keys, options!);
  return getManyNow(session, keys, options) ?? (await getManyLater(session, keys, options));
}

// Functions of their own: a closure in get() would cost memory in each call.
function abortableGet(session: Session, key: KvKey, options: GetOptions): Promise<any> {
  return abortable("kv.get", options, (rest) => get(session, key, rest));
}

function abortableGetMany(
  session: Session,
  keys: readonly KvKey[],
  options: GetOptions,
): Promise<any> {
  return abortable("kv.getMany", options, (rest) => getMany(session, keys, rest));
}
