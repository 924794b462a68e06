// Duty: the table of contents: what index.cjs and index.mjs export, and the entry of bundlers.

export { AtomicOperation } from "./atomic/atomic.js";
export { KvU64 } from "./codec/u64.js";
export { KvUuidV7 } from "./codec/uuid.js";
export {
  BadResource,
  KvConflictError,
  KvDoNotRetry,
  KvError,
  KvFeedGapError,
  KvOutcomeUnknownError,
  KvUniqueError,
  KvValidationError,
} from "./model/errors.js";
export { Kv } from "./api/kv.js";
export { KvListIterator } from "./read/list.js";
export { openKv } from "./api/open.js";
export { restore } from "./maintenance/restore.js";
export { serve } from "./api/serve.js";
export { sizeOf } from "./api/size.js";
