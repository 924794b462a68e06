// Duty: what an object says of itself decides nothing about where bytes go. Views, buffers, Blobs,
// errors, arrays and keys that redefine their properties are stored by what the engine knows of
// them, and the writes and reads of the same moment are as if they were not there.
//
// A Uint8Array whose `length` was larger than itself stored bytes of its neighbour in the batch, one
// whose `length` was smaller left the batch unreadable.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, onEveryKind } from "./databases.mjs";

/** As many rounds as there are ways to lie, several times over. */
const ROUNDS = 150;

function randomFrom(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const bytesOf = (random, most = 40) => Uint8Array.from({ length: random(most) }, () => random(256));

const LENGTHS = [
  0,
  1,
  3,
  7,
  64,
  4096,
  70_000,
  -1,
  -64,
  0.5,
  Number.NaN,
  2 ** 31,
  2 ** 53,
  "9",
  null,
  undefined,
  {},
];

/** Every property by which code might ask for the size, place or class of bytes. */
function lyingClass(random, Base, buffer) {
  const number = () => LENGTHS[random(LENGTHS.length)];
  const told = {
    length: number(),
    byteLength: number(),
    byteOffset: number(),
    buffer,
    maxByteLength: number(),
  };
  const resizable = random(2) === 1;
  class Lying extends Base {
    get length() {
      return told.length;
    }
    get byteLength() {
      return told.byteLength;
    }
    get byteOffset() {
      return told.byteOffset;
    }
    get buffer() {
      return told.buffer;
    }
    get maxByteLength() {
      return told.maxByteLength;
    }
    get resizable() {
      return resizable;
    }
    get [Symbol.toStringTag]() {
      return ["Uint8Array", "Date", "Float64Array", "Map"][told.buffer.byteLength % 4];
    }
    set() {
      throw new Error("set was called");
    }
    subarray() {
      return new Uint8Array(9);
    }
    slice() {
      return new Uint8Array(9);
    }
    resize() {
      throw new Error("resize was called");
    }
    *[Symbol.iterator]() {
      yield* [1, 2, 3];
    }
    static get [Symbol.species]() {
      return Uint16Array;
    }
  }
  return Lying;
}

/** A value, and what is to be read. */
function lyingValue(random) {
  const own = bytesOf(random);
  const other = new ArrayBuffer(random(200));
  switch (random(9)) {
    case 0:
      return [new (lyingClass(random, Uint8Array, other))(own), own];
    case 1: {
      const view = new (lyingClass(random, Uint8Array, other))(own);
      return [
        { view, after: "x" },
        { view: own, after: "x" },
      ];
    }
    case 2: {
      // The same on the object itself, and a Buffer.
      const view = random(2) === 0 ? Uint8Array.from(own) : Buffer.from(own);
      for (const name of ["length", "byteLength", "byteOffset"]) {
        Object.defineProperty(view, name, { value: LENGTHS[random(LENGTHS.length)] });
      }
      Object.defineProperty(view, "buffer", { value: other });
      return random(2) === 0 ? [view, own] : [[view], [own]];
    }
    case 3: {
      const numbers = Float64Array.from({ length: random(5) }, (_, i) => i / 3);
      return [[new (lyingClass(random, Float64Array, other))(numbers)], [numbers]];
    }
    case 4: {
      const Lying = lyingClass(random, DataView, other);
      return [
        { d: new Lying(Uint8Array.from(own).buffer) },
        { d: new DataView(Uint8Array.from(own).buffer) },
      ];
    }
    case 5: {
      const buffer = new (lyingClass(random, ArrayBuffer, other))(own.length);
      new Uint8Array(buffer).set(own);
      return [
        [buffer, new Uint8Array(buffer)],
        [Uint8Array.from(own).buffer, own],
      ];
    }
    case 6: {
      const text = "a".repeat(random(30));
      class LyingBlob extends Blob {
        get size() {
          // Deno itself reads a Blob by its size, and fails if that lies.
          return globalThis.Deno ? super.size : LENGTHS[random(LENGTHS.length)];
        }
        get type() {
          return { length: 5, charCodeAt: () => 300 };
        }
        arrayBuffer() {
          return Promise.resolve(new ArrayBuffer(3));
        }
      }
      return [{ blob: new LyingBlob([text], { type: "text/x" }) }, { blob: text }];
    }
    case 7: {
      class LyingError extends DOMException {
        get message() {
          return { length: 1e9, charCodeAt: () => 65, toString: () => "told" };
        }
      }
      return [
        { error: new LyingError("m", "AbortError"), n: 1 },
        { error: "told", n: 1 },
      ];
    }
    default: {
      class LyingRegExp extends RegExp {
        get flags() {
          return "nonsense";
        }
        get global() {
          return true;
        }
        get source() {
          return 5;
        }
      }
      class LyingDate extends Date {
        getTime() {
          return Number.NaN;
        }
        valueOf() {
          return "never";
        }
      }
      class LyingMap extends Map {
        get size() {
          return 1000;
        }
        *[Symbol.iterator]() {}
        forEach() {}
      }
      return [
        { r: new LyingRegExp("a.b", "i"), d: new LyingDate(5), m: new LyingMap([[1, 2]]), s: own },
        { r: /a.b/i, d: new Date(5), m: new Map([[1, 2]]), s: own },
      ];
    }
  }
}

/** What was read, with Blobs and errors as their text. */
async function plain(value) {
  if (value instanceof Blob) return await value.text();
  if (value instanceof DOMException) return value.message;
  if (
    value === null ||
    typeof value !== "object" ||
    Object.getPrototypeOf(value) !== Object.prototype
  )
    return value;
  return Object.fromEntries(
    await Promise.all(Object.entries(value).map(async ([k, v]) => [k, await plain(v)])),
  );
}

/** An array that yields other items than it holds. */
class LyingArray extends Array {
  *[Symbol.iterator]() {
    for (let i = 0; i < 300; i++) yield ["yielded", i];
  }
  forEach() {}
  slice() {
    return ["sliced"];
  }
  map() {
    return [];
  }
  static get [Symbol.species]() {
    return Array;
  }
}

onEveryKind("objects that lie", (fresh) => {
  test("values, in one moment with honest writes", { timeout: 60_000 }, async () => {
    const kv = await fresh();
    for (let seed = 1; seed <= ROUNDS; seed++) {
      const random = randomFrom(seed);
      const [value, expected] = lyingValue(random);
      const before = bytesOf(random, 100);
      const after = { text: "b".repeat(random(100)), seed };
      const atomic = random(2) === 1;
      const lying = atomic
        ? () => kv.atomic().set(["v"], value).set(["beside"], seed).commit()
        : () => kv.set(["v"], value);
      const settled = await Promise.allSettled([
        kv.set(["before"], before),
        lying(),
        kv.set(["after"], after),
      ]);
      assert.deepEqual(
        settled.map(({ status, reason }) => [status, reason]),
        Array(3).fill(["fulfilled", undefined]),
        `seed ${seed}`,
      );
      assert.deepEqual((await kv.get(["before"])).value, before, `seed ${seed}`);
      assert.deepEqual((await kv.get(["after"])).value, after, `seed ${seed}`);
      if (atomic) assert.equal((await kv.get(["beside"])).value, seed);
      const told = await plain((await kv.get(["v"])).value);
      assert.deepEqual(told, await plain(expected), `seed ${seed}`);
    }
  });

  test("keys, in one moment with honest writes and reads", { timeout: 60_000 }, async () => {
    const kv = await fresh();
    for (let seed = 1; seed <= ROUNDS; seed++) {
      const random = randomFrom(seed);
      const own = bytesOf(random);
      const Base = [Uint8Array, DataView][random(2)];
      const argument = Base === DataView ? Uint8Array.from(own).buffer : own;
      const part = new (lyingClass(random, Base, new ArrayBuffer(random(200))))(argument);
      await Promise.all([
        kv.set(["k", 1], "one"),
        kv.set(["k", part, seed], "lying"),
        kv.set(["k", 2], "two"),
      ]);
      const [one, lying, two] = await Promise.all([
        kv.get(["k", 1]),
        kv.get(["k", part, seed]),
        kv.get(["k", 2]),
      ]);
      assert.deepEqual(
        [one.value, lying.value, two.value],
        ["one", "lying", "two"],
        `seed ${seed}`,
      );
      assert.deepEqual((await kv.get(["k", own, seed])).key, ["k", own, seed]);
    }
  });

  test("arrays that yield other items than they hold", { timeout: 20_000 }, async () => {
    const kv = await fresh();
    const lying = (...items) => Object.setPrototypeOf(items, LyingArray.prototype);
    const undelivered = { keysIfUndelivered: lying(["dead"]), backoffSchedule: lying(1) };
    const settled = await Promise.allSettled([
      kv.set(["before"], 1),
      kv.enqueue("m", undelivered),
      kv.atomic().enqueue("m", undelivered).set(["beside"], 2).commit(),
      kv.set(["after"], 3),
    ]);
    assert.deepEqual(
      settled.map(({ status, reason }) => [status, reason]),
      Array(4).fill(["fulfilled", undefined]),
    );
    assert.deepEqual(
      (await kv.getMany([["before"], ["beside"], ["after"]])).map(({ value }) => value),
      [1, 2, 3],
    );
    const read = (await kv.getMany(lying(["before"], ["after"]))).map(({ value }) => value);
    assert.deepEqual(read, [1, 3]);
    const ends = await kv.getMany(lying(["before"]), { withExpiry: true });
    assert.deepEqual(
      ends.map(({ value }) => value),
      [1],
    );
    const states = kv.watch(lying(["before"], ["after"])).getReader();
    assert.deepEqual(
      (await states.read()).value.map(({ value }) => value),
      [1, 3],
    );
    await states.cancel();
    assert.equal((await kv.deleteMany(lying(["after"]))).count, 1);
    assert.deepEqual(
      (await all(kv.list({ prefix: [] }))).map(({ key }) => key),
      [["before"], ["beside"]],
    );
  });

  test("a list of keys that grows and shrinks while it is read", { timeout: 20_000 }, async () => {
    const kv = await fresh();
    await Promise.all([kv.set(["a"], 1), kv.set(["b"], 2)]);
    const keys = [["a"], null];
    const growing = [...Array(20)].map(() => ["b"]);
    Object.defineProperty(keys, 1, {
      get: () => (keys.push(...growing), ["b"]),
      enumerable: true,
      configurable: true,
    });
    assert.deepEqual(
      (await kv.getMany(keys)).slice(0, 2).map(({ value }) => value),
      [1, 2],
    );
    const shrinking = [["a"], null, ["b"]];
    Object.defineProperty(shrinking, 1, {
      get: () => ((shrinking.length = 2), ["b"]),
      enumerable: true,
    });
    await assert.rejects(kv.getMany(shrinking), TypeError);
    assert.equal((await kv.get(["b"])).value, 2);
  });

  test("a buffer that a getter resizes is refused when views of it no longer fit", async () => {
    const kv = await fresh();
    const buffer = new ArrayBuffer(8, { maxByteLength: 64 });
    const grows = {
      first: new Uint8Array(buffer),
      get second() {
        buffer.resize(64);
        return new Uint8Array(buffer, 32, 16);
      },
    };
    await assert.rejects(kv.set(["a"], grows), { name: "TypeError", message: /changed its size/ });
    const shrinks = {
      first: new Uint8Array(buffer),
      get second() {
        buffer.resize(4);
        return new Uint8Array(buffer);
      },
    };
    await kv.set(["a"], shrinks);
    const { first, second } = (await kv.get(["a"])).value;
    assert.equal(first.buffer, second.buffer);
  });
});
