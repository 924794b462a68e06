// Duty: how the methods of an operation refuse what they cannot do: at the call, or at the commit
// when a key is bad.

import {
  AT_COMMIT,
  BIG,
  CLONED,
  KEY_WRITE,
  NO_ARGUMENTS,
  NO_OPTIONS,
  NO_SIZE,
  PART,
  VALUE,
  keyOf,
  keys,
} from "./expected.mjs";

const users = (kv) => kv.collection(["users"], { schema: (value) => value, id: "id" });
const commit = (add) => (kv) => add(kv.atomic()).commit();
/** The bad keys of every method of an operation: told at the commit. */
const badKey = (add) => [
  [commit((op) => add(op, "a")), /expected: array/],
  [commit((op) => add(op, [])), /key cannot be empty/],
  [commit((op) => add(op, [{}])), PART],
];
const longKey = (add) => [[commit((op) => add(op, keyOf(2049))), KEY_WRITE]];

/** The rows of sum, min and max. */
const calculation = (name) => ({
  closed: AT_COMMIT,
  wrong: [
    ...badKey((op, key) => op[name](key, 1n)),
    [(kv) => kv.atomic()[name](["a"], "1"), /Value must be a bigint: received string/],
    [(kv) => kv.atomic()[name](["a"], Number.NaN), /Value must be a finite number/],
    [(kv) => kv.atomic()[name](["a"], 1, { expireAt: "now" }), /expireAt must be a Date or ms/],
  ],
  over: longKey((op, key) => op[name](key, 1n)),
  misspelt: [[(kv) => kv.atomic()[name](["a"], 1, { mx: 5 }), /unknown option 'mx'/]],
});

/** The rows of append and prepend. */
const growth = (name) => ({
  closed: AT_COMMIT,
  wrong: [
    ...badKey((op, key) => op[name](key, [1])),
    [(kv) => kv.atomic()[name](["a"], "ab"), /items must be an array: received the string "ab"/],
    [(kv) => kv.atomic()[name](["a"], [() => 1]), CLONED],
    [(kv) => kv.atomic()[name](["a"], [1], { expireIn: "5" }), /expireIn must be/],
  ],
  over: [
    ...longKey((op, key) => op[name](key, [1])),
    [(kv) => kv.atomic()[name](["a"], [BIG]).commit(), VALUE],
  ],
  misspelt: [
    [(kv) => kv.atomic()[name](["a"], [1], { expiresIn: 5 }), /unknown option 'expiresIn'/],
  ],
});

export default {
  "Kv.atomic": {
    closed: AT_COMMIT,
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "AtomicOperation.check": {
    closed: AT_COMMIT,
    wrong: [
      [(kv) => kv.atomic().check(null), /null/],
      ...badKey((op, key) => op.check({ key, versionstamp: null })),
      [commit((op) => op.check({ key: ["a"], versionstamp: 5 })), /expected: string/],
      [commit((op) => op.check({ key: ["a"], versionstamp: "0" })), /Invalid check/],
    ],
    over: [
      ...longKey((op, key) => op.check({ key, versionstamp: null })),
      [
        commit((op) => op.check(...keys(101).map((key) => ({ key, versionstamp: null })))),
        /Too many checks \(max 100\)/,
      ],
    ],
    misspelt: [[(kv) => kv.atomic().check({ key: ["a"], versionStamp: null }), /'versionStamp'/]],
  },
  "AtomicOperation.mutate": {
    closed: AT_COMMIT,
    wrong: [
      [(kv) => kv.atomic().mutate(null), /null/],
      [(kv) => kv.atomic().mutate({ key: ["a"], type: "add" }), /Invalid mutation type/],
      [(kv) => kv.atomic().mutate({ key: ["a"], type: "set" }), /'set' without value/],
      ...badKey((op, key) => op.mutate({ key, type: "delete" })),
      [commit((op) => op.mutate({ key: ["a"], type: "min", value: 5n })), /non-U64 operand/],
    ],
    over: [
      ...longKey((op, key) => op.mutate({ key, type: "set", value: 1 })),
      [
        (kv) =>
          kv
            .atomic()
            .mutate({ key: ["a"], type: "set", value: BIG })
            .commit(),
        VALUE,
      ],
      [
        commit((op) => op.mutate(...keys(1001).map((key) => ({ type: "delete", key })))),
        /Too many mutations \(max 1000\)/,
      ],
    ],
    misspelt: [
      [(kv) => kv.atomic().mutate({ key: ["a"], type: "set", value: 1, expirein: 1 }), /expirein/],
    ],
  },
  "AtomicOperation.sum": calculation("sum"),
  "AtomicOperation.min": calculation("min"),
  "AtomicOperation.max": calculation("max"),
  "AtomicOperation.append": growth("append"),
  "AtomicOperation.prepend": growth("prepend"),
  "AtomicOperation.set": {
    closed: AT_COMMIT,
    wrong: [
      ...badKey((op, key) => op.set(key, 1)),
      [(kv) => kv.atomic().set(["a"], () => 1), CLONED],
      [(kv) => kv.atomic().set(["a"], 1, { expireIn: -1 }), /expireIn must be a non-negative/],
      [(kv) => kv.atomic().set(["a"], 1, { expireAt: "now" }), /expireAt must be a Date or ms/],
    ],
    over: [
      ...longKey((op, key) => op.set(key, 1)),
      [(kv) => kv.atomic().set(["a"], BIG).commit(), VALUE],
    ],
    misspelt: [[(kv) => kv.atomic().set(["a"], 1, { expiresIn: 1 }), /'expiresIn'/]],
  },
  "AtomicOperation.delete": {
    closed: AT_COMMIT,
    wrong: badKey((op, key) => op.delete(key)),
    over: longKey((op, key) => op.delete(key)),
    misspelt: NO_OPTIONS,
  },
  "AtomicOperation.touch": {
    closed: AT_COMMIT,
    wrong: [
      ...badKey((op, key) => op.touch(key, { expireIn: 1 })),
      [(kv) => kv.atomic().touch(["a"]), /expireIn \(milliseconds\) or expireAt is missing/],
      [(kv) => kv.atomic().touch(["a"], { expireIn: "1" }), /expireIn must be/],
    ],
    over: longKey((op, key) => op.touch(key, { expireIn: 1 })),
    misspelt: [[(kv) => kv.atomic().touch(["a"], { expiresIn: 1 }), /unknown option 'expiresIn'/]],
  },
  "AtomicOperation.persist": {
    closed: AT_COMMIT,
    wrong: badKey((op, key) => op.persist(key)),
    over: longKey((op, key) => op.persist(key)),
    misspelt: NO_OPTIONS,
  },
  "AtomicOperation.enqueue": {
    closed: AT_COMMIT,
    wrong: [
      [(kv) => kv.atomic().enqueue(() => 1), CLONED],
      [(kv) => kv.atomic().enqueue(1, { queue: "" }), /queue must not be empty/],
      [(kv) => kv.atomic().enqueue(1, { queue: 5 }), /queue must be a string/],
      [(kv) => kv.atomic().enqueue(1, { queue: "q", at: "now" }), /at must be a Date or ms/],
      [(kv) => kv.atomic().enqueue(1, { deadRetention: 5 }), /is for named queues/],
      [commit((op) => op.enqueue(1, { keysIfUndelivered: [5] })), /array/],
    ],
    over: [
      [(kv) => kv.atomic().enqueue(BIG).commit(), /enqueue payload too large/],
      [(kv) => kv.atomic().enqueue(1, { queue: "q".repeat(257) }), /queue is too long \(max 256/],
      [(kv) => kv.atomic().enqueue(1, { queue: "q", priority: 10 }), /priority must be .* 0 to 9/],
      [commit((op) => op.enqueue(1, { keysIfUndelivered: keys(11) })), /\(max 10\)/],
    ],
    misspelt: [
      [(kv) => kv.atomic().enqueue(1, { dellay: 1 }), /'dellay'/],
      [(kv) => kv.atomic().enqueue(1, { queue: "q", prioritys: 1 }), /unknown option 'prioritys'/],
    ],
  },
  "AtomicOperation.insert": {
    closed: AT_COMMIT,
    wrong: [
      [
        (kv) => kv.atomic().insert({}, {}),
        /a collection of kv\.collection\(\): received an object/,
      ],
      [(kv) => kv.atomic().insert(users(kv), {}), /the document has no id/],
    ],
    over: AT_COMMIT,
    misspelt: [[(kv) => kv.atomic().insert(users(kv), { id: 1 }, { expire: 1 }), /unknown option/]],
  },
  "AtomicOperation.schedule": {
    closed: (kv) => kv.atomic().schedule("s", { every: 60_000 }, 1, { queue: "q" }).commit(),
    wrong: [
      [(kv) => kv.atomic().schedule("s", { every: 60_000 }, 1), /options must have the queue/],
      [(kv) => kv.atomic().schedule("s", 5, 1, { queue: "q" }), /timing must be/],
      [(kv) => kv.atomic().schedule(5, { every: 1000 }, 1, { queue: "q" }), /name must be/],
    ],
    over: [
      [
        (kv) => kv.atomic().schedule("x".repeat(257), { every: 1000 }, 1, { queue: "q" }),
        /name is too long/,
      ],
    ],
    misspelt: [
      [
        (kv) => kv.atomic().schedule("s", { every: 1000 }, 1, { queue: "q", prio: 1 }),
        /unknown option 'prio'/,
      ],
    ],
  },
  "AtomicOperation.unschedule": {
    closed: (kv) => kv.atomic().unschedule("s", { queue: "q" }).commit(),
    wrong: [
      [(kv) => kv.atomic().unschedule("s"), /options must have the queue/],
      [(kv) => kv.atomic().unschedule("s", { queue: 5 }), /queue must be a string/],
    ],
    over: [[(kv) => kv.atomic().unschedule("x".repeat(257), { queue: "q" }), /name is too long/]],
    misspelt: [[(kv) => kv.atomic().unschedule("s", { queue: "q", a: 1 }), /unknown option 'a'/]],
  },
  "AtomicOperation.ack": {
    closed: AT_COMMIT,
    wrong: [
      [(kv) => kv.atomic().ack("7"), /ack: message must be one that receive\(\)/],
      [(kv) => kv.atomic().ack({ id: "7" }), /ack: message must be one that receive\(\)/],
    ],
    over: NO_SIZE,
    misspelt: NO_OPTIONS,
  },
  "AtomicOperation.commit": {
    closed: (kv) => kv.atomic().commit(),
    wrong: [
      [async (kv) => await kv.atomic(), /did you forget to call 'commit\(\)'/],
      [(kv) => kv.atomic().commit({ values: 5 }), /values must be a boolean: received 5/],
    ],
    over: [
      [
        (kv) =>
          keys(13)
            .reduce((op, key) => op.set(key, "x".repeat(65_000)), kv.atomic())
            .commit(),
        /Total mutation size too large \(max 819200 bytes\)/,
      ],
    ],
    misspelt: [[(kv) => kv.atomic().commit({ sinal: 1 }), /unknown option 'sinal'/]],
  },
};
