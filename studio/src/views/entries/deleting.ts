// Duty: deletes entries: one can be taken back, several need a confirmation.

import { signal } from "@preact/signals";
import { read, remove, removeMany, write } from "../../api/entries";
import { confirm } from "../../parts/dialog";
import { offerUndo, reporting, say } from "../../shell/toasts";
import type { Key } from "../../values/node";
import { printKey } from "../../values/print";

/** Counts the entries that were written again: the view that has deleted one may be closed by then. */
export const restored = signal(0);

/** Deletes an entry, and offers to write it again. Returns whether there was one. */
export async function deleteOne(database: string, key: Key): Promise<boolean> {
  const entry = await read(key, { database });
  if (entry === undefined || entry.value === null) return false;
  const { value, expireAt, versionstamp } = entry;
  await remove(database, key, { versionstamp: versionstamp! });
  const restore = reporting(async () => {
    const left = expireAt === undefined ? undefined : Math.max(1, expireAt - Date.now());
    await write(database, key, value, "absent", left);
    restored.value++;
  });
  offerUndo(`Deleted ${printKey(key)}`, database, restore);
  return true;
}

/** Asks, and deletes entries; not what is below them. */
export async function deleteMarked(database: string, keys: readonly Key[]): Promise<boolean> {
  const some = keys.slice(0, 5).map(printKey).join(", ");
  const isSure = await confirm({
    title: `Delete ${keys.length} entries?`,
    text: `${some}${keys.length > 5 ? ", …" : ""}. This cannot be undone.`,
    action: `Delete ${keys.length}`,
  });
  if (!isSure) return false;
  say(`Deleted ${await removeMany(database, keys)} entries`);
  return true;
}
