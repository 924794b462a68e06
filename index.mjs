// @ts-self-types="./index.d.mts"
// The entry for `import`.
export {
  openKv,
  Kv,
  AtomicOperation,
  KvListIterator,
  KvU64,
  KvUuidV7,
  restore,
  serve,
  sizeOf,
  KvError,
  KvConflictError,
  KvDoNotRetry,
  KvFeedGapError,
  KvUniqueError,
  KvOutcomeUnknownError,
  KvValidationError,
  BadResource,
} from "./index.cjs";
