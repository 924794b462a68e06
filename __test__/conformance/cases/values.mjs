// Duty: every value that comes back as it went in, alone and inside another.

import { Buffer } from "node:buffer";
import { execFile } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const bytes = (...list) => new Uint8Array(list);

function holes() {
  const array = [1, , 3, , ,];
  array[7] = undefined;
  array.length = 9;
  return array;
}

function resizable() {
  const buffer = new ArrayBuffer(3, { maxByteLength: 10 });
  new Uint8Array(buffer).set([1, 2, 3]);
  return buffer;
}

function named(Class, message, options) {
  const error = new Class(message, options);
  error.stack = `${Class.name}: ${message}\n    at somewhere`;
  return error;
}

/** name → a maker of the value; everything here equals itself after a round trip. */
const makers = {
  undefined: () => undefined,
  null: () => null,
  true: () => true,
  false: () => false,
  0: () => 0,
  "-0": () => -0,
  1: () => 1,
  "-1": () => -1,
  23: () => 23,
  24: () => 24,
  255: () => 255,
  256: () => 256,
  65535: () => 65535,
  65536: () => 65536,
  "2**31": () => 2 ** 31,
  "2**32": () => 2 ** 32,
  "2**53 - 1": () => 2 ** 53 - 1,
  "2**53": () => 2 ** 53,
  "-(2**53)": () => -(2 ** 53),
  "a fraction": () => 3.14,
  "the largest number": () => Number.MAX_VALUE,
  "the smallest number": () => Number.MIN_VALUE,
  NaN: () => NaN,
  Infinity: () => Infinity,
  "-Infinity": () => -Infinity,
  "0n": () => 0n,
  "-1n": () => -1n,
  "a bigint of 64 bits": () => 2n ** 64n - 1n,
  "a negative bigint of 64 bits": () => -(2n ** 63n),
  "a bigint of 1000 bits": () => 2n ** 1000n + 7n,
  "a negative bigint of 1000 bits": () => -(2n ** 1000n) - 7n,
  "the empty string": () => "",
  "a short string": () => "hello",
  "a string of 24 letters": () => "abcdefghijklmnopqrstuvwx",
  "a string of 10,000 letters": () => "0123456789".repeat(1000),
  "a string with NUL": () => "a\0b",
  "latin-1 letters": () => "éàü ÿ",
  "a long string of two-byte letters": () => "déjà vu ".repeat(500),
  "three and four byte letters": () => "日本語 😀 \u{10ffff}",
  "a lone high surrogate": () => "x\ud800",
  "a lone low surrogate": () => "\udc00y",
  "surrogates the wrong way round": () => "\udc00\ud800",
  "a Date": () => new Date(1_700_000_000_123),
  "a Date before 1970": () => new Date(-1.5e12),
  "the first and last Date": () => [new Date(-8.64e15), new Date(8.64e15)],
  "an invalid Date": () => new Date(NaN),
  "a RegExp": () => /a\/[b"]+/giu,
  "an empty RegExp": () => new RegExp(""),
  "a boxed Boolean": () => [Object(true), Object(false)],
  "a boxed Number": () => [Object(1.5), Object(-0), Object(NaN)],
  "a boxed String": () => [Object("text"), Object(""), Object("\ud800")],
  "a boxed BigInt": () => Object(5n),
  "an empty array": () => [],
  "an array of everything": () => [1, "a", null, undefined, 2n, [true, []], {}],
  "an array of 1000": () => Array.from({ length: 1000 }, (_, i) => i * i),
  "an array with holes": holes,
  "an array of holes only": () => new Array(5),
  "an array with extra properties": () => Object.assign([1, 2], { extra: "x", more: [3] }),
  "holes and extra properties": () => Object.assign(holes(), { extra: 1 }),
  "an empty object": () => ({}),
  "an object": () => ({ a: 1, b: "two", c: [3], d: { e: null } }),
  "an object in its order of keys": () => ({ z: 1, a: 2, 10: 3, 9: 4, "": 5 }),
  "an object with undefined in it": () => ({ a: undefined }),
  "odd property names": () => ({ "\0": 1, é: 2, "😀": 3, "\ud800": 4, "a b": 5, constructor: 6 }),
  "a property named __proto__": () => JSON.parse('{"__proto__": {"x": 1}, "y": 2}'),
  "an object of 300 properties": () =>
    Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`p${i}`, i])),
  "an object named like an error": () => ({ name: "Error", message: "no", stack: "none" }),
  "a Map": () =>
    new Map([
      ["a", 1],
      [{ k: 1 }, [2]],
      [NaN, undefined],
      [-1n, null],
    ]),
  "a Map in its order": () =>
    new Map([
      ["z", 1],
      ["a", 2],
      [10, 3],
      [9, 4],
    ]),
  "an empty Map": () => new Map(),
  "a Set": () => new Set(["a", 1, NaN, { x: 1 }, [2]]),
  "an empty Set": () => new Set(),
  "Maps and Sets in each other": () => new Map([[new Set([1]), new Map([[1, new Set()]])]]),
  "a Uint8Array inside": () => ({ b: bytes(0, 1, 255) }),
  "an empty Uint8Array inside": () => [bytes()],
  "an ArrayBuffer": () => bytes(1, 2, 3).buffer,
  "an empty ArrayBuffer": () => new ArrayBuffer(0),
  "a resizable ArrayBuffer": resizable,
  "an Int8Array": () => new Int8Array([-128, 0, 127]),
  "a Uint8ClampedArray": () => new Uint8ClampedArray([0, 255]),
  "an Int16Array": () => new Int16Array([-32768, 32767]),
  "a Uint16Array": () => new Uint16Array([1, 65535]),
  "an Int32Array": () => new Int32Array([-(2 ** 31), 7]),
  "a Uint32Array": () => new Uint32Array([2 ** 32 - 1]),
  "a BigInt64Array": () => new BigInt64Array([-(2n ** 63n), 1n]),
  "a BigUint64Array": () => new BigUint64Array([2n ** 64n - 1n]),
  "a Float32Array": () => new Float32Array([1.5, NaN, -0, Infinity]),
  "a Float64Array": () => new Float64Array([Math.PI, -0, 5e-324]),
  "a DataView": () => new DataView(bytes(1, 2, 3).buffer),
  "an empty Float64Array": () => new Float64Array(0),
  "an Error": () => named(Error, "message"),
  "an Error without a message": () => {
    const error = new Error();
    error.stack = "Error\n    at somewhere";
    return error;
  },
  "an EvalError": () => named(EvalError, "m"),
  "a RangeError": () => named(RangeError, "m"),
  "a ReferenceError": () => named(ReferenceError, "m"),
  "a SyntaxError": () => named(SyntaxError, "m"),
  "a TypeError": () => named(TypeError, "m"),
  "a URIError": () => named(URIError, "m"),
  "an Error with a cause": () =>
    named(TypeError, "outer", { cause: named(RangeError, "inner", { cause: { n: 1 } }) }),
  "an Error with an undefined cause": () => named(Error, "m", { cause: undefined }),
  "500 rows": () =>
    Array.from({ length: 500 }, (_, i) => ({ id: i, name: `row ${i}`, on: i % 2 === 0, at: null })),
  "rows of changing shapes": () => [
    { a: 1, b: 2 },
    { b: 2, a: 1 },
    { a: "x" },
    { a: 1, b: 2, c: 3 },
  ],
};

if (globalThis.Float16Array) {
  makers["a Float16Array"] = () => new Float16Array([1.5, -0, NaN]);
}

const roundTrips = Object.entries(makers).map(([name, make]) => ({
  name: `round trip: ${name}`,
  async run(t) {
    const kv = await t.open();
    await kv.set(["alone"], make());
    t.same(await t.value(kv, ["alone"]), make(), "alone");
    const inside = () => ({ a: [make()], m: new Map([["k", make()]]), end: "end" });
    await kv.set(["inside"], inside());
    t.same(await t.value(kv, ["inside"]), inside(), "inside");
    const [{ value }] = await t.all(kv.list({ prefix: [] }));
    t.same(value, make(), "listed");
  },
}));

/** Stores the value and answers what comes back. */
async function trip(t, value) {
  const kv = await t.open();
  await kv.set(["a"], value);
  return t.value(kv, ["a"]);
}

export default [
  ...roundTrips,
  {
    name: "a Float16Array, where the runtime has them",
    async run(t) {
      if (!globalThis.Float16Array) t.skip("this runtime has no Float16Array");
      const back = await trip(t, { f: new Float16Array([0.5]) });
      t.is(back.f.constructor, Float16Array);
    },
  },
  {
    name: "a Uint8Array comes back over a buffer of its own size",
    async run(t) {
      for (const length of [0, 1, 100, 5000, 65536]) {
        const back = await trip(t, new Uint8Array(length).fill(7));
        t.is(back.constructor, Uint8Array);
        t.same([back.length, back.byteOffset, back.buffer.byteLength], [length, 0, length]);
      }
    },
  },
  {
    name: "a Buffer comes back as a plain Uint8Array, alone and inside",
    async run(t) {
      const [alone, inside] = [
        await trip(t, Buffer.from("abc")),
        (await trip(t, { b: Buffer.from("abc") })).b,
      ];
      for (const back of [alone, inside]) {
        t.is(back.constructor, Uint8Array);
        t.same([...back], [97, 98, 99]);
      }
      t.is(alone.buffer.byteLength, 3);
    },
  },
  {
    name: "a subclass of Uint8Array comes back as Uint8Array",
    async run(t) {
      class Mine extends Uint8Array {}
      t.is((await trip(t, new Mine([1]))).constructor, Uint8Array);
      t.is((await trip(t, [new Mine([1])]))[0].constructor, Uint8Array);
    },
  },
  {
    name: "a top-level part of a buffer stores that part",
    async run(t) {
      const back = await trip(t, bytes(0, 1, 2, 3, 4).subarray(1, 3));
      t.same(back, bytes(1, 2));
    },
  },
  {
    name: "a view that stands alone comes back over a buffer of exactly its size",
    denoDiffers: "Deno stores the whole buffer behind a view, unseen bytes too",
    async run(t) {
      const buffer = new ArrayBuffer(16);
      for (const view of [new Int16Array(buffer, 4, 2), new DataView(buffer, 4, 4)]) {
        const back = await trip(t, view);
        t.same([back.byteOffset, back.byteLength, back.buffer.byteLength], [0, 4, 4]);
      }
      const { b } = await trip(t, { b: new Uint8Array(buffer, 3, 2) });
      t.same([b.byteOffset, b.length, b.buffer.byteLength], [0, 2, 2]);
    },
  },
  {
    name: "views over one buffer share it again",
    async run(t) {
      const buffer = new ArrayBuffer(16);
      const back = await trip(t, {
        bytes: new Uint8Array(buffer, 4, 4),
        words: new Int16Array(buffer, 8, 2),
        buffer,
      });
      t.is(back.bytes.buffer, back.buffer);
      t.is(back.words.buffer, back.buffer);
      t.same([back.bytes.byteOffset, back.bytes.length], [4, 4]);
      t.same([back.words.byteOffset, back.words.length], [8, 2]);
      back.bytes[0] = 9;
      t.is(new Uint8Array(back.buffer)[4], 9);
    },
  },
  {
    name: "two views over one buffer that is not itself in the value",
    async run(t) {
      const buffer = bytes(1, 2, 3, 4).buffer;
      const [a, b] = await trip(t, [new Uint8Array(buffer, 0, 2), new Uint8Array(buffer, 1, 2)]);
      t.is(a.buffer, b.buffer);
      a[1] = 9;
      t.is(b[0], 9);
    },
  },
  {
    name: "a view that tracks a resizable buffer goes on tracking it",
    async run(t) {
      const buffer = new ArrayBuffer(4, { maxByteLength: 8 });
      const value = { buffer, tracks: new Uint8Array(buffer), fixed: new Uint8Array(buffer, 1, 2) };
      const back = await trip(t, value);
      t.ok(back.buffer.resizable);
      t.is(back.buffer.maxByteLength, 8);
      t.is(back.tracks.buffer, back.buffer);
      back.buffer.resize(6);
      t.same([back.tracks.length, back.fixed.length], [6, 2]);
    },
  },
  {
    name: "a shared object comes back shared",
    async run(t) {
      const one = { n: 1 };
      const back = await trip(t, { a: one, b: [one, one], c: new Map([[one, one]]) });
      t.is(back.a, back.b[0]);
      t.is(back.a, back.b[1]);
      t.same([...back.c][0][0] === back.a, true);
      t.is([...back.c][0][1], back.a);
    },
  },
  {
    name: "equal objects that are not shared stay apart",
    async run(t) {
      const [a, b] = await trip(t, [{ n: 1 }, { n: 1 }]);
      t.ok(a !== b);
    },
  },
  {
    name: "shared arrays, Maps, Sets, Dates, RegExps, boxes, buffers and errors",
    async run(t) {
      const shared = [[1], new Map(), new Set(), new Date(0), /x/, Object("s"), bytes(1).buffer];
      shared.push(bytes(1), new Error("e"), new Float64Array(1), holes());
      const back = await trip(t, [shared, [...shared]]);
      for (let i = 0; i < shared.length; i++) t.is(back[0][i], back[1][i], `number ${i}`);
    },
  },
  {
    name: "cycles through objects, arrays, Maps, Sets and errors",
    async run(t) {
      const value = { self: null, list: [], map: new Map(), set: new Set(), error: new Error("e") };
      value.self = value;
      value.list.push(value.list, value);
      value.map.set("map", value.map).set(value.set, value);
      value.set.add(value.set).add(value);
      value.error.cause = value;
      const back = await trip(t, value);
      t.is(back.self, back);
      t.same([back.list[0] === back.list, back.list[1] === back], [true, true]);
      t.is(back.map.get("map"), back.map);
      t.is(back.map.get(back.set), back);
      t.ok(back.set.has(back.set) && back.set.has(back));
      t.is(back.error.cause, back);
    },
  },
  {
    name: "class instances become plain objects of their own properties",
    async run(t) {
      class Point {
        x = 1;
        #hidden = 2;
        get y() {
          return this.#hidden;
        }
      }
      const back = await trip(t, [new Point()]);
      t.same(back, [{ x: 1 }]);
      t.is(Object.getPrototypeOf(back[0]), Object.prototype);
    },
  },
  {
    name: "an object without a prototype becomes a plain one",
    async run(t) {
      const back = await trip(t, Object.assign(Object.create(null), { a: 1 }));
      t.same(back, { a: 1 });
    },
  },
  {
    name: "subclasses of Array, Map, Set, Date and RegExp lose the subclass",
    async run(t) {
      const values = [Array, Map, Set, Date, RegExp].map((Base) => new (class extends Base {})());
      const back = await trip(t, values);
      const names = back.map((value) => value.constructor.name);
      t.same(names, ["Array", "Map", "Set", "Date", "RegExp"]);
    },
  },
  {
    name: "getters are called, symbols and hidden properties dropped",
    async run(t) {
      const value = {
        get computed() {
          return 7;
        },
        [Symbol("s")]: 1,
      };
      Object.defineProperty(value, "hidden", { value: 1, enumerable: false });
      t.same(await trip(t, value), { computed: 7 });
    },
  },
  {
    name: "an error that a getter throws comes through",
    async run(t) {
      const kv = await t.open();
      const value = {
        get x() {
          throw new RangeError("boo");
        },
      };
      await t.rejects(() => kv.set(["a"], value), RangeError, "boo");
    },
  },
  {
    name: "a RegExp loses its lastIndex",
    async run(t) {
      const back = await trip(t, Object.assign(/a/g, { lastIndex: 3 }));
      t.is(back.lastIndex, 0);
    },
  },
  {
    name: "an error keeps name, message, stack and cause, and nothing else",
    async run(t) {
      class Mine extends TypeError {
        constructor() {
          super("m");
          this.name = "Mine";
          this.extra = 1;
        }
      }
      const back = await trip(t, new Mine());
      t.same([back.constructor.name, back.message, back.extra], ["Error", "m", undefined]);
      t.same(Object.keys(back), []);
      t.is(Object.getOwnPropertyDescriptor(back, "message").enumerable, false);
      const named = await trip(t, Object.assign(new Error("m"), { name: "RangeError" }));
      t.ok(named instanceof RangeError);
      const many = await trip(t, new AggregateError([1], "m"));
      t.same([many.constructor.name, many.message, many.errors], ["Error", "m", undefined]);
    },
  },
  {
    name: "an error's stack is the stored one",
    async run(t) {
      const error = new Error("m");
      t.is((await trip(t, error)).stack, error.stack);
    },
  },
  {
    name: "objects of the platform become what they show",
    async run(t) {
      t.same(await trip(t, [Math, JSON]), [{}, {}]);
      t.same(await trip(t, await t.open()), {});
    },
  },
  {
    name: "a KvU64 inside a value becomes a plain object",
    async run(t) {
      t.same(await trip(t, { n: [new t.KvU64(5n)] }), { n: [{ value: 5n }] });
    },
  },
  {
    name: "a DOMException keeps message, name and code",
    async run(t) {
      const back = await trip(t, [new DOMException("gone", "AbortError")]);
      t.ok(back[0] instanceof DOMException);
      t.same([back[0].message, back[0].name, back[0].code], ["gone", "AbortError", 20]);
    },
  },
  {
    name: "a Blob and a File keep what they are",
    async run(t) {
      const blob = new Blob(["hel", "lo"], { type: "image/x-a" });
      const file = new File(["data"], "name.txt", { type: "image/x-b", lastModified: 1234 });
      const back = await trip(t, { blob, again: blob, file });
      t.ok(back.blob instanceof Blob && back.file instanceof File);
      t.is(back.blob, back.again);
      t.same([back.blob.type, back.blob.size, await back.blob.text()], ["image/x-a", 5, "hello"]);
      t.same(
        [back.file.name, back.file.lastModified, back.file.type, await back.file.text()],
        ["name.txt", 1234, "image/x-b", "data"],
      );
    },
  },
  {
    name: "a Blob and a File are stored by content: another process reads them",
    on: "file",
    denoDiffers: "Deno stores a reference into the memory of the process that wrote it",
    async run(t) {
      const path = t.path();
      const kv = await t.openKv(path);
      const blob = new Blob(["hello"], { type: "image/x-a" });
      const file = new File(["data"], "f.txt", { type: "image/x-b" });
      await kv.set(["files"], { blob, file });
      kv.close();
      const script = fileURLToPath(new URL("../read-file.mjs", import.meta.url));
      const flags = t.runtime === "deno" ? ["run", "-A", "--unstable-kv"] : [];
      const oracle = t.oracle ? ["--oracle"] : [];
      const { stdout } = await promisify(execFile)(process.execPath, [
        ...flags,
        script,
        path,
        ...oracle,
      ]);
      t.same(JSON.parse(stdout), ["image/x-a", "hello", "image/x-b", "f.txt", "data"]);
    },
  },
  {
    name: "objects 200 deep",
    async run(t) {
      let value = "bottom";
      for (let i = 0; i < 200; i++) value = i % 2 ? [value] : { in: value };
      t.same(await trip(t, value), value);
    },
  },
];
