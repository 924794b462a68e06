// Duty: values and keys that change while they are stored, because their getters change them; and views
// of buffers that are gone or have become too small for them.
//
// An array that a getter made shorter was stored with undefined in place of its lost elements, a view
// beyond the end of a shrunken buffer as an empty one, and a Uint16Array that follows the length of a
// buffer of three bytes could not be read again.

const getter = (object, name, get) =>
  Object.defineProperty(object, name, { get, enumerable: true, configurable: true });

/** An array of that length with these elements. */
const holed = (length, elements) => Object.assign(new Array(length), elements);

const numbers = (length) => Array.from({ length }, (_, i) => i);
const objects = (length) => Array.from({ length }, (_, i) => ({ i }));

/** Arrays are written in other ways from some lengths on. */
const LENGTHS = [4, 8, 9, 40, 100, 401, 700];

/** By what happens: a value, and what is read, for each length. */
const changing = {
  "a getter of an element shortens the array": (length) => {
    const array = objects(length);
    getter(array[1], "i", () => {
      array.length = 3;
      return 1;
    });
    return [array, holed(length, [{ i: 0 }, { i: 1 }, { i: 2 }])];
  },
  "a getter of an element shortens an array of numbers": (length) => {
    const array = numbers(length);
    array[2] = getter({}, "x", () => {
      array.length = 3;
      return 1;
    });
    return [array, holed(length, [0, 1, { x: 1 }])];
  },
  "the last element's getter shortens the array": (length) => {
    const array = objects(length);
    getter(array[length - 1], "i", () => {
      array.length = 1;
      return length - 1;
    });
    return [array, objects(length)];
  },
  "an index that is a getter shortens the array": (length) => {
    const array = numbers(length);
    getter(array, 2, () => {
      array.length = 2;
      return "got";
    });
    return [array, holed(length, [0, 1, "got"])];
  },
  "a getter makes the array longer": (length) => {
    const array = objects(length);
    getter(array[0], "i", () => {
      array.push("more", "still more");
      return 0;
    });
    return [array, objects(length)];
  },
  "an index that is a getter makes an array with a name longer": (length) => {
    const array = numbers(length);
    getter(array, 1, () => {
      array.push("more");
      return 1;
    });
    array.name = "kept";
    return [array, Object.assign(numbers(length), { name: "kept" })];
  },
  "undefined is no hole": (length) => {
    const array = objects(length);
    array[1] = undefined;
    getter(array[0], "i", () => {
      array.length = 3;
      return 0;
    });
    return [array, holed(length, [{ i: 0 }, undefined, { i: 2 }])];
  },
  "what is shared stays shared in a shortened array": (length) => {
    const shared = { s: new Uint8Array(300) };
    const array = objects(length);
    array[0] = array[2] = shared;
    getter(array[1], "i", () => {
      array.length = 3;
      return 1;
    });
    const back = { s: new Uint8Array(300) };
    const expected = holed(length, [back, { i: 1 }, back]);
    return [
      { array, again: array, shared },
      { array: expected, again: expected, shared: back },
    ];
  },
  "an array in an array, both shortened, and an object that loses a property": (length) => {
    const array = objects(length);
    const inner = ["é".repeat(50), new Map([[1n, new Set([2])]]), {}, -5, 1e300];
    getter(inner[2], "x", () => {
      inner.length = 4;
      array.length = 2;
      delete inner[2].y;
      return 1;
    });
    inner[2].y = 2;
    array[1] = inner;
    const back = holed(5, [inner[0], inner[1], { x: 1 }, -5]);
    return [array, holed(length, [{ i: 0 }, back])];
  },
};

/** A resizable buffer of 1, 2, 3, …, or nothing where the runtime has none. */
function resizable(t, size) {
  const buffer = new ArrayBuffer(size, { maxByteLength: 16 });
  if (buffer.resizable !== true) t.skip("this runtime has no resizable buffers");
  new Uint8Array(buffer).forEach((_, i, bytes) => (bytes[i] = i + 1));
  return buffer;
}

function detach(buffer) {
  structuredClone(buffer, { transfer: [buffer] });
}

async function refused(t, value, words) {
  const kv = await t.open();
  await t.rejects(() => kv.set(["a"], { in: [value] }), TypeError, words);
  t.is(await t.stamp(kv, ["a"]), null);
}

export default [
  ...Object.entries(changing).map(([name, make]) => ({
    name,
    async run(t) {
      const kv = await t.open();
      for (const length of LENGTHS) {
        const [value, expected] = make(length);
        await kv.set(["a"], value);
        const back = await t.value(kv, ["a"]);
        t.same(back, expected, `${length} elements`);
      }
    },
  })),
  {
    name: "a Map and a Set are as they were when their writing began",
    async run(t) {
      const kv = await t.open();
      const map = new Map([
        ["a", {}],
        ["b", 2],
      ]);
      getter(map.get("a"), "x", () => {
        map.delete("b");
        map.set("c", 3);
        return 1;
      });
      await kv.set(["a"], map);
      t.same(
        await t.value(kv, ["a"]),
        new Map([
          ["a", { x: 1 }],
          ["b", 2],
        ]),
      );
      const item = {};
      const set = new Set([item, 2]);
      getter(item, "x", () => {
        set.clear();
        return 1;
      });
      await kv.set(["a"], set);
      t.same(await t.value(kv, ["a"]), new Set([{ x: 1 }, 2]));
    },
  },
  {
    name: "a typed array beyond the end of its shrunken buffer is refused",
    async run(t) {
      const buffer = resizable(t, 8);
      const views = [new Uint8Array(buffer, 0, 8), new Float64Array(buffer, 0, 1)];
      views.push(new Uint8Array(buffer, 6), new Uint16Array(buffer, 4, 2));
      buffer.resize(4);
      for (const view of views) await refused(t, view, "could not be cloned");
    },
  },
  {
    name: "a DataView beyond the end of its shrunken buffer is refused",
    async run(t) {
      const buffer = resizable(t, 8);
      const views = [new DataView(buffer, 4, 4), new DataView(buffer, 6)];
      buffer.resize(4);
      for (const view of views) await refused(t, view, "#<DataView> could not be cloned");
    },
  },
  {
    name: "a getter that shrinks a buffer under a later view",
    async run(t) {
      const buffer = resizable(t, 8);
      const value = getter({}, "a", () => buffer.resize(2));
      value.b = new Uint8Array(buffer, 0, 8);
      await refused(t, value, "could not be cloned");
    },
  },
  {
    name: "a view that follows its buffer, which does not hold whole items",
    async run(t) {
      const kv = await t.open();
      for (const size of [3, 7, 15]) {
        const buffer = resizable(t, 16);
        const array = new Uint16Array(buffer);
        buffer.resize(size);
        await kv.set(["a"], { array });
        const back = (await t.value(kv, ["a"])).array;
        t.is(back.length, (size - 1) / 2);
        t.is(back[0], array[0]);
        t.is(back.buffer.byteLength, size);
        t.is(new Uint8Array(back.buffer)[size - 1], size);
        back.buffer.resize(16);
        t.is(back.length, 8);
      }
    },
  },
  {
    name: "a getter that makes a buffer longer under a view that follows it",
    async run(t) {
      const kv = await t.open();
      const buffer = resizable(t, 4);
      const value = { first: new Uint8Array(buffer) };
      getter(value, "grows", () => {
        buffer.resize(8);
        return 1;
      });
      value.second = new Uint8Array(buffer);
      await kv.set(["a"], value);
      const { first, second } = await t.value(kv, ["a"]);
      t.is(first.buffer, second.buffer);
      t.same([...second], [1, 2, 3, 4]);
    },
  },
  {
    name: "a getter that writes into a buffer after its first view is stored",
    async run(t) {
      const kv = await t.open();
      const first = Uint8Array.of(1, 2, 3, 4);
      const value = { first };
      getter(value, "writes", () => (first[0] = 9));
      value.second = new Uint8Array(first.buffer, 0, 2);
      await kv.set(["a"], value);
      const back = await t.value(kv, ["a"]);
      t.same([...back.first], [1, 2, 3, 4]);
      t.same([...back.second], [1, 2]);
    },
  },
  {
    name: "top-level bytes of a detached buffer are none",
    async run(t) {
      const kv = await t.open();
      const bytes = Uint8Array.of(1, 2);
      detach(bytes.buffer);
      await kv.set(["a"], bytes);
      t.same(await t.value(kv, ["a"]), new Uint8Array(0));
    },
  },
  {
    name: "a part of a key over a detached buffer has no bytes",
    async run(t) {
      const kv = await t.open();
      const part = Uint8Array.of(1, 2);
      detach(part.buffer);
      await kv.set(["a", part], 1);
      await kv.atomic().set(["b", part], 2).commit();
      const keys = [];
      for await (const { key } of kv.list({ prefix: [] })) keys.push(key);
      t.same(keys, [
        ["a", new Uint8Array(0)],
        ["b", new Uint8Array(0)],
      ]);
      await kv.delete(["a", part]);
      t.is(await t.stamp(kv, ["a", new Uint8Array(0)]), null);
    },
  },
  {
    name: "a key is read up to the length that it had",
    async run(t) {
      const kv = await t.open();
      const longer = ["a", "b"];
      getter(longer, 0, () => {
        longer.push("c");
        return "x";
      });
      await kv.set(longer, 1);
      t.is(await t.value(kv, ["x", "b"]), 1);
      const shorter = ["a", "b", "c"];
      getter(shorter, 0, () => {
        shorter.length = 1;
        return "x";
      });
      await t.rejects(() => kv.set(shorter, 1), TypeError, "expected string, number");
    },
  },
];
