// The entry for `import`: the objects of index.js, so that there is one identity of every class.
import openkv from "./index.js";

export const {
  openKv,
  Kv,
  AtomicOperation,
  KvListIterator,
  KvU64,
  KvError,
  BadResource,
} = openkv;
