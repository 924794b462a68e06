// Fills a database before a trial starts its clock.

import { key, value as smallValue } from "./data.mjs";

/** Writes per commit: small values stay far under the 800 KiB that one commit may carry. */
const SMALL_BATCH = 500;

/** Writes entries 0 to count − 1 through the Deno KV API. */
export async function populate(store, count, { value = smallValue, batch = SMALL_BATCH } = {}) {
  for (let from = 0; from < count; from += batch) {
    const operation = store.atomic();
    for (let i = from; i < Math.min(from + batch, count); i++) operation.set(key(i), value(i));
    const result = await operation.commit();
    if (!result.ok) throw new Error("populate: a commit without checks was refused");
  }
}

/** The same into a synchronous store. */
export function populateSync(store, count, { value = smallValue, batch = SMALL_BATCH } = {}) {
  for (let from = 0; from < count; from += batch) {
    const pairs = [];
    for (let i = from; i < Math.min(from + batch, count); i++) pairs.push([key(i), value(i)]);
    store.setMany(pairs);
  }
}
