// What cannot be stored is refused when written, with Deno's class and words; what hides its kind
// is found out.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  encode,
  encodeKey,
  encodeKeyParts,
  KvU64,
  roundTrip,
  VALUE_DEPTH_MAX,
  Writer,
} from "./codec.mjs";

/** Both at top level and inside: the encoder must not look at one place only. */
function assertRefused(value, error, name) {
  assert.throws(() => encode(value), error, `${name} at top level`);
  const inside = () => encode({ deep: [new Map([[1, value]])] });
  assert.throws(inside, (thrown) => {
    // What is inside is named by its place.
    const [words, place] = thrown.message.split(" It is at ");
    if (place !== undefined)
      assert.match(place, /^\.deep\[0\]\.values\[0\]: (leave it out|store its)/);
    assert.throws(
      () => {
        throw Object.assign(thrown, { message: words });
      },
      error,
      `${name} inside`,
    );
    return true;
  });
}

/** The engine's own words; they differ a little between its versions. JavaScriptCore has others. */
function wordsFor(value, words) {
  if (process.versions.bun !== undefined) return /could not be cloned\.$/;
  try {
    structuredClone(value);
  } catch ({ message }) {
    assert.ok(
      [`${words} could not be cloned.`, "#<Object> could not be cloned."].includes(message),
      message,
    );
    return message;
  }
  return assert.fail(`${words} can be cloned`);
}

const twice = function (n) {
  return n * 2;
};

const refused = [
  ["function", twice, String(twice)],
  ["arrow function", () => 1, "() => 1"],
  ["class", class A {}, "class A {}"],
  ["symbol", Symbol("x"), "Symbol(x)"],
  ["symbol without description", Symbol(), "Symbol()"],
  ["boxed symbol", Object(Symbol("x")), "[object Symbol]"],
  ["WeakMap", new WeakMap(), "#<WeakMap>"],
  ["WeakSet", new WeakSet(), "#<WeakSet>"],
  ["WeakRef", new WeakRef({}), "#<WeakRef>"],
  ["FinalizationRegistry", new FinalizationRegistry(() => {}), "#<FinalizationRegistry>"],
  ["Promise", Promise.resolve(1), "#<Promise>"],
  ["subclass of WeakMap", new (class Foo extends WeakMap {})(), "#<Foo>"],
  ["Proxy", new Proxy({ a: 1 }, {}), "#<Object>"],
  ["Proxy of an array", new Proxy([1], {}), "[object Array]"],
  ["generator", (function* () {})(), "[object Generator]"],
  ["async generator", (async function* () {})(), "[object AsyncGenerator]"],
  ["array iterator", [][Symbol.iterator](), "[object Array Iterator]"],
  ["map iterator", new Map().entries(), "[object Map Iterator]"],
  ["set iterator", new Set().values(), "[object Set Iterator]"],
  ["string iterator", ""[Symbol.iterator](), "[object String Iterator]"],
  ["match iterator", "a".matchAll(/a/g), "[object RegExp String Iterator]"],
  [
    "arguments",
    (function () {
      return arguments;
    })(1),
    "#<Object>",
  ],
  ["Intl.DateTimeFormat", new Intl.DateTimeFormat(), "#<DateTimeFormat>"],
  ["Intl.NumberFormat", new Intl.NumberFormat(), "#<NumberFormat>"],
  ["Intl.Locale", new Intl.Locale("en"), "[object Intl.Locale]"],
];
if (typeof WebAssembly !== "undefined") {
  refused.push(["WebAssembly.Memory", new WebAssembly.Memory({ initial: 1 }), "#<Memory>"]);
}

test("what has no copy is refused in V8's words", () => {
  for (const [name, value, words] of refused) {
    assertRefused(value, { name: "TypeError", message: wordsFor(value, words) }, name);
  }
});

test("what hides its class has no copy either", () => {
  for (const value of [
    new WeakMap(),
    Promise.resolve(1),
    (function* () {})(),
    (function () {
      return arguments;
    })(),
  ]) {
    const hidden = Object.setPrototypeOf(value, null);
    assertRefused(hidden, { name: "TypeError", message: /could not be cloned\.$/ }, "no prototype");
  }
});

test("a proxy is refused without a trap being run, and though it is revoked", () => {
  const handler = new Proxy({}, { get: (_, trap) => assert.fail(`trap ${String(trap)}`) });
  for (const target of [{}, [], () => {}, new Map()]) {
    assertRefused(new Proxy(target, handler), { name: "TypeError" }, "proxy with traps");
    const { proxy, revoke } = Proxy.revocable(target, {});
    revoke();
    assertRefused(proxy, { name: "TypeError" }, "revoked proxy");
  }
});

test("long functions are cut as V8 cuts them", () => {
  // Not by `new Function`, which a policy can forbid.
  const long = function named() {
    // The source of a function is part of the message, and this one is longer than V8 lets a part of a
    // message be: two hundred characters, of which it shows the first ones and the last two.
  };
  assert.throws(
    () => encode(long),
    (error) => {
      assert.match(
        error.message,
        /^function named\([^]{87,}\.\.\.<omitted>\.\.\.[^]{2} could not be cloned\.$/,
      );
      return error instanceof TypeError;
    },
  );
});

test("buffers that cannot be copied", () => {
  const detached = new ArrayBuffer(8);
  const view = new Uint8Array(detached);
  structuredClone(detached, { transfer: [detached] });
  const gone = {
    name: "TypeError",
    message: "An ArrayBuffer is detached and could not be cloned.",
  };
  assertRefused(detached, gone, "detached buffer");
  const words = "leave it out, or store plain data in its place";
  const inside = (error) => ({ ...error, message: `${error.message} It is at [0]: ${words}` });
  assert.throws(() => encode([view]), inside(gone));
  const shared = { name: "Error", message: "#<SharedArrayBuffer> could not be cloned." };
  assertRefused(new SharedArrayBuffer(8), shared, "SharedArrayBuffer");
  assert.throws(() => encode([new Uint8Array(new SharedArrayBuffer(8))]), inside(shared));
  const buffer = new SharedArrayBuffer(8);
  for (const view of [new DataView(buffer), new Float64Array(buffer), Buffer.from(buffer)]) {
    assert.throws(() => encode({ in: new Map([["k", view]]) }), {
      name: "Error",
      message: `${shared.message} It is at .in.get("k"): ${words}`,
    });
  }
  assert.throws(() => encode(new Uint8Array(new SharedArrayBuffer(8))), {
    name: "TypeError",
    message: "serde_v8 error: invalid type; expected: buffer, got: Uint8Array",
  });
  assert.throws(() => encode(new Uint8Array(new ArrayBuffer(8, { maxByteLength: 16 }))), {
    name: "TypeError",
    message: "serde_v8 error: can't create slice from resizable ArrayBuffer",
  });
});

test("streams, ports, keys and modules are refused by name", async () => {
  const { port1, port2 } = new MessageChannel();
  const unsupported = { name: "TypeError", message: /^Unsupported object type/ };
  for (const value of [new ReadableStream(), new WritableStream(), new TransformStream(), port1]) {
    assertRefused(value, unsupported, value.constructor.name);
  }
  port1.close();
  port2.close();
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 128 }, true, ["encrypt"]);
  assertRefused(key, { name: "TypeError", message: /CryptoKey cannot be stored/ }, "CryptoKey");
  const { createSecretKey } = await import("node:crypto");
  assertRefused(
    createSecretKey(Buffer.alloc(16)),
    { name: "TypeError", message: /KeyObject cannot be stored/ },
    "KeyObject",
  );
  const module = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
  assertRefused(
    module,
    { name: "TypeError", message: "Wasm modules cannot be stored" },
    "WebAssembly.Module",
  );
});

test("class instances and namespaces become plain objects of their own properties", () => {
  class Point {
    #hidden = 1;
    constructor() {
      this.x = this.#hidden;
    }
    get y() {
      return 2;
    }
  }
  assert.deepEqual(roundTrip(new Point()), { x: 1 });
  assert.equal(Object.getPrototypeOf(roundTrip(new Point())), Object.prototype);
  assert.equal(
    Object.getPrototypeOf(roundTrip(Object.create(null, { a: { value: 1, enumerable: true } }))),
    Object.prototype,
  );
  for (const value of [Math, JSON, Object.create(Map.prototype), Object.create(Date.prototype)]) {
    assert.deepEqual(roundTrip(value), {});
  }
  assert.deepEqual(roundTrip({ n: new KvU64(5n) }), { n: { value: 5n } });
});

test("an object is what it is, whatever its prototype or tag says", () => {
  const map = Object.setPrototypeOf(new Map([[1, 2]]), null);
  assert.deepEqual(roundTrip(map), new Map([[1, 2]]));
  assert.deepEqual(roundTrip(Object.setPrototypeOf(new Date(5), Object.prototype)), new Date(5));
  assert.deepEqual(
    roundTrip(Object.defineProperty(new Set([1]), Symbol.toStringTag, { value: "Object" })),
    new Set([1]),
  );
  assert.deepEqual(roundTrip({ a: 1, [Symbol.toStringTag]: "Map" }), { a: 1 });
  assert.deepEqual(roundTrip(new (class List extends Array {})(1, 2, 3)), [1, 2, 3]);
  assert.deepEqual(roundTrip(new (class Names extends Map {})([["a", 1]])), new Map([["a", 1]]));
  class Failure extends RangeError {
    code = 7;
  }
  const failure = roundTrip(new Failure("m"));
  assert.equal(Object.getPrototypeOf(failure), RangeError.prototype);
  assert.deepEqual([failure.message, failure.code, Object.keys(failure)], ["m", undefined, []]);
});

test("symbol keys and hidden properties are dropped, getters are run once", () => {
  let runs = 0;
  const value = {
    get a() {
      runs++;
      return { runs };
    },
    [Symbol("s")]: 1,
  };
  Object.defineProperty(value, "hidden", { value: 1 });
  assert.deepEqual(roundTrip([value, value]), [{ a: { runs: 1 } }, { a: { runs: 1 } }]);
  assert.equal(runs, 1);
});

test("a getter that takes a property away leaves it out, as in V8", () => {
  const make = () => ({
    get a() {
      delete this.b;
      return 1;
    },
    b: 2,
    c: undefined,
  });
  for (let i = 0; i < 20; i++) assert.deepEqual(roundTrip(make()), { a: 1, c: undefined });
});

test("a map that a getter changes is stored as it was", () => {
  const map = new Map();
  map.set(
    {
      get a() {
        map.set(5, 6);
        return 1;
      },
    },
    2,
  );
  assert.deepEqual(roundTrip(map), new Map([[{ a: 1 }, 2]]));
});

test("keys named like the prototype's own are properties, and nothing is polluted", () => {
  const json =
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"toString":3,"a":{"__proto__":null}}';
  for (let i = 0; i < 20; i++) {
    const back = roundTrip(JSON.parse(json));
    assert.equal(JSON.stringify(back), json);
    assert.equal(Object.getPrototypeOf(back), Object.prototype);
    assert.deepEqual(Object.keys(back), ["__proto__", "constructor", "toString", "a"]);
  }
  assert.equal({}.polluted, undefined);
});

/** Containers in containers, of every kind that can hold another. */
const containers = {
  array: (inner) => [inner],
  object: (inner) => ({ a: inner }),
  "wide object": (inner) =>
    Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`k${i}`, i === 12 ? inner : i])),
  map: (inner) => new Map([[1, inner]]),
  "map key": (inner) => new Map([[inner, 1]]),
  set: (inner) => new Set([inner]),
  error: (inner) =>
    Object.defineProperties(new Error("m"), { cause: { value: inner }, stack: { value: "s" } }),
  "array with a hole": (inner) => [, inner],
};

test("every nesting that is accepted can be read, and the next is refused", () => {
  for (const [name, wrap] of Object.entries(containers)) {
    // At the bottom something that takes the most calls to read.
    let value = new RegExp("x");
    for (let i = 0; i < VALUE_DEPTH_MAX; i++) value = wrap(value);
    const { bytes } = encode(value);
    assert.ok(bytes.length > VALUE_DEPTH_MAX, name);
    assert.equal(encode(roundTrip(value)).bytes.equals(bytes), true, name);
    assert.throws(
      () => encode(wrap(value)),
      { name: "RangeError", message: /nested too deeply \(max 1000 levels\)/ },
      name,
    );
  }
});

test("keys: what is no key, in Deno's words", () => {
  const writer = new Writer();
  writer.pos = 3;
  const cases = [
    ["a", "array, got: string"],
    [1, "array, got: Number"],
    [new Set(["a"]), "array, got: Set"],
    [{ length: 1, 0: "a" }, "array, got: unknown"],
    [new Uint8Array(2), "array, got: Uint8Array"],
  ];
  for (const [key, words] of cases) {
    assert.throws(() => encodeKey(writer, key), {
      name: "TypeError",
      message: new RegExp(
        `^serde_v8 error: invalid type; expected: ${words}: the key is .*: write \\[`,
      ),
    });
  }
  const part = {
    name: "TypeError",
    message:
      /^expected string, number, bigint, ArrayBufferView, boolean: part \d of the key \[.*; /,
  };
  for (const bad of [
    null,
    undefined,
    {},
    [],
    new ArrayBuffer(1),
    Object("a"),
    () => 1,
    Symbol("x"),
    new KvU64(1n),
    new Date(0),
  ]) {
    assert.throws(() => encodeKey(writer, ["good", bad]), part);
  }
  assert.throws(() => encodeKey(writer, [, 1]), part);
  const long = {
    name: "TypeError",
    message: "BigUint requires more than 255 bytes to be represented: part 0 of the key",
  };
  assert.throws(() => encodeKey(writer, [2n ** 2040n]), long);
  assert.throws(() => encodeKey(writer, [-(2n ** 2040n)]), long);
  assert.throws(() => encodeKey(writer, [new Uint8Array(new SharedArrayBuffer(2))]), {
    name: "TypeError",
    message: /expected: buffer/,
  });
  assert.equal(writer.pos, 3, "nothing was left behind");
  encodeKeyParts(writer, ["a", Symbol("left out")], 1);
  assert.equal(writer.copy(3).toString("hex"), "026100");
});
