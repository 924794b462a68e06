// Duty: the shapes that the source needs by name. The public declarations, with their contracts,
// are index.d.ts; __test__/types holds the classes of this folder to them.

export type {
  AtomicCheck,
  KvCommitError,
  KvCommitResult,
  KvConsistencyLevel,
  KvEntry,
  KvEntryMaybe,
  KvKey,
  KvKeyPart,
  KvListOptions,
  KvListSelector,
  KvMutation,
  KvSumOptions,
  KvU64,
  OpenKvOptions,
} from "../index.js";
