// Duty: what cannot be stored is refused when it is written, in every way to write a value.

import { Buffer } from "node:buffer";

const cloned = "could not be cloned";

function detached() {
  const buffer = new ArrayBuffer(8);
  const view = new Int8Array(buffer);
  structuredClone(buffer, { transfer: [buffer] });
  return { buffer, view };
}

/** name → maker, error class, words. */
const refused = {
  "a function": [() => function named() {}, TypeError, cloned],
  "an arrow function": [() => () => {}, TypeError, cloned],
  "an async function": [() => async () => {}, TypeError, cloned],
  "a class": [() => class Foo {}, TypeError, cloned],
  "a symbol": [() => Symbol("x"), TypeError, "Symbol(x) could not be cloned"],
  "a boxed symbol": [() => Object(Symbol("x")), TypeError, cloned],
  "a WeakMap": [() => new WeakMap(), TypeError, "#<WeakMap> could not be cloned"],
  "a WeakSet": [() => new WeakSet(), TypeError, "#<WeakSet> could not be cloned"],
  "a WeakRef": [() => new WeakRef({}), TypeError, "#<WeakRef> could not be cloned"],
  "a FinalizationRegistry": [() => new FinalizationRegistry(() => {}), TypeError, cloned],
  "a Promise": [() => Promise.resolve(1), TypeError, "#<Promise> could not be cloned"],
  "a Proxy": [() => new Proxy({}, {}), TypeError, cloned],
  "a Proxy of an array": [() => new Proxy([], {}), TypeError, cloned],
  "a generator": [() => (function* () {})(), TypeError, cloned],
  "an array iterator": [() => [][Symbol.iterator](), TypeError, cloned],
  "a Map iterator": [() => new Map().keys(), TypeError, cloned],
  arguments: [
    () =>
      (function () {
        return arguments;
      })(),
    TypeError,
    cloned,
  ],
  "an Intl object": [() => new Intl.NumberFormat("en"), TypeError, cloned],
  "a WebAssembly.Memory": [() => new WebAssembly.Memory({ initial: 1 }), TypeError, cloned],
  globalThis: [() => globalThis, TypeError, cloned],
  "a SharedArrayBuffer": [() => new SharedArrayBuffer(8), Error, cloned],
  "a view over shared memory": [() => new Int8Array(new SharedArrayBuffer(8)), Error, cloned],
  "a ReadableStream": [() => new ReadableStream(), TypeError, ""],
  "a WritableStream": [() => new WritableStream(), TypeError, ""],
  "a TransformStream": [() => new TransformStream(), TypeError, ""],
  "a detached ArrayBuffer": [() => detached().buffer, TypeError, "detached"],
  "a view of a detached ArrayBuffer": [() => detached().view, TypeError, "detached"],
};

if (globalThis.Temporal) {
  refused["a Temporal.Instant"] = [() => Temporal.Now.instant(), TypeError, cloned];
}

/** The smallest module there is. */
const wasm = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);

/** Objects whose content no property holds, and what an error about them says. */
const hidden = {
  URL: [() => new URL("http://a.example/"), "url.href"],
  URLSearchParams: [() => new URLSearchParams("a=1"), "toString()"],
  Headers: [() => new Headers({ a: "b" }), "[...headers]"],
  Response: [() => new Response("x"), "await response.bytes()"],
  Request: [() => new Request("http://a.example/"), "await request.bytes()"],
  FormData: [() => new FormData(), "[...form]"],
  AbortSignal: [() => AbortSignal.abort(), ""],
  AbortController: [() => new AbortController(), ""],
  EventTarget: [() => new EventTarget(), ""],
  Event: [() => new Event("a"), ""],
  TextDecoder: [() => new TextDecoder(), ""],
  CompressionStream: [() => new CompressionStream("gzip"), ""],
  "Headers Iterator": [() => new Headers().entries(), ""],
  Segments: [() => new Intl.Segmenter("en").segment("a"), ""],
  "a subclass": [() => new (class Address extends URL {})("http://a.example/"), "url.href"],
  "a thenable": [
    () =>
      new (class Query {
        then() {}
      })(),
    "await it",
  ],
};

export default [
  {
    name: "an object of the platform is refused with its path, in place of {}",
    denoDiffers: "Deno stores {} in its place",
    async run(t) {
      const kv = await t.open();
      for (const [make, words] of Object.values(hidden)) {
        const value = make();
        await t.rejects(() => kv.set(["a"], value), TypeError, "could not be cloned");
        await t.rejects(() => kv.set(["a"], value), TypeError, words);
        const inside = { list: [1, { it: value }] };
        await t.rejects(() => kv.set(["a"], inside), TypeError, ".list[1].it: ");
        t.throws(() => kv.atomic().set(["a"], inside), TypeError, words);
        await t.rejects(() => kv.enqueue(new Map([["m", value]])), TypeError, '.get("m")');
      }
      const stream = { body: new ReadableStream() };
      await t.rejects(() => kv.set(["a"], stream), TypeError, ".body: ");
      t.same(await t.all(kv.list({ prefix: [] })), []);
    },
  },
  {
    name: "the size of text is its UTF-8",
    denoDiffers: "Deno counts one byte for a letter of latin-1: sizes are the encoding's",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], "é".repeat(32_000));
      await t.rejects(() => kv.set(["a"], "é".repeat(33_000)), TypeError, "Value too large");
    },
  },
  ...Object.entries(refused).map(([name, [make, kind, words]]) => ({
    name: `${name} is refused, alone and inside`,
    async run(t) {
      const kv = await t.open();
      const value = make();
      for (const each of [value, { in: [value] }, new Map([[1, value]]), new Set([value])]) {
        await t.rejects(() => kv.set(["a"], each), kind, words);
      }
      t.same(await t.all(kv.list({ prefix: [] })), []);
    },
  })),
  {
    name: "atomic set, mutate and enqueue refuse at the call",
    async run(t) {
      const kv = await t.open();
      const fn = () => {};
      t.throws(() => kv.atomic().set(["a"], fn), TypeError, cloned);
      t.throws(
        () => kv.atomic().mutate({ type: "set", key: ["a"], value: { fn } }),
        TypeError,
        cloned,
      );
      t.throws(() => kv.atomic().enqueue(fn), TypeError, cloned);
      await t.rejects(() => kv.enqueue(fn), TypeError, cloned);
    },
  },
  {
    name: "top-level bytes over shared memory",
    async run(t) {
      const kv = await t.open();
      const shared = new Uint8Array(new SharedArrayBuffer(8));
      await t.rejects(() => kv.set(["a"], shared), Error);
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "top-level bytes over a resizable buffer",
    async run(t) {
      const kv = await t.open();
      const bytes = new Uint8Array(new ArrayBuffer(8, { maxByteLength: 16 }));
      await t.rejects(() => kv.set(["a"], bytes), TypeError);
    },
  },
  {
    name: "a WebAssembly.Module",
    async run(t) {
      const kv = await t.open();
      await t.rejects(() => kv.set(["a"], new WebAssembly.Module(wasm)), TypeError);
    },
  },
  {
    name: "nesting without end is a RangeError, not a crash",
    async run(t) {
      const kv = await t.open();
      const wraps = [(v) => [v], (v) => ({ v }), (v) => new Map([[1, v]]), (v) => new Set([v])];
      for (const wrap of wraps) {
        let value = 0;
        for (let i = 0; i < 100_000; i++) value = wrap(value);
        await t.rejects(() => kv.set(["a"], value), RangeError);
        await t.rejects(() => kv.enqueue(value), RangeError);
      }
      t.is(await t.stamp(kv, ["a"]), null);
      await kv.set(["a"], "still works");
      t.is(await t.value(kv, ["a"]), "still works");
    },
  },
  {
    name: "a nesting of more than 1000 is refused",
    denoDiffers: "Deno's bound is the stack of the thread that writes",
    async run(t) {
      const kv = await t.open();
      let value = 0;
      for (let i = 0; i < 1100; i++) value = [value];
      await t.rejects(() => kv.set(["a"], value), RangeError);
    },
  },
  {
    name: "a CryptoKey is refused",
    denoDiffers: "Deno stores the key material, of keys that may not be exported too",
    async run(t) {
      const kv = await t.open();
      const algorithm = { name: "HMAC", hash: "SHA-256" };
      const key = await crypto.subtle.generateKey(algorithm, false, ["sign"]);
      await t.rejects(() => kv.set(["a"], { key }), TypeError);
    },
  },
  {
    name: "a value that is too large is refused, whatever it is made of",
    async run(t) {
      const kv = await t.open();
      const large = [
        new Uint8Array(65537),
        Buffer.alloc(70_000),
        "x".repeat(70_000),
        "日".repeat(40_000),
        Array.from({ length: 40_000 }, (_, i) => i * 1.5),
        { in: new Uint8Array(70_000) },
        2n ** 600_000n,
        Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`property${i}`, i])),
      ];
      for (const value of large) {
        await t.rejects(() => kv.set(["a"], value), TypeError, "Value too large (max 65536 bytes)");
      }
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
];
