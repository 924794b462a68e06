// The entry for `import`: the objects of index.js, so that there is one identity of every class.
// By require(), since Deno would read index.js as an ES module when a file outside of any package
// imports this one by its path.
import { createRequire } from "node:module";

const openkv = createRequire(import.meta.url)("./index.js");

export const {
  openKv,
  serve,
  sizeOf,
  Kv,
  AtomicOperation,
  KvListIterator,
  KvU64,
  KvUuidV7,
  KvError,
  KvConflictError,
  KvFeedGapError,
  KvOutcomeUnknownError,
  BadResource,
} = openkv;
