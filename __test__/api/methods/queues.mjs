// Duty: how queues, their messages and their dead ones refuse what they cannot do.

import {
  BIG,
  CLONED,
  KEY_WRITE,
  LONG,
  NO_ARGUMENTS,
  NO_OPTIONS,
  NO_SIZE,
  keys,
} from "./expected.mjs";

const DAY_MS = 86_400_000;
const queue = (kv) => kv.queue("q");
const dead = (kv) => kv.queue("q").dead;
/** A message that was received. Its lock outlasts all rows, which compare the queues before and after. */
const message = async (kv) => {
  await kv.queue("held").enqueue(1);
  return await kv.queue("held").receive({ lockDuration: DAY_MS });
};

/** A message in a handler, which runs until the handle is closed. */
const handled = async (kv) => {
  await kv.queue("handled").enqueue(1);
  return await new Promise((resolve) => {
    const handler = (_, message) => {
      resolve(message);
      return new Promise(() => {});
    };
    kv.queue("handled").listen(handler, { drain: 0 });
  });
};

const progress = (of) => ({
  of,
  closed: (held) => held.progress(1),
  wrong: [[(held) => held.progress(() => 1), CLONED]],
  over: [[(held) => held.progress(BIG), /Value too large/]],
  misspelt: NO_OPTIONS,
});

/** The rows of the methods that name one message. */
const byId = (name, of = dead) => ({
  of,
  closed: (letters) => letters[name]("1"),
  wrong: [
    [(letters) => letters[name](), /id must be the id of a message: received undefined/],
    [(letters) => letters[name](1), /received 1/],
    [(letters) => letters[name]("x"), /received the string "x"/],
    [(letters) => letters[name]("0"), /received the string "0"/],
  ],
  over: [[(letters) => letters[name]("9".repeat(17)), /id must be the id of a message/]],
  misspelt: [[(letters) => letters[name]("1", { sinal: 1 }), /unknown option 'sinal'/]],
});

const lock = (call) => [
  [
    (on) => call(on, { lockDuration: 99 }),
    /lockDuration must be a duration from 100 ms to 86400000 ms/,
  ],
  [(on) => call(on, { lockDuration: DAY_MS + 1 }), /lockDuration must be/],
];

export default {
  "Kv.queue": {
    closed: (kv) => kv.queue("q"),
    wrong: [
      [(kv) => kv.queue(5), /name must be a string: received 5/],
      [(kv) => kv.queue(null), /name must be a string: received null/],
      [(kv) => kv.queue(""), /name must not be empty/],
      [(kv) => kv.queue("\ud800"), /name must be well-formed/],
      [(kv) => kv.queue("q", 5), /options must be an object/],
      [(kv) => kv.queue("q", { deadRetention: "1" }), /deadRetention must be a duration/],
      [(kv) => kv.queue("q", { keepResult: "soon" }), /keepResult must be a duration/],
      [(kv) => kv.queue("\u0001paused"), /name must not begin with U\+0001/],
    ],
    over: [
      [(kv) => kv.queue("é".repeat(129)), /name is too long \(max 256 bytes\): 258 bytes/],
      [(kv) => kv.queue("q", { deadRetention: 9e15 }), /deadRetention must be a duration/],
    ],
    misspelt: [[(kv) => kv.queue("q", { deadRetentoin: 1 }), /unknown option 'deadRetentoin'/]],
  },
  "KvQueue.enqueue": {
    of: queue,
    closed: (q) => q.enqueue(1),
    wrong: [
      [(q) => q.enqueue(() => 1), CLONED],
      [(q) => q.enqueue(1, 5), /options must be an object/],
      [(q) => q.enqueue(1, { delay: "5" }), /expected: integer/],
      [(q) => q.enqueue(1, { at: "now" }), /at must be a Date or ms since the epoch/],
      [(q) => q.enqueue(1, { at: new Date(Number.NaN) }), /an invalid Date/],
      [(q) => q.enqueue(1, { at: 5, delay: 5 }), /either delay or at/],
      [(q) => q.enqueue(1, { deduplicationKey: 5 }), /deduplicationKey must be a string/],
      [(q) => q.enqueue(1, { deduplicationKey: "" }), /deduplicationKey must not be empty/],
      [(q) => q.enqueue(1, { priority: 1.5 }), /priority must be an integer from 0 to 9/],
      [(q) => q.enqueue(1, { deadRetention: null }), /deadRetention must be a duration/],
      [(q) => q.enqueue(1, { keepResult: 0 }), /keepResult must be a duration/],
      [(q) => q.enqueue(1, { keysIfUndelivered: [[]] }), /key cannot be empty/],
      [(q) => q.enqueue(1, { group: 5 }), /group must be a string/],
      [(q) => q.enqueue(1, { group: "a\n" }), /group must have no control characters/],
    ],
    over: [
      [(q) => q.enqueue(1, { group: "g".repeat(257) }), /group is too long \(max 256 bytes\)/],
      [(q) => q.enqueue(BIG), /enqueue payload too large/],
      [(q) => q.enqueue(1, { priority: 10 }), /priority must be an integer from 0 to 9/],
      [(q) => q.enqueue(1, { at: 8e15 }), /at is too late/],
      [(q) => q.enqueue(1, { delay: 31 * DAY_MS }), /greater than 30 days/],
      [(q) => q.enqueue(1, { deduplicationKey: "k".repeat(1025) }), /max 1024 bytes/],
      [(q) => q.enqueue(1, { keysIfUndelivered: keys(11) }), /\(max 10\)/],
      [(q) => q.enqueue(1, { keysIfUndelivered: [LONG] }), KEY_WRITE],
      [(q) => q.enqueue(1, { backoffSchedule: [1, 1, 1, 1, 1, 1] }), /max 5 intervals/],
    ],
    misspelt: [[(q) => q.enqueue(1, { prioritys: 1 }), /unknown option 'prioritys'/]],
  },
  "KvQueue.listen": {
    of: queue,
    closed: (q) => q.listen(() => {}),
    wrong: [
      [(q) => q.listen(), /handler must be a function: received undefined/],
      [(q) => q.listen(() => {}, 5), /options must be an object/],
      [(q) => q.listen(() => {}, { concurrency: "1" }), /concurrency must be an integer/],
      [(q) => q.listen(() => {}, { signal: {} }), /signal must be an AbortSignal/],
    ],
    over: [
      [(q) => q.listen(() => {}, { concurrency: 0 }), /must be an integer from 1 to 1000/],
      [(q) => q.listen(() => {}, { concurrency: 1001 }), /concurrency must be/],
      [
        (q) => q.listen(() => {}, { timeout: 0 }),
        /timeout must be a duration from 1 ms to 86400000 ms/,
      ],
      ...lock((q, options) => q.listen(() => {}, options)),
    ],
    misspelt: [[(q) => q.listen(() => {}, { concurency: 1 }), /unknown option 'concurency'/]],
  },
  "KvQueue.receive": {
    of: queue,
    closed: (q) => q.receive(),
    wrong: [
      [(q) => q.receive(5), /options must be an object/],
      [(q) => q.receive({ wait: "1" }), /wait must be a duration/],
      [(q) => q.receive({ signal: 5 }), /signal must be an AbortSignal/],
    ],
    over: [
      [(q) => q.receive({ wait: DAY_MS + 1 }), /wait must be a duration from 0 ms to 86400000 ms/],
      [(q) => q.receive({ wait: -1 }), /wait must be a duration/],
      ...lock((q, options) => q.receive(options)),
    ],
    misspelt: [[(q) => q.receive({ wiat: 1 }), /unknown option 'wiat'/]],
  },
  "KvQueue.pause": {
    of: queue,
    closed: (q) => q.pause(),
    wrong: [
      [(q) => q.pause(5), /options must be an object/],
      [(q) => q.pause({ group: 5 }), /group must be a string/],
    ],
    over: NO_SIZE,
    misspelt: [[(q) => q.pause({ sinal: 1 }), /unknown option 'sinal'/]],
  },
  "KvQueue.resume": {
    of: queue,
    closed: (q) => q.resume(),
    wrong: [[(q) => q.resume(5), /options must be an object/]],
    over: NO_SIZE,
    misspelt: [[(q) => q.resume({ sinal: 1 }), /unknown option 'sinal'/]],
  },
  "KvQueue.drain": {
    of: queue,
    closed: (q) => q.drain(),
    wrong: [[(q) => q.drain({ delayed: 1 }), /delayed must be a boolean: received 1/]],
    over: NO_SIZE,
    misspelt: [[(q) => q.drain({ delayd: true }), /unknown option 'delayd'/]],
  },
  "KvQueue.setLimits": {
    of: queue,
    closed: (q) => q.setLimits({}),
    wrong: [
      [(q) => q.setLimits(), /limits must be \{ concurrency, rate, group \}/],
      [(q) => q.setLimits({ concurrency: "5" }), /concurrency must be an integer/],
      [(q) => q.setLimits({ rate: { limit: 1, per: "5" } }), /rate\.per must be a duration/],
      [(q) => q.setLimits({ group: 5 }), /group: options must be an object/],
    ],
    over: [
      [(q) => q.setLimits({ concurrency: 1_000_001 }), /from 1 to 1000000/],
      [(q) => q.setLimits({ rate: { limit: 1e10, per: 1 } }), /rate\.limit must be/],
    ],
    misspelt: [[(q) => q.setLimits({ concurency: 1 }), /unknown option 'concurency'/]],
  },
  "KvQueue.limits": {
    of: queue,
    closed: (q) => q.limits(),
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: [[(q) => q.limits({ sinal: 1 }), /unknown option 'sinal'/]],
  },
  "KvQueue.groups": {
    of: queue,
    closed: (q) => q.groups(),
    wrong: [
      [(q) => q.groups(5), /options must be an object/],
      [(q) => q.groups({ cursor: "x" }), /cursor must be one that groups\(\) gave/],
    ],
    over: [[(q) => q.groups({ limit: 1001 }), /limit must be an integer from 1 to 1000/]],
    misspelt: [[(q) => q.groups({ limt: 1 }), /unknown option 'limt'/]],
  },
  "KvQueue.cancel": byId("cancel", queue),
  "KvQueue.progress": byId("progress", queue),
  "KvQueue.result": {
    ...byId("result", queue),
    over: [[(q) => q.result("1", { wait: DAY_MS + 1 }), /wait must be a duration from 0 ms to/]],
  },
  "KvQueue.events": {
    of: queue,
    closed: (q) => q.events(),
    wrong: [
      [(q) => q.events(5), /options must be an object/],
      [(q) => q.events({ since: "x" }), /since must be a versionstamp/],
      [(q) => q.events({ signal: 5 }), /signal must be an AbortSignal/],
    ],
    over: NO_SIZE,
    misspelt: [[(q) => q.events({ sine: 1 }), /unknown option 'sine'/]],
  },
  "KvQueue.stats": {
    of: queue,
    closed: (q) => q.stats(),
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: [[(q) => q.stats({ sinal: 1 }), /unknown option 'sinal'/]],
  },
  "KvQueue.peek": {
    of: queue,
    closed: (q) => q.peek(),
    wrong: [
      [(q) => q.peek(5), /options must be an object/],
      [(q) => q.peek({ state: "dead" }), /state must be/],
      [(q) => q.peek({ limit: "5" }), /limit must be an integer/],
      [(q) => q.peek({ cursor: 5 }), /cursor must be one that peek\(\) gave/],
      [(q) => q.peek({ cursor: "x" }), /cursor must be one that peek\(\) gave/],
    ],
    over: [
      [(q) => q.peek({ limit: 1001 }), /limit must be an integer from 1 to 1000/],
      [(q) => q.peek({ limit: 0 }), /limit must be/],
    ],
    misspelt: [[(q) => q.peek({ limt: 1 }), /unknown option 'limt'/]],
  },
  "KvQueue.delete": byId("delete", queue),
  "KvQueue.schedule": {
    of: queue,
    closed: (q) => q.schedule("s", { every: 60_000 }, 1),
    wrong: [
      [(q) => q.schedule(5, { every: 60_000 }, 1), /name must be a string/],
      [(q) => q.schedule("s", 5, 1), /timing must be/],
      [(q) => q.schedule("s", { cron: 5 }, 1), /cron must be a string/],
      [(q) => q.schedule("s", { every: "5" }, 1), /every must be an integer, in ms, or a text/],
      [(q) => q.schedule("s", { every: 60_000 }, 1, 5), /options must be an object/],
      [(q) => q.schedule("s", { every: 60_000 }, () => {}), /./],
    ],
    over: [
      [(q) => q.schedule("x".repeat(257), { every: 60_000 }, 1), /name is too long/],
      [(q) => q.schedule("s", { every: 9 }, 1), /every must be from 10/],
      [(q) => q.schedule("s", { every: 60_000 }, 1, { priority: 10 }), /priority must be/],
    ],
    misspelt: [
      [(q) => q.schedule("s", { evry: 60_000 }, 1), /unknown option 'evry'/],
      [(q) => q.schedule("s", { every: 60_000 }, 1, { priorty: 1 }), /unknown option 'priorty'/],
    ],
  },
  "KvQueue.unschedule": {
    of: queue,
    closed: (q) => q.unschedule("s"),
    wrong: [[(q) => q.unschedule(5), /name must be a string/]],
    over: [[(q) => q.unschedule("x".repeat(257)), /name is too long/]],
    misspelt: [[(q) => q.unschedule("s", { signl: 1 }), /unknown option 'signl'/]],
  },
  "KvQueue.schedules": {
    of: queue,
    closed: (q) => q.schedules(),
    wrong: [
      [(q) => q.schedules(5), /options must be an object/],
      [(q) => q.schedules({ limit: "5" }), /limit must be an integer/],
      [(q) => q.schedules({ cursor: "x" }), /cursor must be one that schedules\(\) gave/],
    ],
    over: [[(q) => q.schedules({ limit: 1001 }), /limit must be an integer from 1 to 1000/]],
    misspelt: [[(q) => q.schedules({ limt: 1 }), /unknown option 'limt'/]],
  },
  "KvDeadLetters.list": {
    of: dead,
    closed: (letters) => letters.list(),
    wrong: [
      [(letters) => letters.list(5), /options must be an object/],
      [(letters) => letters.list({ limit: "5" }), /limit must be an integer/],
      [(letters) => letters.list({ cursor: 5 }), /cursor must be one that list\(\) gave/],
      [(letters) => letters.list({ cursor: "x" }), /cursor must be one that list\(\) gave/],
    ],
    over: [
      [(letters) => letters.list({ limit: 1001 }), /limit must be an integer from 1 to 1000/],
      [(letters) => letters.list({ limit: 0 }), /limit must be/],
    ],
    misspelt: [[(letters) => letters.list({ limits: 5 }), /unknown option 'limits'/]],
  },
  "KvDeadLetters.get": byId("get"),
  "KvDeadLetters.requeue": byId("requeue"),
  "KvDeadLetters.delete": byId("delete"),
  "KvDeadLetters.requeueAll": {
    of: dead,
    closed: (letters) => letters.requeueAll(),
    wrong: [[(letters) => letters.requeueAll(5), /options must be an object/]],
    over: "it has no bounds",
    misspelt: [[(letters) => letters.requeueAll({ signl: 1 }), /unknown option 'signl'/]],
  },
  "KvDeadLetters.purge": {
    of: dead,
    closed: (letters) => letters.purge(),
    wrong: [
      [(letters) => letters.purge(5), /options must be an object/],
      [(letters) => letters.purge({ olderThan: "1" }), /olderThan must be a duration/],
    ],
    over: [
      [(letters) => letters.purge({ olderThan: 9e15 }), /olderThan must be a duration/],
      [(letters) => letters.purge({ olderThan: -1 }), /olderThan must be a duration/],
    ],
    misspelt: [[(letters) => letters.purge({ olderthan: 1 }), /unknown option 'olderthan'/]],
  },
  "KvMessage.ack": {
    of: message,
    closed: (held) => held.ack(),
    wrong: "a result of a message without keepResult is not kept",
    over: NO_SIZE,
    misspelt: NO_OPTIONS,
  },
  "KvMessage.progress": progress(message),
  "KvHandledMessage.progress": progress(handled),
  "KvMessage.nack": {
    of: message,
    closed: (held) => held.nack(),
    wrong: [
      [(held) => held.nack(5), /options must be an object/],
      [(held) => held.nack({ delay: "5" }), /delay must be a duration/],
      [(held) => held.nack({ retry: "no" }), /retry must be a boolean: received the string "no"/],
      [(held) => held.nack({ retry: false, delay: 5 }), /either delay or retry: false/],
    ],
    over: [
      [(held) => held.nack({ delay: 31 * DAY_MS }), /delay is too long \(max 2592000000 ms\)/],
    ],
    misspelt: [[(held) => held.nack({ dealy: 5 }), /unknown option 'dealy'/]],
  },
  "KvMessage.extend": {
    of: message,
    closed: (held) => held.extend(1000),
    wrong: [
      [
        (held) => held.extend(),
        /ms must be a duration from 100 ms to 86400000 ms.*: received undefined/,
      ],
      [(held) => held.extend("1000"), /ms must be a duration/],
    ],
    over: [
      [(held) => held.extend(99), /ms must be a duration/],
      [(held) => held.extend(DAY_MS + 1), /ms must be a duration/],
    ],
    misspelt: NO_OPTIONS,
  },
  "Kv.listenQueue": {
    closed: [[(kv) => kv.listenQueue(() => {}), /^Error: Queue already closed/]],
    wrong: "as in Deno, a handler that is no function fails when a message comes",
    over: NO_SIZE,
    misspelt: [[(kv) => kv.listenQueue(() => {}, { sinal: 1 }), /unknown option 'sinal'/]],
  },
};
