/**
 * When a kind of record, the objects with the same keys, is so frequent that code is generated for it: a reader by
 * shape-trie.ts, a writer by shapes.ts.
 *
 * The engine compiles such code, the larger the longer, and compiles again what called it before; until then it is
 * slow. The more kinds are frequent, the less the code of each gains, so each has to be seen more often: unless
 * it is small and a value of its own, to which the code is worth most.
 */

/** Sightings that are needed among few kinds, and how many more for each key. */
const SIGHTINGS = 8000;
const SIGHTINGS_OF_KEY = 800;
/** Among more kinds these are multiplied with the number of kinds divided by this. */
const KINDS_OF_PATIENCE = 3;
/** Most that they are multiplied with, for records of so many keys and for larger ones. */
const SMALL_KEYS_MAX = 8;
const SMALL_PATIENCE_MAX = 2.5;
const PATIENCE_MAX = 8;

/** How often a kind must be seen to count as one of the frequent ones. */
export const SIGHTINGS_OF_KIND = 24;

/** How often a record of so many keys must be seen among so many frequent kinds; `isPart`: it is part of a value. */
export function sightingsNeeded(keys: number, kinds: number, isPart: boolean): number {
  const isSmall = keys <= SMALL_KEYS_MAX;
  const most = !isSmall ? PATIENCE_MAX : isPart ? SMALL_PATIENCE_MAX : 1;
  const patience = Math.max(1, Math.min(kinds / KINDS_OF_PATIENCE, most));
  return (SIGHTINGS + SIGHTINGS_OF_KEY * keys) * patience;
}
