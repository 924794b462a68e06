// Duty: programs that change the built-in objects of their process, before openkv is loaded or after,
// and then take the tour of tour.mjs: openkv works where the runtime itself still does.
//
// Opening a database failed with an internal error once a program had an enumerable property on
// Object.prototype, and `Object.prototype.limit = 1` shortened every list.

import { readFileSync } from "node:fs";

const declared = readFileSync(new URL("../../index.d.ts", import.meta.url), "utf8");
/** Names with which Node.js, Bun or Deno cannot load a module, make a stream or start a timer any more. */
const BREAK_RUNTIMES = new Set(["encoding", "id", "path", "signal", "start"]);
/** The name of every option and optional property. */
const optional = [...new Set([...declared.matchAll(/\b(\w+)\?:/g)].map(([, name]) => name))].filter(
  (name) => !BREAK_RUNTIMES.has(name),
);

/** A Symbol that has these in place of `dispose` and `asyncDispose`, which the runtime's own keeps. */
const symbolsWith = (known) => `
    const Native = Symbol;
    globalThis.Symbol = function Symbol(text) { return Native(text); };
    for (const name of Object.getOwnPropertyNames(Native)) {
      if (["length", "name", "dispose", "asyncDispose"].includes(name)) continue;
      Object.defineProperty(globalThis.Symbol, name, Object.getOwnPropertyDescriptor(Native, name));
    }
    Object.assign(globalThis.Symbol, ${known});`;

/** By name: what the program does first. */
const changes = {
  "every option is on Object.prototype": `
    for (const name of ${JSON.stringify(optional)}) Object.prototype[name] = "polluted";`,
  "plausible options are on Object.prototype": `
    Object.assign(Object.prototype, {
      limit: 1, batchSize: 1, reverse: true, depth: 1, keysOnly: true, withExpiry: true, where: { n: 1 },
      consistency: "eventual", expireIn: 1, delay: 1e6, priority: 9, deadRetention: 0, raw: true,
      readonly: true, atomic: true, descendants: true, clamp: true, min: 5, max: 5, queue: "other",
    });`,
  "accessors are on Object.prototype": `
    for (const name of ["limit", "consistency", "values", "code", "should", "key", "versionstamp"]) {
      Object.defineProperty(Object.prototype, name, {
        configurable: true,
        get() { return name === "should" ? this : "polluted"; },
        set() { throw new Error("was assigned: " + name); },
      });
    }`,
  "the fields of descriptors are on Object.prototype": `
    Object.prototype.get = () => "polluted";
    Object.prototype.set = () => {};
    Object.prototype.value = "polluted";
    Object.prototype.writable = false;`,
  // A stream took its type from there: watches and feeds failed.
  "the members of the platform's dictionaries are on Object.prototype": `
    Object.assign(Object.prototype, { type: "polluted", size: "polluted", autoAllocateChunkSize: "polluted" });`,
  "then and toJSON are on prototypes": `
    Object.prototype.then = "polluted";
    Object.prototype.toJSON = () => "polluted";
    Array.prototype.toJSON = () => "polluted";`,
  "methods are added to the prototypes, enumerable": `
    for (const type of [Object, Array, String, Function, Promise, Map, Uint8Array, Error, Date]) {
      type.prototype.extend = function () { return this; };
      type.prototype.last = function () { return this[this.length - 1]; };
    }`,
  "the methods of arrays are wrapped": `
    for (const name of Object.getOwnPropertyNames(Array.prototype)) {
      const method = Array.prototype[name];
      if (typeof method !== "function" || name === "constructor") continue;
      Array.prototype[name] = function (...given) { return Reflect.apply(method, this, given); };
    }`,
  "Object.prototype and Array.prototype are frozen": `
    Object.freeze(Object.prototype);
    Object.freeze(Array.prototype);`,
  "all intrinsics are frozen": `
    const seen = new Set();
    const freeze = (object) => {
      if ((typeof object !== "object" && typeof object !== "function") || object === null) return;
      if (seen.has(object)) return;
      seen.add(object);
      freeze(Object.getPrototypeOf(object));
      for (const key of Reflect.ownKeys(object)) {
        const { value, get, set } = Object.getOwnPropertyDescriptor(object, key);
        freeze(value), freeze(get), freeze(set);
      }
      Object.freeze(object);
    };
    for (const name of ["Object", "Array", "Function", "Error", "TypeError", "RangeError", "Promise",
      "Map", "Set", "WeakMap", "WeakSet", "Date", "RegExp", "String", "Number", "Boolean", "BigInt",
      "Symbol", "Uint8Array", "Float64Array", "DataView", "ArrayBuffer", "Math", "JSON", "Reflect"]) {
      freeze(globalThis[name]);
    }
    for (const made of [async () => {}, function* () {}, async function* () {}, [].values(),
      new Map().entries()]) freeze(Object.getPrototypeOf(made));`,
  "Promise is replaced": `
    const Native = Promise;
    globalThis.Promise = class Promise {
      #real;
      constructor(run) { this.#real = new Native(run); }
      then(...given) { return globalThis.Promise.resolve(this.#real.then(...given)); }
      static resolve(value) { return new globalThis.Promise((resolve) => resolve(value)); }
      static reject(reason) { return new globalThis.Promise((_, reject) => reject(reason)); }
      static all(all) { return globalThis.Promise.resolve(Native.all(all)); }
    };`,
  "structuredClone and the globals of a page are replaced": `
    globalThis.structuredClone = () => { throw new Error("polluted"); };
    for (const name of ["URL", "Blob", "Date", "TextEncoder", "TextDecoder", "AbortController"]) {
      globalThis[name] = class extends globalThis[name] {};
    }`,
  "Symbol.asyncDispose is absent": `
    ${symbolsWith("{}")}`,
  "Symbol.asyncDispose is that of a polyfill": `
    ${symbolsWith('{ dispose: Symbol("dispose"), asyncDispose: Symbol("asyncDispose") }')}`,
  "timers and the clock stand still": `
    class Still extends Date {
      constructor(...given) { if (given.length === 0) super(0); else super(...given); }
      static now() { return 0; }
    }
    globalThis.Date = Still;
    for (const name of ["setTimeout", "setInterval", "setImmediate", "queueMicrotask"]) {
      globalThis[name] = () => ({ ref() {}, unref() {}, hasRef: () => true });
    }
    performance.now = () => 0;`,
};

const index = new URL("../../index.mjs", import.meta.url).href;
const tour = new URL("./tour.mjs", import.meta.url).href;
const recorder = new URL("./recorder.mjs", import.meta.url).href;

/** Modules of the runtime, which the program has loaded before: some of them cannot be loaded later. */
const BUILTINS = [
  "crypto",
  "fs",
  "module",
  "os",
  "path",
  "perf_hooks",
  "timers",
  "url",
  "util",
  "vm",
];

/** The exit code of a program that has come to its end: some changes break the output of the runtime. */
const DONE = 7;
/** The addon is there: its functions are assigned to an object. */
const OPENED = `await (await openkv.openKv(":memory:")).close();`;

/** A handle that is disposed of by the symbol that `await using` looks up. */
const DISPOSAL = `
    const disposed = await openkv.openKv(":memory:");
    await disposed[Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")]();`;

/** As a program of programs.mjs: what it does first, before openkv is loaded or after, and last. */
function program(name, change, { loaded, last = "" }) {
  const load = `const openkv = await import(${JSON.stringify(index)});`;
  const module = (path) => `
    import process from "node:process";
    ${BUILTINS.map((name) => `import "node:${name}";`).join("\n")}
    import { record } from ${JSON.stringify(recorder)};
    import { tour } from ${JSON.stringify(tour)};
    const { url, accessToken } = JSON.parse(process.env.OPENKV_TEST_SERVER);
    ${loaded ? load : ""}
    {${change}
    }
    ${loaded ? "" : load + DISPOSAL}
    await tour(openkv, ":memory:", undefined);
    await tour(openkv, ${JSON.stringify(path)}, undefined);
    await tour(openkv, url, { accessToken });
    ${last}
    process.exit(${DONE});\n`;
  const when = loaded ? "after" : "before";
  return { name: `${name}, ${when} the load`, module, code: DONE, said: "", served: true };
}

export const polluted = [
  ...Object.entries(changes).flatMap(([name, change]) => [
    program(name, change, { loaded: true }),
    program(name, change, { loaded: false }),
  ]),
  program(
    "every option is on Object.prototype, which is frozen",
    `${OPENED}${changes["every option is on Object.prototype"]}
    Object.freeze(Object.prototype);`,
    { loaded: true },
  ),
  program("nothing is read from Object.prototype", `${OPENED}globalThis.used = record();`, {
    loaded: true,
    last: `if (used.size > 0) throw new Error([...used].sort().join("\\n"));`,
  }),
];
