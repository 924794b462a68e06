// The table of contents: what index.cjs and index.mjs give out, and the entry of bundlers.

export { AtomicOperation } from "./atomic.js";
export { KvU64 } from "./codec/u64.js";
export { KvUuidV7 } from "./codec/uuid.js";
export {
  BadResource,
  KvConflictError,
  KvError,
  KvFeedGapError,
  KvOutcomeUnknownError,
} from "./errors.js";
export { Kv } from "./kv.js";
export { KvListIterator } from "./list.js";
export { openKv } from "./open.js";
export { restore } from "./restore.js";
export { serve } from "./serve.js";
export { sizeOf } from "./size.js";
