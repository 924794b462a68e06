// What the writer of history-kill.test.mjs does in a step: it follows from the seed, so that the test
// knows it too.

import { Random } from "../crash/random.mjs";

const SLOTS = 24;
/** Beyond it, values are in a table of their own. */
const LARGE_BYTES = 3000;

export const markKey = (lane) => ["mark", lane];
export const slotKey = (slot) => ["slot", slot];

/** The changes of a step: `life` is ms until the entry expires, and `value` undefined deletes it. */
export function plan(seed, lane, n) {
  const random = new Random(seed, lane, n);
  const changes = new Map();
  for (let count = random.between(1, 4); count > 0; count--) {
    const slot = random.between(0, SLOTS - 1);
    if (random.oneIn(4)) changes.set(slot, { slot });
    else {
      const fill = random.bytes(random.oneIn(5) ? LARGE_BYTES : 12);
      const life = random.oneIn(4) ? random.between(5, 80) : undefined;
      changes.set(slot, { slot, value: { lane, n, fill }, life });
    }
  }
  return [...changes.values()];
}

export const allSlots = Array.from({ length: SLOTS }, (_, slot) => slot);
