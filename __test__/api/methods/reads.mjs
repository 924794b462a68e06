// Duty: how methods that read refuse what they cannot do.

import { sizeOf } from "../../../index.mjs";
import {
  CLONED,
  KEY_READ,
  LONG,
  NO_ARGUMENTS,
  NO_HANDLE,
  NO_OPTIONS,
  PART,
  keyOf,
  keys,
} from "./expected.mjs";

const first = (list) => list.next();

/** The refusals of selectors that all ranges share. */
const selectors = (call) => [
  [(kv) => call(kv, null), /null/],
  [(kv) => call(kv, undefined), /undefined/],
  [(kv) => call(kv, {}), /must specify either 'prefix' or both/],
  [(kv) => call(kv, { prefix: 5 }), /expected: array/],
  [(kv) => call(kv, { prefix: [{}] }), PART],
  [(kv) => call(kv, { start: ["b"], end: ["a"] }), /Start key is greater than end key/],
  [(kv) => call(kv, { perfix: [] }), /'perfix': did you mean 'prefix'/],
];

export default {
  "Kv.get": {
    closed: (kv) => kv.get(["a"]),
    wrong: [
      [(kv) => kv.get("a"), /expected: array/],
      [(kv) => kv.get(["a"], { withExpiry: 1 }), /withExpiry must be a boolean/],
      [(kv) => kv.get([{}], { withExpiry: true }), PART],
    ],
    over: [
      [(kv) => kv.get(LONG), KEY_READ],
      [(kv) => kv.get(LONG, { withExpiry: true }), KEY_READ],
    ],
    misspelt: [
      [(kv) => kv.get(["a"], { withExpire: true }), /'withExpire': did you mean 'withExpiry'/],
      [(kv) => kv.get(["a"], { consistancy: "strong" }), /'consistancy'/],
    ],
  },
  "Kv.getMany": {
    closed: (kv) => kv.getMany([["a"]]),
    wrong: [
      [(kv) => kv.getMany("ab"), /array/],
      [(kv) => kv.getMany("ab", { withExpiry: true }), /array/],
      [(kv) => kv.getMany([["a"]], { withExpiry: "yes" }), /withExpiry must be a boolean/],
    ],
    over: [
      [(kv) => kv.getMany(keys(11)), /Too many ranges \(max 10\)/],
      [(kv) => kv.getMany(keys(11), { withExpiry: true }), /Too many ranges \(max 10\)/],
    ],
    misspelt: [[(kv) => kv.getMany([["a"]], { withexpiry: true }), /'withexpiry'/]],
  },
  "Kv.getSync": {
    closed: (kv) => kv.getSync(["a"]),
    wrong: [
      [(kv) => kv.getSync("a"), /expected: array/],
      [(kv) => kv.getSync([{}]), PART],
      [(kv) => kv.getSync(), /Invalid range/],
      [(kv) => kv.getSync(["a"], { consistency: "weak" }), /unknown variant `weak`/],
      [(kv) => kv.getSync(["a"], 5), /options must be an object/],
    ],
    over: [[(kv) => kv.getSync(LONG), KEY_READ]],
    misspelt: [
      [(kv) => kv.getSync(["a"], { consistancy: "strong" }), /unknown option 'consistancy'/],
      [(kv) => kv.getSync(["a"], { withExpiry: true }), /unknown option 'withExpiry'/],
    ],
  },
  "Kv.getManySync": {
    closed: (kv) => kv.getManySync([["a"]]),
    wrong: [
      [(kv) => kv.getManySync("ab"), /array/],
      [(kv) => kv.getManySync([["a"], [{}]]), PART],
    ],
    over: [[(kv) => kv.getManySync(keys(11)), /Too many ranges \(max 10\)/]],
    misspelt: [[(kv) => kv.getManySync([], { consistancy: 1 }), /unknown option 'consistancy'/]],
  },
  "Kv.ttl": {
    closed: (kv) => kv.ttl(["a"]),
    wrong: [
      [(kv) => kv.ttl("a"), /array/],
      [(kv) => kv.ttl([{}]), PART],
    ],
    over: [[(kv) => kv.ttl(LONG), /Key too large/]],
    misspelt: [[(kv) => kv.ttl(["a"], { sinal: 1 }), /unknown option 'sinal'/]],
  },
  "Kv.list": {
    closed: (kv) => first(kv.list({ prefix: [] })),
    wrong: [
      ...selectors((kv, selector) => first(kv.list(selector))),
      [
        (kv) => kv.list({ prefix: [] }, { where: "5" }),
        /where must be an object of conditions: received the string "5"/,
      ],
      [(kv) => first(kv.list({ prefix: [] }, { where: { a: { $like: 1 } } })), /\$like/],
      [(kv) => kv.list({ prefix: [] }, { keysOnly: 1 }), /keysOnly must be a boolean/],
      [(kv) => kv.list({ prefix: [] }, { withExpiry: 1 }), /withExpiry must be a boolean/],
      [(kv) => kv.list({ prefix: [] }, { depth: 0 }), /depth must be a positive integer/],
      [(kv) => kv.list({ start: [], end: ["a"] }, { depth: 1 }), /give a prefix/],
    ],
    over: [
      [(kv) => first(kv.list({ prefix: LONG })), KEY_READ],
      [(kv) => first(kv.list({ prefix: [] }, { batchSize: 1001 })), /Too many entries/],
      [(kv) => kv.list({ prefix: [] }, { depth: 65_536 }), /depth must be a positive integer/],
    ],
    misspelt: [
      [(kv) => kv.list({ prefix: [] }, { keyOnly: true }), /'keyOnly': did you mean 'keysOnly'/],
      [(kv) => kv.list({ prefix: [] }, { were: {} }), /'were': did you mean 'where'/],
      [(kv) => kv.list({ prefix: [] }, { dept: 1 }), /'dept'/],
    ],
  },
  "KvListIterator.next": {
    of: (kv) => kv.list({ prefix: [] }),
    closed: (list) => list.next(),
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "KvListIterator.toArray": {
    of: (kv) => kv.list({ prefix: [] }),
    closed: (list) => list.toArray(),
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "KvListIterator.cursor": {
    of: (kv) => kv.list({ prefix: [] }),
    closed: "it tells what is known already",
    wrong: [[(list) => list.cursor, /^Error: Cannot get cursor before first iteration/]],
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "KvListIterator.[Symbol.asyncIterator]": {
    of: (kv) => kv.list({ prefix: [] }),
    closed: async (list) => {
      for await (const _ of list);
    },
    wrong: NO_ARGUMENTS,
    over: NO_ARGUMENTS,
    misspelt: NO_ARGUMENTS,
  },
  "Kv.explain": {
    closed: (kv) => kv.explain({ prefix: [] }),
    wrong: [
      ...selectors((kv, selector) => kv.explain(selector)),
      [(kv) => kv.explain({ prefix: [] }, 5), /options must be an object/],
      [(kv) => kv.explain({ prefix: [] }, { where: { $bad: 1 } }), /\$bad/],
      [(kv) => kv.explain({ prefix: [] }, { orderBy: 5 }), /kv\.explain: orderBy must be a path/],
      [(kv) => kv.explain({ prefix: [] }, { sort: true }), /give orderBy/],
      [(kv) => kv.explain({ prefix: [] }, { orderBy: "a", depth: 1 }), /do not go together/],
      [(kv) => kv.explain({ prefix: [] }, { cursor: "%" }), /cursor/i],
      [(kv) => kv.explain({ prefix: [] }, { orderBy: "a" }), /no index has the order/],
    ],
    over: [
      [(kv) => kv.explain({ prefix: LONG }), KEY_READ],
      [(kv) => kv.explain({ prefix: [] }, { where: { a: "x".repeat(300_000) } }), /where/],
    ],
    misspelt: [[(kv) => kv.explain({ prefix: [] }, { were: {} }), /unknown option 'were'/]],
  },
  "Kv.count": {
    closed: (kv) => kv.count({ prefix: [] }),
    wrong: [
      ...selectors((kv, selector) => kv.count(selector)),
      [(kv) => kv.count({ prefix: [] }, 5), /options must be an object/],
      [(kv) => kv.count({ prefix: [] }, { where: [] }), /where must be an object/],
      [(kv) => kv.count({ prefix: [] }, { where: { $bad: 1 } }), /\$bad/],
    ],
    over: [
      [(kv) => kv.count({ prefix: LONG }), KEY_READ],
      [(kv) => kv.count({ prefix: [] }, { where: { a: "x".repeat(300_000) } }), /where/],
    ],
    misspelt: [[(kv) => kv.count({ prefix: [] }, { were: {} }), /unknown option 'were'/]],
  },
  "Kv.paginate": {
    closed: (kv) => kv.paginate({ prefix: [] }),
    wrong: [
      [(kv) => kv.paginate(), /a selector with a prefix, or a start and an end, is missing/],
      [(kv) => kv.paginate({}), /must specify either/],
      [(kv) => kv.paginate({ prefix: [], limit: "5" }), /limit must be an integer from 1 to 1000/],
      [(kv) => kv.paginate({ prefix: [], cursor: 5 }), /cursor must be a string/],
      [(kv) => kv.paginate({ prefix: [], reverse: 1 }), /reverse must be a boolean/],
      [(kv) => kv.paginate({ prefix: [], where: 1 }), /where must be an object/],
    ],
    over: [
      [(kv) => kv.paginate({ prefix: [], limit: 1001 }), /limit must be .* 1 to 1000/],
      [(kv) => kv.paginate({ prefix: LONG }), KEY_READ],
    ],
    misspelt: [[(kv) => kv.paginate({ prefix: [], curser: "" }), /unknown option 'curser'/]],
  },
  "Kv.watch": {
    closed: (kv) => kv.watch({ prefix: [] }),
    wrong: [
      [(kv) => kv.watch("a"), /array/],
      [(kv) => kv.watch({}), /must specify either/],
      [(kv) => kv.watch({ prefix: [{}] }), PART],
      [(kv) => kv.watch({ prefix: [] }, { since: 5 }), /expected: string/],
      [(kv) => kv.watch({ prefix: [] }, { since: "5" }), /since must be a versionstamp/],
    ],
    over: [
      [(kv) => kv.watch(keys(11)), /Too many keys \(max 10\)/],
      [(kv) => kv.watch([keyOf(2050)]), KEY_READ],
      [(kv) => kv.watch({ prefix: LONG }), KEY_READ],
    ],
    misspelt: [
      [(kv) => kv.watch([["a"]], { Raw: true }), /'Raw': did you mean 'raw'/],
      [(kv) => kv.watch({ prefix: [] }, { sinse: "" }), /unknown option 'sinse'/],
    ],
  },
  "Kv.search": {
    closed: (kv) => kv.search(["p"], "a"),
    wrong: [
      [(kv) => kv.search("p", "a"), /prefix must be an array/],
      [(kv) => kv.search(["p"], 5), /query must be a string/],
      [(kv) => kv.search(["p"], "a", 5), /options must be an object/],
      [(kv) => kv.search(["p"], "a", { highlight: 1 }), /highlight must be a boolean or an object/],
    ],
    over: [
      [(kv) => kv.search(LONG, "a"), /prefix too large \(max 2048 bytes\)/],
      [(kv) => kv.search(["p"], "a", { limit: 1001 }), /limit must be 1 to 1000/],
      [(kv) => kv.search(["p"], "a", { offset: 1_000_001 }), /offset is too large/],
    ],
    misspelt: [
      [(kv) => kv.search(["p"], "a", { limits: 5 }), /unknown option 'limits'/],
      [(kv) => kv.search(["p"], "a", { highlight: { befor: "" } }), /unknown option 'befor'/],
    ],
  },
  sizeOf: {
    closed: NO_HANDLE,
    wrong: [[() => sizeOf(() => 1), CLONED]],
    over: "it tells the size of anything",
    misspelt: NO_OPTIONS,
  },
  "sizeOf.key": {
    closed: NO_HANDLE,
    wrong: [
      [() => sizeOf.key("a"), /array/],
      [() => sizeOf.key([{}]), PART],
    ],
    over: "it tells the size of any key",
    misspelt: NO_OPTIONS,
  },
};
