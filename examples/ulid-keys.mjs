// Duty: keys that sort by the time they were made. A ULID is 48 bits of milliseconds and 80 random
// bits, written as 26 letters that sort as the bits do; within one millisecond this generator
// counts upwards, so that one process's ids are strictly increasing.
//
//   node examples/ulid-keys.mjs [database file]

import { randomBytes } from "node:crypto";
import { openKv } from "openkv";

/** Crockford's base 32: no I, L, O or U. Its letters are in ASCII order. */
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_LETTERS = 10;
const RANDOM_LETTERS = 16;
const RANDOM_BITS = 80n;

/** Makes a generator of monotonic ULIDs; the clock is an argument so that it can be tested. */
function ulidGenerator(now = Date.now) {
  let time = -1;
  let random = 0n;
  return () => {
    const at = now();
    if (at > time) {
      time = at;
      random = BigInt(`0x${randomBytes(Number(RANDOM_BITS) / 8).toString("hex")}`);
    } else {
      // The same millisecond, or a clock that went backwards.
      random++;
      if (random >> RANDOM_BITS !== 0n) {
        throw new RangeError("more ULIDs in one millisecond than its random bits can count");
      }
    }
    return letters(BigInt(time), TIME_LETTERS) + letters(random, RANDOM_LETTERS);
  };
}

function letters(value, count) {
  let text = "";
  for (let place = 0; place < count; place++) {
    text = LETTERS[Number(value & 31n)] + text;
    value >>= 5n;
  }
  return text;
}

/** The smallest ULID of a moment: where a range of time starts or ends. */
const ulidAt = (time) => letters(BigInt(time), TIME_LETTERS) + "0".repeat(RANDOM_LETTERS);

const kv = await openKv(process.argv[2] ?? ":memory:");
const ulid = ulidGenerator();
const log = (text) => kv.set(["log", ulid()], text);

const began = Date.now();
await Promise.all(Array.from({ length: 100 }, (_, line) => log(`line ${line}`)));
while (Date.now() === began) {
  await new Promise((resolve) => setTimeout(resolve, 1));
}
const later = Date.now();
await log("a later line");

const read = async (selector, options) => {
  const entries = [];
  for await (const entry of kv.list(selector, options)) {
    entries.push(entry.value);
  }
  return entries;
};
const all = await read({ prefix: ["log"] });
const inOrder = all.every((text, line) => line === 100 || text === `line ${line}`);
console.log(`${all.length} lines, in the order in which they were written: ${inOrder}.`);
const newest = await read({ prefix: ["log"] }, { reverse: true, limit: 2 });
console.log("The newest two:", newest.join(", "));
const since = await read({ prefix: ["log"], start: ["log", ulidAt(later)] });
console.log("Since the later moment:", since.join(", "));
kv.close();
