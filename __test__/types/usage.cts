// Duty: the same declarations by `require`.

import openkv = require("openkv");

export async function opening(): Promise<openkv.KvEntryMaybe<number>> {
  const kv: openkv.Kv = await openkv.openKv(":memory:");
  // @ts-expect-error there is no such name
  openkv.openDb;
  return kv.get<number>(["a"]);
}
