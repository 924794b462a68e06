// Duty: how leases, limiters and runs of functions refuse what they cannot do.

import {
  AT_COMMIT,
  KEY_WRITE,
  LONG,
  NO_ARGUMENTS,
  NO_OPTIONS,
  NO_SIZE,
  PART,
} from "./expected.mjs";

const RULE = { limit: 5, per: "1m" };
const limiter = (kv) => kv.limiter(["limiter"], RULE);
const tx = (call) => (kv) => kv.transaction((tx) => call(tx));

const badKey = (call) => [
  [(kv) => call(kv, "a"), /key must be an array: received the string "a"/],
  [(kv) => call(kv, []), /key cannot be empty/],
  [(kv) => call(kv, [{}]), PART],
];
const badTtl = (call, name) => [
  [(kv) => call(kv, { [name]: "1 hour" }), /must be a duration from 100 ms to .*"1 hour"/],
  [(kv) => call(kv, { [name]: 99 }), /must be a duration from 100 ms to .*received 99/],
];

export default {
  "Kv.lease": {
    closed: (kv) => kv.lease(["a"]),
    wrong: [
      ...badKey((kv, key) => kv.lease(key)),
      ...badTtl((kv, options) => kv.lease(["a"], options), "ttl"),
      [(kv) => kv.lease(["a"], 5), /options must be an object/],
      [(kv) => kv.lease(["a"], { wait: "soon" }), /wait must be a duration from 0 ms to/],
      [(kv) => kv.lease(["a"], { signal: {} }), /signal must be an AbortSignal/],
      [(kv) => kv.lease([kv.uuidv7()]), /KvUuidV7/],
      [(kv) => kv.lease(["a", kv.commitVersionstamp()]), PART],
    ],
    over: [[(kv) => kv.lease(LONG), KEY_WRITE]],
    misspelt: [[(kv) => kv.lease(["a"], { tll: 500 }), /unknown option 'tll'/]],
  },
  "KvLease.release": {
    of: (kv) => kv.lease(["held"]),
    closed: "a closed handle has let go of its leases",
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "Kv.limiter": {
    closed: (kv) => kv.limiter(["a"], RULE),
    wrong: [
      ...badKey((kv, key) => kv.limiter(key, RULE)),
      [(kv) => kv.limiter(["a"]), /limit and per are missing/],
      [(kv) => kv.limiter(["a"], 5), /options must be an object/],
      [(kv) => kv.limiter(["a"], { ...RULE, limit: 1.5 }), /limit must be an integer from 0/],
      [(kv) => kv.limiter(["a"], { ...RULE, limit: "5" }), /received the string "5"/],
      [(kv) => kv.limiter(["a"], { ...RULE, per: "minute" }), /per must be a duration from 1 ms/],
      [(kv) => kv.limiter(["a"], { ...RULE, algorithm: "leaky" }), /algorithm must be "fixed"/],
    ],
    over: [
      [(kv) => kv.limiter(LONG, RULE), KEY_WRITE],
      [(kv) => kv.limiter(["a"], { ...RULE, limit: 1e9 + 1 }), /limit must be .* to 1000000000/],
      [(kv) => kv.limiter(["a"], { ...RULE, per: "36526d" }), /per must be a duration/],
    ],
    misspelt: [[(kv) => kv.limiter(["a"], { ...RULE, algoritm: 1 }), /unknown option 'algoritm'/]],
  },
  "KvLimiter.take": {
    of: limiter,
    closed: (of) => of.take(),
    wrong: [
      [(of) => of.take("1"), /cost must be an integer from 1 to 1000000000/],
      [(of) => of.take(0), /cost must be .*received 0/],
    ],
    over: [[(of) => of.take(1e9 + 1), /cost must be an integer/]],
    misspelt: NO_OPTIONS,
  },
  "KvLimiter.peek": {
    of: limiter,
    closed: (of) => of.peek(),
    wrong: [[(of) => of.peek(-1), /cost must be an integer from 1 to 1000000000/]],
    over: [[(of) => of.peek(1e9 + 1), /cost must be an integer/]],
    misspelt: NO_OPTIONS,
  },
  "KvLimiter.reset": {
    of: limiter,
    closed: (of) => of.reset(),
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "Kv.once": {
    closed: (kv) => kv.once(["a"], () => 1),
    wrong: [
      ...badKey((kv, key) => kv.once(key, () => 1)),
      ...badTtl((kv, options) => kv.once(["a"], () => 1, options), "leaseTtl"),
      [(kv) => kv.once(["a"]), /kv\.once: expected a function: received undefined/],
      [(kv) => kv.once(["a"], () => 1, { ttl: 0 }), /ttl must be a duration from 1 ms/],
      [(kv) => kv.once(["a"], () => 1, { signal: {} }), /signal must be an AbortSignal/],
    ],
    over: [[(kv) => kv.once(LONG, () => 1), /Key too large for (read|write)/]],
    misspelt: [[(kv) => kv.once(["a"], () => 1, { lease: 1 }), /unknown option 'lease'/]],
  },
  "AtomicOperation.checkLease": {
    closed: AT_COMMIT,
    wrong: [
      [(kv) => kv.atomic().checkLease(), /lease must be one that kv\.lease\(\) gave/],
      [(kv) => kv.atomic().checkLease({ key: ["a"], token: "0" }), /received an object/],
    ],
    over: NO_SIZE,
    misspelt: NO_OPTIONS,
  },
  "KvTransaction.checkLease": {
    closed: Object.assign(
      async (kv) => {
        const lease = await kv.lease(["a"]);
        await kv.transaction((tx) => (kv.close(), tx.checkLease(lease)));
      },
      { closes: true },
    ),
    wrong: [[tx((tx) => tx.checkLease(null)), /lease must be one that kv\.lease\(\) gave/]],
    over: NO_SIZE,
    misspelt: NO_OPTIONS,
  },
};
