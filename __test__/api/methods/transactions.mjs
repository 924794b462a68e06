// Duty: how a transaction and its methods refuse what they cannot do.

import {
  BIG,
  CLONED,
  KEY_READ,
  KEY_WRITE,
  LONG,
  NO_ARGUMENTS,
  NO_OPTIONS,
  NO_SIZE,
  PART,
  VALUE,
  keyOf,
  keys,
} from "./expected.mjs";

/** A call of a method inside a transaction. */
const tx = (call) => (kv) => kv.transaction((tx) => call(tx));
/** The same in one whose handle was closed meanwhile. */
const closing = (call) =>
  Object.assign((kv) => kv.transaction((tx) => (kv.close(), call(tx))), { closes: true });
const write = (call) => closing((tx) => void call(tx));

const badKey = (call) => [
  [tx((tx) => call(tx, "a")), /array/],
  [tx((tx) => call(tx, [])), /key cannot be empty/],
  [tx((tx) => call(tx, [{}])), PART],
];
const longKey = (call) => [[tx((tx) => call(tx, keyOf(2049))), KEY_WRITE]];

const calculation = (name) => ({
  closed: write((tx) => tx[name](["a"], 1n)),
  wrong: [
    ...badKey((tx, key) => tx[name](key, 1n)),
    [tx((tx) => tx[name](["a"], "1")), /Value must be a bigint: received string/],
  ],
  over: longKey((tx, key) => tx[name](key, 1n)),
  misspelt: [[tx((tx) => tx[name](["a"], 1, { mx: 5 })), /unknown option 'mx'/]],
});

const growth = (name) => ({
  closed: write((tx) => tx[name](["a"], [1])),
  wrong: [
    ...badKey((tx, key) => tx[name](key, [1])),
    [tx((tx) => tx[name](["a"], "ab")), /items must be an array: received the string "ab"/],
  ],
  over: [...longKey((tx, key) => tx[name](key, [1])), [tx((tx) => tx[name](["a"], [BIG])), VALUE]],
  misspelt: [[tx((tx) => tx[name](["a"], [1], { expiresIn: 5 })), /unknown option 'expiresIn'/]],
});

export default {
  "Kv.transaction": {
    closed: (kv) => kv.transaction(() => {}),
    wrong: [
      [(kv) => kv.transaction(), /expected a function: received undefined/],
      [(kv) => kv.transaction(() => {}, 5), /options must be an object/],
      [(kv) => kv.transaction(() => {}, { maxRetries: "5" }), /maxRetries must be/],
      [(kv) => kv.transaction(() => {}, { signal: {} }), /signal must be an AbortSignal/],
      [(kv) => kv.transaction(() => {}, { retryDelay: { max: "5" } }), /retryDelay\.max must be/],
    ],
    over: [
      [(kv) => kv.transaction(() => {}, { maxRetries: -1 }), /maxRetries must be/],
      [tx((tx) => tx.getMany(keys(101))), /Too many (ranges|checks)/],
    ],
    misspelt: [[(kv) => kv.transaction(() => {}, { retries: 5 }), /unknown option 'retries'/]],
  },
  "KvTransaction.get": {
    closed: closing((tx) => tx.get(["a"])),
    wrong: [
      [tx((tx) => tx.get("a")), /array/],
      [tx((tx) => tx.get(["a"], 5)), /options must be an object/],
      [tx((tx) => tx.get(["a"], { consistency: "weak" })), /unknown variant/],
    ],
    over: [[tx((tx) => tx.get(LONG)), KEY_READ]],
    misspelt: [[tx((tx) => tx.get(["a"], { consistancy: "strong" })), /'consistancy'/]],
  },
  "KvTransaction.getMany": {
    closed: closing((tx) => tx.getMany([["a"]])),
    wrong: [
      [tx((tx) => tx.getMany("ab")), /array/],
      [tx((tx) => tx.getMany(["a"])), /array/],
      [tx((tx) => tx.getMany([["a"]], 5)), /options must be an object/],
    ],
    over: [
      [tx((tx) => tx.getMany(keys(11))), /Too many ranges \(max 10\)/],
      [tx((tx) => tx.getMany([LONG])), KEY_READ],
    ],
    misspelt: [[tx((tx) => tx.getMany([["a"]], { consistensy: 1 })), /'consistensy'/]],
  },
  "KvTransaction.list": {
    closed: closing((tx) => tx.list({ prefix: [] }).next()),
    wrong: [
      [tx((tx) => tx.list()), /undefined/],
      [tx((tx) => tx.list({})), /must specify either/],
      [tx((tx) => tx.list({ prefix: [{}] })), PART],
      [tx((tx) => tx.list({ prefix: [] }, 5)), /options must be an object/],
      [tx((tx) => tx.list({ prefix: [] }, { limit: 0 })), /limit must be a positive integer/],
      [tx((tx) => tx.list({ prefix: [] }, { reverse: 1 })), /reverse must be a boolean/],
      [tx((tx) => tx.list({ prefix: [] }, { where: 5 })), /tx\.list: where must be an object/],
      [tx((tx) => tx.list({ prefix: [] }, { where: { a: { $like: 1 } } }).next()), /\$like/],
      [tx((tx) => tx.set(["a"], 1).count({ prefix: [] }, { where: { $no: 1 } })), /\$no/],
      [tx((tx) => tx.list({ prefix: [] }, { keysOnly: 1 })), /keysOnly must be a boolean/],
      [tx((tx) => tx.list({ prefix: [] }, { withExpiry: 1 })), /withExpiry must be a boolean/],
      [tx((tx) => tx.list({ start: [], end: ["a"] }, { depth: 1 })), /tx\.list: .*give a prefix/],
      [tx((tx) => tx.list({ prefix: [] }, { cursor: 5 })), /expected: string/],
      [tx((tx) => tx.list({ prefix: [] }, { cursor: "?" })), /invalid cursor/],
      [tx((tx) => tx.list({ prefix: [] }, { consistency: "weak" })), /unknown variant/],
      [tx((tx) => tx.list({ prefix: [] }).cursor), /^Error: Cannot get cursor/],
    ],
    over: [
      [tx((tx) => tx.list({ prefix: LONG })), KEY_READ],
      [tx((tx) => tx.list({ prefix: [] }, { batchSize: 1001 }).next()), /Too many entries/],
    ],
    misspelt: [[tx((tx) => tx.list({ prefix: [] }, { limt: 1 })), /unknown option 'limt'/]],
  },
  "KvTransactionListIterator.toArray": {
    closed: closing((tx) => tx.list({ prefix: [] }).toArray()),
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "KvTransaction.count": {
    closed: closing((tx) => tx.count({ prefix: [] })),
    wrong: [
      [tx((tx) => tx.count()), /undefined/],
      [tx((tx) => tx.count({})), /must specify either/],
      [tx((tx) => tx.count({ prefix: [] }, { where: 5 })), /tx\.count: where must be an object/],
    ],
    over: [[tx((tx) => tx.count({ prefix: LONG })), KEY_READ]],
    misspelt: [[tx((tx) => tx.count({ prefix: [] }, { were: {} })), /unknown option 'were'/]],
  },
  "KvTransaction.paginate": {
    closed: closing((tx) => tx.paginate({ prefix: [] })),
    wrong: [
      [tx((tx) => tx.paginate()), /tx\.paginate: a selector with a prefix, or a start and an end/],
      [tx((tx) => tx.paginate({})), /must specify either/],
      [tx((tx) => tx.paginate({ prefix: [], limit: "5" })), /tx\.paginate: limit must be/],
      [tx((tx) => tx.paginate({ prefix: [], cursor: "?" })), /invalid cursor/],
    ],
    over: [
      [tx((tx) => tx.paginate({ prefix: [], limit: 1001 })), /limit must be .* 1 to 1000/],
      [tx((tx) => tx.paginate({ prefix: LONG })), KEY_READ],
    ],
    misspelt: [[tx((tx) => tx.paginate({ prefix: [], limt: 1 })), /unknown option 'limt'/]],
  },
  "KvTransaction.set": {
    closed: write((tx) => tx.set(["a"], 1)),
    wrong: [
      ...badKey((tx, key) => tx.set(key, 1)),
      [tx((tx) => tx.set(["a"], () => 1)), CLONED],
      [tx((tx) => tx.set(["a"], 1, { expireIn: -1 })), /expireIn must be/],
    ],
    over: [...longKey((tx, key) => tx.set(key, 1)), [tx((tx) => tx.set(["a"], BIG)), VALUE]],
    misspelt: [[tx((tx) => tx.set(["a"], 1, { expiresIn: 1 })), /did you mean 'expireIn'/]],
  },
  "KvTransaction.delete": {
    closed: write((tx) => tx.delete(["a"])),
    wrong: badKey((tx, key) => tx.delete(key)),
    over: longKey((tx, key) => tx.delete(key)),
    misspelt: NO_OPTIONS,
  },
  "KvTransaction.sum": calculation("sum"),
  "KvTransaction.min": calculation("min"),
  "KvTransaction.max": calculation("max"),
  "KvTransaction.append": growth("append"),
  "KvTransaction.prepend": growth("prepend"),
  "KvTransaction.touch": {
    closed: write((tx) => tx.touch(["a"], { expireIn: 1 })),
    wrong: [
      ...badKey((tx, key) => tx.touch(key, { expireIn: 1 })),
      [tx((tx) => tx.touch(["a"])), /expireIn \(milliseconds\) or expireAt is missing/],
    ],
    over: longKey((tx, key) => tx.touch(key, { expireIn: 1 })),
    misspelt: [[tx((tx) => tx.touch(["a"], { expiresIn: 1 })), /unknown option 'expiresIn'/]],
  },
  "KvTransaction.persist": {
    closed: write((tx) => tx.persist(["a"])),
    wrong: badKey((tx, key) => tx.persist(key)),
    over: longKey((tx, key) => tx.persist(key)),
    misspelt: NO_OPTIONS,
  },
  "KvTransaction.mutate": {
    closed: write((tx) => tx.mutate({ type: "delete", key: ["a"] })),
    wrong: [
      [tx((tx) => tx.mutate(null)), /null/],
      [tx((tx) => tx.mutate({ key: ["a"], type: "add" })), /Invalid mutation type/],
      ...badKey((tx, key) => tx.mutate({ key, type: "delete" })),
    ],
    over: [
      ...longKey((tx, key) => tx.mutate({ key, type: "delete" })),
      [
        tx((tx) => tx.mutate(...keys(1001).map((key) => ({ type: "delete", key })))),
        /Too many mutations \(max 1000\)/,
      ],
    ],
    misspelt: [
      [tx((tx) => tx.mutate({ key: ["a"], type: "set", value: 1, expirein: 1 })), /expirein/],
    ],
  },
  "KvTransaction.enqueue": {
    closed: write((tx) => tx.enqueue(1)),
    wrong: [
      [tx((tx) => tx.enqueue(() => 1)), CLONED],
      [tx((tx) => tx.enqueue(1, { delay: "5" })), /expected: integer/],
      [tx((tx) => tx.enqueue(1, { queue: 5 })), /queue must be a string/],
    ],
    over: [
      [tx((tx) => tx.enqueue(BIG)), /enqueue payload too large/],
      [tx((tx) => tx.enqueue(1, { queue: "q", priority: 10 })), /priority must be/],
    ],
    misspelt: [
      [tx((tx) => tx.enqueue(1, { dealy: 1 })), /did you mean 'delay'/],
      [tx((tx) => tx.enqueue(1, { queue: "q", prioritys: 1 })), /unknown option 'prioritys'/],
    ],
  },
  "KvTransaction.schedule": {
    closed: write((tx) => tx.schedule("s", { every: 60_000 }, 1, { queue: "q" })),
    wrong: [
      [tx((tx) => tx.schedule("s", { every: 60_000 }, 1)), /options must have the queue/],
      [tx((tx) => tx.schedule("s", 5, 1, { queue: "q" })), /timing must be/],
    ],
    over: [
      [
        tx((tx) => tx.schedule("x".repeat(257), { every: 1000 }, 1, { queue: "q" })),
        /name is too long/,
      ],
    ],
    misspelt: [
      [tx((tx) => tx.schedule("s", { evry: 1 }, 1, { queue: "q" })), /unknown option 'evry'/],
    ],
  },
  "KvTransaction.unschedule": {
    closed: write((tx) => tx.unschedule("s", { queue: "q" })),
    wrong: [[tx((tx) => tx.unschedule("s")), /options must have the queue/]],
    over: [[tx((tx) => tx.unschedule("x".repeat(257), { queue: "q" })), /name is too long/]],
    misspelt: [[tx((tx) => tx.unschedule("s", { queue: "q", a: 1 })), /unknown option 'a'/]],
  },
  "KvTransaction.ack": {
    closed: Object.assign(
      async (kv) => {
        await kv.queue("q").enqueue(1);
        const message = await kv.queue("q").receive();
        await kv.transaction((tx) => (kv.close(), void tx.ack(message)));
      },
      { closes: true },
    ),
    wrong: [[tx((tx) => tx.ack("7")), /ack: message must be one that receive\(\)/]],
    over: NO_SIZE,
    misspelt: NO_OPTIONS,
  },
};
