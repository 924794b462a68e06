// The keys that all processes share, and what holds for them at any moment.

export const ACCOUNTS = Array.from({ length: 8 }, (_, at) => ["account", at]);
export const BALANCE = 1000;
export const COUNTERS = Array.from({ length: 4 }, (_, at) => ["sum", at]);
export const CHAIN = ["chain"];

/**
 * Watched together, written together: a state in which their versionstamps differ never existed.
 */
export const WATCHES = [
  [
    ["watched", "a", 0],
    ["watched", "a", 1],
  ],
  [
    ["watched", "b", 0],
    ["watched", "b", 1],
    ["watched", "b", 2],
  ],
  [["watched", "c"]],
];

/** The files whose keys are watched and whose queues are used: a process keeps those that it follows open. */
const WATCHED_FILES = 12;
export const isWatched = ({ file }) => file < WATCHED_FILES;

/** The last value that watched keys get. */
export const FINAL = { final: true };
export const isFinal = (value) => value?.final === true;

/** Writes one value under all keys of a watch. */
export async function setTogether(kv, keys, value) {
  const commit = kv.atomic();
  for (const key of keys) commit.set(key, value);
  return await commit.commit();
}

export async function prepare(kv) {
  const commit = kv.atomic();
  for (const key of ACCOUNTS) commit.set(key, BALANCE);
  for (const key of COUNTERS) commit.sum(key, 0n);
  for (const keys of WATCHES) for (const key of keys) commit.set(key, { n: 0 });
  await commit.set(CHAIN, 0).commit();
}
