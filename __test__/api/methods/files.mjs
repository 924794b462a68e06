// Duty: how opening, serving, indexes and the care of files refuse what they cannot do.

import { openKv, restore, serve } from "../../../index.mjs";
import { freshPath } from "../databases.mjs";
import { KEY_READ, LONG, NO_ARGUMENTS, NO_HANDLE, NO_SIZE, PART } from "./expected.mjs";

const accessToken = "an-access-token";
const valid = { prefix: ["x"], fields: ["t"] };
const nothing = { wrong: NO_ARGUMENTS, over: NO_ARGUMENTS, misspelt: NO_ARGUMENTS };
/** The row of a method that takes a signal, and nothing else. */
const signalOnly = (call) => ({
  closed: (target) => call(target),
  wrong: [[(target) => call(target, 5), /options must be an object/]],
  over: NO_SIZE,
  misspelt: [[(target) => call(target, { sinal: 1 }), /unknown option 'sinal'/]],
});
/** An index that is not ready yet, as far as its object knows. */
const index = async (kv) => {
  await kv.set(["x", 1], { t: "a" });
  const made = await kv.createIndex(valid);
  // What is compared afterwards has its progress.
  await made.ready();
  made.state = "building";
  return made;
};
const valueIndex = async (kv) => {
  const made = await kv.createIndex({ type: "value", prefix: ["x"], on: "t" });
  await made.ready();
  made.state = "building";
  return made;
};
const serving = () => serve({ path: freshPath(), listen: "127.0.0.1:0", accessToken });

export default {
  openKv: {
    closed: NO_HANDLE,
    wrong: [
      [() => openKv(5), TypeError],
      [() => openKv(":memory:", 5), /Options must be an object/],
      [() => openKv(":memory:", { readonly: 1 }), /readonly must be a boolean/],
      [() => openKv(":memory:", { durability: "none" }), /durability must be/],
      [() => openKv(":memory:", { limits: "huge" }), /Unknown limits 'huge'/],
      [() => openKv("http://127.0.0.1:1", { accessToken: 5 }), /accessToken must be a string/],
    ],
    over: [
      [() => openKv(":memory:", { busyTimeout: 2 ** 31 }), /busyTimeout must be an integer from 0/],
      [() => openKv(":memory:", { limits: { checksMax: 2 ** 31 } }), /limits\.checksMax must be/],
      [() => openKv("http://127.0.0.1:1", { accessToken, timeout: 0 }), /timeout must be/],
    ],
    misspelt: [
      [() => openKv(":memory:", { durabilty: "full" }), /Unknown option 'durabilty'/],
      [() => openKv(":memory:", { limits: { checkMax: 5 } }), /Unknown limit 'checkMax'/],
    ],
  },
  serve: {
    closed: NO_HANDLE,
    wrong: [
      [() => serve(), /serve needs options/],
      [() => serve({ path: 5 }), /path must be a string/],
      [() => serve({ path: "a.db", listen: "0.0.0.0:0" }), /accessToken is missing/],
    ],
    over: [[() => serve({ path: "a.db", accessToken, dataTokenMs: 1 }), /dataTokenMs must be/]],
    misspelt: [[() => serve({ path: "a.db", accesToken: "" }), /unknown option 'accesToken'/]],
  },
  restore: {
    closed: NO_HANDLE,
    wrong: [
      [() => restore(), /backup must be a file path: received undefined/],
      [() => restore("a.db", ""), /path must be a file path/],
      [() => restore("a.db", "b.db", 5), /options must be an object/],
      [() => restore("a.db", "b.db", { force: 1 }), /force must be a boolean/],
      [() => restore("a.db", "b.db", { onProgress: 5 }), /onProgress must be a function/],
      [() => restore("a.db", "b.db", { signal: {} }), /signal must be an AbortSignal/],
    ],
    over: NO_SIZE,
    misspelt: [[() => restore("a.db", "b.db", { forse: true }), /unknown option 'forse'/]],
  },
  "KvServer.close": {
    of: serving,
    closed: "a second call waits for the same end",
    ...nothing,
  },
  "KvServer.[Symbol.asyncDispose]": {
    of: serving,
    closed: "a second call waits for the same end",
    ...nothing,
  },
  "Kv.createIndex": {
    closed: (kv) => kv.createIndex(valid),
    wrong: [
      [(kv) => kv.createIndex(), /prefix must be an array/],
      [(kv) => kv.createIndex({ ...valid, prefix: [{}] }), PART],
      [(kv) => kv.createIndex({ ...valid, fields: "t" }), /fields must be an array/],
      [(kv) => kv.createIndex({ ...valid, tokenize: "words" }), /tokenize must be one of/],
      [(kv) => kv.createIndex({ ...valid, prefixLengths: ["2"] }), /prefixLengths\[0\] must be/],
      [(kv) => kv.createIndex({ ...valid, name: 5 }), /name must be a string/],
    ],
    over: [
      [(kv) => kv.createIndex({ ...valid, prefix: LONG }), /prefix too large \(max 2048 bytes\)/],
      [(kv) => kv.createIndex({ ...valid, name: "n".repeat(257) }), /1 to 256 bytes: 257 given/],
      [(kv) => kv.createIndex({ ...valid, fields: [] }), /1 to 32 fields: 0 given/],
    ],
    misspelt: [[(kv) => kv.createIndex({ ...valid, feilds: [] }), /unknown option 'feilds'/]],
  },
  "Kv.listIndexes": signalOnly((kv, options) => kv.listIndexes(options)),
  "Kv.dropIndex": {
    closed: (kv) => kv.dropIndex([]),
    wrong: [
      [(kv) => kv.dropIndex(), /expected a prefix or a name: received undefined/],
      [(kv) => kv.dropIndex([{}]), PART],
    ],
    over: [[(kv) => kv.dropIndex(LONG), /prefix too large/]],
    misspelt: [[(kv) => kv.dropIndex(["x"], { sinal: 1 }), /unknown option 'sinal'/]],
  },
  "KvIndex.ready": { of: index, ...signalOnly((made, options) => made.ready(options)) },
  "KvIndex.progress": { of: index, closed: (made) => made.progress.next(), ...nothing },
  "KvValueIndex.ready": { of: valueIndex, ...signalOnly((made, options) => made.ready(options)) },
  "KvValueIndex.progress": {
    of: valueIndex,
    closed: (made) => made.progress.next(),
    ...nothing,
  },
  "Kv.stats": {
    closed: (kv) => kv.stats(),
    wrong: [
      [(kv) => kv.stats(5), /options must be an object/],
      [(kv) => kv.stats({ entries: 1 }), /entries must be a boolean/],
    ],
    over: NO_SIZE,
    misspelt: [[(kv) => kv.stats({ entrys: true }), /unknown option 'entrys'/]],
  },
  "Kv.metrics": {
    closed: (kv) => kv.metrics(),
    wrong: [
      [(kv) => kv.metrics(5), /options must be an object/],
      [(kv) => kv.metrics({ format: "json" }), /format must be "object" or "prometheus"/],
    ],
    over: NO_SIZE,
    misspelt: [[(kv) => kv.metrics({ fromat: "object" }), /unknown option 'fromat'/]],
  },
  "Kv.at": {
    closed: (kv) => kv.at(new Date(0)),
    wrong: [
      [(kv) => kv.at(), /the moment must be a versionstamp/],
      [(kv) => kv.at(5), /the moment must be a versionstamp/],
      [(kv) => kv.at("monday"), /received the string "monday"/],
      [(kv) => kv.at(new Date(Number.NaN)), /or a valid Date/],
      [(kv) => kv.at(new Date(0), 5), /options must be an object/],
    ],
    over: NO_SIZE,
    misspelt: [[(kv) => kv.at(new Date(0), { sinal: 1 }), /unknown option 'sinal'/]],
  },
  "Kv.history": {
    closed: (kv) => kv.history(["a"]).next(),
    wrong: [
      [(kv) => kv.history(), /array/],
      [(kv) => kv.history([{}]), PART],
      [(kv) => kv.history(["a"], 5), /options must be an object/],
      [(kv) => kv.history(["a"], { limit: 0 }), /limit must be a positive integer: received 0/],
      [(kv) => kv.history(["a"], { limit: "1" }), /limit must be a positive integer/],
      [(kv) => kv.history(["a"], { before: "monday" }), /before must be a versionstamp.*"monday"/],
      [(kv) => kv.history(["a"], { signal: 5 }), /signal must be an AbortSignal/],
    ],
    over: [[(kv) => kv.history(LONG), KEY_READ]],
    misspelt: [[(kv) => kv.history(["a"], { limmit: 1 }), /'limmit'/]],
  },
  "Kv.vacuum": signalOnly((kv, options) => kv.vacuum(options)),
  "Kv.checkpoint": signalOnly((kv, options) => kv.checkpoint(options)),
  "Kv.check": signalOnly((kv, options) => kv.check(options)),
  "Kv.backup": {
    closed: (kv) => kv.backup(freshPath()),
    wrong: [
      [(kv) => kv.backup(), /path must be a file path: received undefined/],
      [(kv) => kv.backup(""), /path must be a file path/],
      [(kv) => kv.backup("copy", 5), /options must be an object/],
      [(kv) => kv.backup("copy", { onProgress: 5 }), /onProgress must be a function/],
      [(kv) => kv.backup("copy", { signal: {} }), /signal must be an AbortSignal/],
    ],
    over: NO_SIZE,
    misspelt: [[(kv) => kv.backup("copy", { onprogress() {} }), /unknown option 'onprogress'/]],
  },
  "Kv.archive": {
    closed: (kv) => kv.archive({ to: freshPath() }),
    wrong: [
      [(kv) => kv.archive(), /to must be a folder or a URL: received undefined/],
      [(kv) => kv.archive({ to: "" }), /to must be a folder or a URL/],
      [(kv) => kv.archive({ to: 5 }), /to must be a folder or a URL/],
      [(kv) => kv.archive({ to: freshPath(), retention: "x" }), /retention must be a duration/],
      [
        (kv) => kv.archive({ to: freshPath(), snapshotEvery: 0 }),
        /snapshotEvery must be a duration/,
      ],
    ],
    over: NO_SIZE,
    misspelt: [[(kv) => kv.archive({ too: "" }), /unknown option 'too'/]],
  },
  "Kv.close": { closed: "it throws at the call, as Deno does: a conformance case", ...nothing },
  "Kv.[Symbol.dispose]": { closed: "it closes what is open, and may be called again", ...nothing },
  "Kv.[Symbol.asyncDispose]": { closed: "as Symbol.dispose", ...nothing },
};
