// Duty: how methods that write refuse what they cannot do.

import { KvU64 } from "../../../index.mjs";
import {
  BIG,
  CLONED,
  KEY_READ,
  KEY_WRITE,
  LONG,
  NO_ARGUMENTS,
  NO_HANDLE,
  NO_OPTIONS,
  NO_SIZE,
  VALUE,
} from "./expected.mjs";

export default {
  "Kv.set": {
    closed: (kv) => kv.set(["a"], 1),
    wrong: [
      [(kv) => kv.set("a", 1), /expected: array/],
      [(kv) => kv.set(["a"], () => 1), CLONED],
      [(kv) => kv.set(["a"], 1, { expireIn: "5" }), /expireIn must be a non-negative integer/],
    ],
    over: [
      [(kv) => kv.set(LONG, 1), KEY_WRITE],
      [(kv) => kv.set(["a"], BIG), VALUE],
      [(kv) => kv.set(["a"], 1, { expireIn: 9e15 }), /expireIn is too large/],
    ],
    misspelt: [[(kv) => kv.set(["a"], 1, { expiresIn: 5 }), /did you mean 'expireIn'/]],
  },
  "Kv.delete": {
    closed: (kv) => kv.delete(["a"]),
    wrong: [
      [(kv) => kv.delete("a"), /expected: array/],
      [(kv) => kv.delete([]), /cannot be empty/],
    ],
    over: [[(kv) => kv.delete(LONG), KEY_WRITE]],
    misspelt: [[(kv) => kv.delete(["a"], { sinal: 1 }), /unknown option 'sinal'/]],
  },
  "Kv.deleteMany": {
    closed: (kv) => kv.deleteMany({ prefix: [] }),
    wrong: [
      [(kv) => kv.deleteMany(), /null or undefined|undefined/],
      [(kv) => kv.deleteMany({}), /must specify either/],
      [(kv) => kv.deleteMany(["a"]), /keys\[0\] must be a key/],
      [(kv) => kv.deleteMany([[]]), /keys\[0\] cannot be empty/],
      [(kv) => kv.deleteMany({ prefix: [] }, { limit: 0 }), /limit must be a positive integer/],
      [(kv) => kv.deleteMany({ prefix: [] }, { atomic: 1 }), /atomic must be a boolean/],
      [(kv) => kv.deleteMany({ prefix: [] }, { where: 1 }), /where must be an object/],
      [(kv) => kv.deleteMany({ prefix: [] }, { where: { $no: 1 } }), /\$no/],
    ],
    over: [
      [(kv) => kv.deleteMany([LONG]), KEY_WRITE],
      [(kv) => kv.deleteMany({ prefix: LONG }), KEY_READ],
      [(kv) => kv.deleteMany({ prefix: [] }, { limit: 2 ** 32 }), /limit must be/],
    ],
    misspelt: [[(kv) => kv.deleteMany({ prefix: [] }, { limits: 1 }), /unknown option 'limits'/]],
  },
  "Kv.touch": {
    closed: (kv) => kv.touch(["a"], { expireIn: 1 }),
    wrong: [
      [(kv) => kv.touch("a", { expireIn: 1 }), /array/],
      [(kv) => kv.touch(["a"]), /expireIn \(milliseconds\) or expireAt is missing/],
      [(kv) => kv.touch(["a"], 5), /options must be an object/],
      [(kv) => kv.touch(["a"], { expireIn: -1 }), /expireIn must be a non-negative integer/],
    ],
    over: [
      [(kv) => kv.touch(LONG, { expireIn: 1 }), KEY_WRITE],
      [(kv) => kv.touch(["a"], { expireIn: 9e15 }), /expireIn is too large/],
    ],
    misspelt: [[(kv) => kv.touch(["a"], { expiresIn: 1 }), /unknown option 'expiresIn'/]],
  },
  "Kv.persist": {
    closed: (kv) => kv.persist(["a"]),
    wrong: [
      [(kv) => kv.persist("a"), /array/],
      [(kv) => kv.persist([]), /cannot be empty/],
    ],
    over: [[(kv) => kv.persist(LONG), KEY_WRITE]],
    misspelt: [[(kv) => kv.persist(["a"], { sinal: 1 }), /unknown option 'sinal'/]],
  },
  "Kv.enqueue": {
    closed: (kv) => kv.enqueue(1),
    wrong: [
      [(kv) => kv.enqueue(() => 1), CLONED],
      [(kv) => kv.enqueue(1, { delay: "5" }), /expected: integer/],
      [(kv) => kv.enqueue(1, { priority: 5 }), /option 'priority' is for named queues/],
    ],
    over: [
      [(kv) => kv.enqueue(BIG), /enqueue payload too large/],
      [(kv) => kv.enqueue(1, { backoffSchedule: [1, 1, 1, 1, 1, 1] }), /max 5 intervals/],
    ],
    misspelt: [[(kv) => kv.enqueue(1, { dealy: 5 }), /did you mean 'delay'/]],
  },
  "Kv.commitVersionstamp": {
    closed: "its symbol stands for every commit",
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "Kv.uuidv7": {
    closed: "the UUID is made by a commit, which is refused",
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "KvUuidV7.uuidIn": {
    of: (kv) => kv.uuidv7(),
    closed: "it tells what is known already",
    wrong: [
      [(id) => id.uuidIn(), TypeError],
      [(id) => id.uuidIn({}), TypeError],
      [async (id, kv) => id.uuidIn(await kv.atomic().commit()), TypeError],
    ],
    over: NO_SIZE,
    misspelt: NO_OPTIONS,
  },
  "KvUuidV7.toString": {
    of: (kv) => kv.uuidv7(),
    closed: NO_HANDLE,
    wrong: [
      [(id) => `user:${id}`, /has no text before its commit/],
      [(id) => JSON.stringify({ id }), /has no text before its commit/],
    ],
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "KvU64.constructor": {
    closed: NO_HANDLE,
    wrong: [
      [() => new KvU64(5), TypeError],
      [() => new KvU64("5"), TypeError],
    ],
    over: [
      [() => new KvU64(-1n), RangeError],
      [() => new KvU64(1n << 64n), RangeError],
    ],
    misspelt: NO_OPTIONS,
  },
};
