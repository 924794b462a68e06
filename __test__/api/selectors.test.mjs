// Duty: one shape for all that works on a range, (selector, options); what does not belong into a
// selector is told, and a deletion never takes more than was meant.
//
// deleteMany({ prefix, where }), as paginate takes it, deleted the whole prefix; so did { prefix, limit }
// and an undefined `where`, and a string as prefix was spread into its letters.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, onEveryKind, onNearReplica, onReplica } from "./databases.mjs";

const prefix = ["a"];

/** Every method that takes a selector. */
const methods = {
  list: (kv, selector, options) => all(kv.list(selector, options)),
  count: (kv, selector, options) => kv.count(selector, options),
  paginate: (kv, selector, options) => kv.paginate(selector, options ?? {}),
  deleteMany: (kv, selector, options) => kv.deleteMany(selector, options),
  watch: async (kv, selector, options) => kv.watch(selector, options).cancel(),
};
const inTransactions = ["list", "count", "paginate"];

async function filled(fresh) {
  const kv = await fresh();
  const op = kv.atomic();
  for (const key of [["a", 1], ["a", 2], ["a", 3], ["b"], ["u", "s"]]) op.set(key, key.length);
  await op.commit();
  return kv;
}

async function refuses(call, words, what) {
  await assert.rejects(
    async () => await call(),
    (error) => {
      assert.ok(error instanceof TypeError, `${what}: ${error}`);
      assert.match(error.message, words, what);
      return true;
    },
    what,
  );
}

function selectors(fresh) {
  test("a deletion with its options in the selector is refused, and nothing is gone", async () => {
    const kv = await filled(fresh);
    const where = { $eq: 5 };
    const refused = [
      [
        [{ prefix, where }],
        /where belongs into the second argument: kv\.deleteMany\({ prefix }, { where }\)/,
      ],
      [[{ prefix, limit: 1 }], /kv\.deleteMany\({ prefix }, { limit }\)/],
      [[{ prefix, atomic: true }], /kv\.deleteMany\({ prefix }, { atomic }\)/],
      [[{ prefix, filter: where }], /unknown property 'filter': write where/],
      [[{ prefix, where: undefined }], /where belongs into the second argument/],
      [[{ prefix, cursor: "" }], /unknown property 'cursor': it has prefix, start and end/],
      [[{ prefix }, { where: undefined }], /where is undefined.*: leave where out/],
      [[{ prefix }, { limit: undefined }], /limit is undefined/],
      [[{ prefix }, { limit: null }], /limit must be a positive integer/],
      [[{ prefix }, { where: null }], /where must be an object/],
      [[[["a", 1]], { where: undefined }], /where is undefined/],
      [[{ prefix, start: undefined }], /start is undefined/],
      [[{ prefix, end: undefined }], /end is undefined/],
      [[{ prefix: undefined, start: ["a"], end: ["b"] }], /prefix is undefined/],
      [
        [{ prefix: "us" }],
        /expected: array, got: string: kv\.deleteMany: prefix is a key: write prefix: \["us"\]/,
      ],
      [["us"], /expected keys or a selector/],
      [[{}], /Selector must specify either/],
    ];
    for (const [args, words] of refused) {
      await refuses(() => kv.deleteMany(...args), words, JSON.stringify(args));
    }
    assert.equal(await kv.count({ prefix: [] }), 5);
    assert.equal((await kv.deleteMany({ prefix }, { where: { $eq: 2 }, limit: 2 })).count, 2);
    assert.equal((await kv.deleteMany({ prefix })).count, 1);
  });

  for (const [name, call] of Object.entries(methods)) {
    test(`${name}: what is no selector`, async () => {
      const kv = await filled(fresh);
      const calls = [[`kv.${name}`, (...args) => call(kv, ...args)]];
      if (inTransactions.includes(name)) {
        calls.push([`tx.${name}`, (...args) => kv.transaction((tx) => call(tx, ...args))]);
      }
      for (const [method, made] of calls) {
        const literal = method.replace(".", "\\.");
        await refuses(() => made({ prefix, foo: 1 }), /unknown property 'foo'/, method);
        await refuses(
          () => made({ prefix, perfix: [] }),
          /'perfix': did you mean 'prefix'/,
          method,
        );
        await refuses(
          () => made({ prefix: "us" }),
          /expected: array, got: string.*write prefix: \["us"\]/,
          method,
        );
        await refuses(
          () => made({ prefix: 5 }),
          new RegExp(`expected: array, got: number: ${literal}`),
          method,
        );
        await refuses(() => made({ prefix, start: "a" }), /start is a key/, method);
        await refuses(() => made({ start: ["a"], end: new Uint8Array(1) }), /end is a key/, method);
        await refuses(() => made({ start: ["a"] }), /Selector must specify either/, method);
        const option = { watch: "since" }[name] ?? "where";
        const words = new RegExp(
          `${option} belongs into the second argument: ${literal}\\({ prefix }, { ${option} }\\)`,
        );
        await refuses(() => made({ prefix, [option]: {} }), words, method);
      }
      assert.equal(await kv.count({ prefix: [] }), 5);
    });
  }

  test("paginate takes a selector and options, and the older one object", async () => {
    const kv = await filled(fresh);
    const expected = [
      ["a", 1],
      ["a", 2],
    ];
    for (const run of [
      (body) => body(kv),
      (body) => kv.transaction(body).then(({ value }) => value),
    ]) {
      const keys = async (...args) =>
        (await run((db) => db.paginate(...args))).entries.map(({ key }) => key);
      assert.deepEqual(await keys({ prefix }, { limit: 2 }), expected);
      assert.deepEqual(await keys({ prefix, limit: 2 }), expected);
      assert.deepEqual(await keys({ prefix, start: undefined, limit: 2 }), expected);
      assert.deepEqual(
        await keys({ prefix: undefined, start: ["a"], end: ["b"] }, { limit: 2 }),
        expected,
      );
      const first = await run((db) => db.paginate({ prefix }, { limit: 2 }));
      assert.deepEqual(await keys({ prefix }, { limit: 2, cursor: first.cursor }), [["a", 3]]);
      assert.deepEqual(await keys({ prefix }, { limit: 1, reverse: true }), [["a", 3]]);
      assert.deepEqual(await keys({ prefix }, { where: { $eq: 7 } }), []);
      assert.deepEqual(await keys({ prefix }, null), [
        ["a", 1],
        ["a", 2],
        ["a", 3],
      ]);
    }
    await refuses(
      () => kv.paginate({ prefix, limit: 2 }, {}),
      /limit belongs into the second argument: kv\.paginate/,
    );
    await refuses(() => kv.paginate({ prefix }, { prefix }), /unknown option 'prefix'/);
    await refuses(() => kv.paginate({ prefix }, 5), /options must be an object/);
  });

  test("prefixes that look alike have ranges of their own, whichever was listed before", async () => {
    const kv = await fresh();
    const prefixes = [[0], [-0], ["0"], [0n], [false], [Number.NaN], [0, 0], []];
    for (const [at, prefix] of prefixes.entries()) await kv.set([...prefix, "x"], at);
    const changed = [0];
    const list = kv.list({ prefix: changed });
    changed[0] = "0";
    assert.deepEqual(
      (await list.toArray()).map(({ value }) => value),
      [0, 6],
    );
    for (const [at, prefix] of [...prefixes.entries(), ...prefixes.entries()].slice(0, -1)) {
      if (at === 0 || prefix.length === 0) continue;
      const found = await kv.list({ prefix }).toArray();
      assert.deepEqual(
        found.map(({ key, value }) => [key, value]),
        [[[...prefix, "x"], at]],
      );
    }
  });

  test("unknown options of the methods that only openkv has", async () => {
    const kv = await filled(fresh);
    await refuses(
      () => kv.count({ prefix }, { filter: {} }),
      /unknown option 'filter': known are where.*; write where/,
    );
    await refuses(
      () => kv.deleteMany({ prefix }, { filter: {} }),
      /; write where: { field: value }/,
    );
    await refuses(() => kv.paginate({ prefix }, { desc: true }), /; write reverse: true/);
    await refuses(
      () => kv.touch(["a", 1], { ttl: 5 }),
      /unknown option 'ttl'.*; write expireIn: milliseconds/,
    );
    await refuses(() => kv.queue("q").enqueue(1, { backoff: 5 }), /; write backoffSchedule/);
    await refuses(() => kv.transaction((tx) => tx.set(["a"])), /write tx\.set\(key, value\)/);
    await refuses(
      () => kv.transaction((tx) => tx.list({ prefix }, { filter: 1 })),
      /; write where/,
    );
    await refuses(() => kv.count({ prefix }, { "\u001b[2J": 1 }), /unknown option '\\u001b\[2J'/);
    assert.equal(await kv.count({ prefix: [] }), 5);
  });

  test("an awaited list goes on, and says what to write when it is taken for an array", async () => {
    const kv = await filled(fresh);
    const list = await kv.list({ prefix });
    assert.throws(() => list.length, /write for await \(const entry of kv\.list\(\)\)/);
    assert.throws(() => [...list], TypeError);
    assert.throws(() => Object.fromEntries(list), TypeError);
    assert.equal((await all(list)).length, 3);
    await kv.transaction(async (tx) => {
      const listed = await tx.list({ prefix });
      assert.throws(() => listed.length, /tx\.list\(\) is no array/);
      assert.throws(() => [...listed], TypeError);
      assert.equal((await all(listed)).length, 3);
    });
  });
}

onEveryKind("selectors", selectors);
onReplica("selectors", selectors);
onNearReplica("selectors", selectors);
