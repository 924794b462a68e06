// Duty: a remote database over HTTP/1.1 and HTTP/2: the requests, and the results of answers.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KvU64 } from "../../index.mjs";
import { connect, reply, start } from "./mock.mjs";
import { fields } from "./protobuf.mjs";

for (const h2 of [false, true]) {
  describe(h2 ? "over HTTP/2" : "over HTTP/1.1", () => {
    test("entries are written and read back, with their stamps", async () => {
      const mock = await start({ h2 });
      const kv = await connect(mock);
      const value = { a: [1, "two", 3n, new Date(4), undefined], b: new Map([[1, new Set([2])]]) };
      const { versionstamp } = await kv.set(["a", 1], value);
      assert.deepEqual(await kv.get(["a", 1]), { key: ["a", 1], value, versionstamp });
      await kv.set(["b"], new Uint8Array([1, 2]));
      await kv.set(["c"], new KvU64(7n));
      const many = await kv.getMany([["b"], ["none"], ["c"]]);
      assert.deepEqual(
        many.map((entry) => entry.value),
        [new Uint8Array([1, 2]), null, new KvU64(7n)],
      );
      await kv.delete(["b"]);
      assert.equal((await kv.get(["b"])).versionstamp, null);
      assert.equal(mock.requests[1].headers[":method"] !== undefined, h2);
    });

    test("lists read page by page, in both directions", async () => {
      const mock = await start({ h2 });
      const kv = await connect(mock);
      await Promise.all(Array.from({ length: 90 }, (_, i) => kv.set(["n", i], i)));
      const all = async (options) => {
        const values = [];
        for await (const { value } of kv.list({ prefix: ["n"] }, options)) values.push(value);
        return values;
      };
      const ascending = Array.from({ length: 90 }, (_, i) => i);
      assert.deepEqual(await all(), ascending);
      assert.deepEqual(await all({ batchSize: 7 }), ascending);
      assert.deepEqual(await all({ reverse: true, limit: 40 }), ascending.reverse().slice(0, 40));
    });

    test("commits fail if a check fails", async () => {
      const kv = await connect(await start({ h2 }));
      const absent = { key: ["a"], versionstamp: null };
      assert.equal((await kv.atomic().check(absent).set(["a"], 1).commit()).ok, true);
      const refused = await kv.atomic().check(absent).set(["a"], 2).commit();
      assert.deepEqual(refused, { ok: false, failed: [0] });
      const entry = await kv.get(["a"]);
      assert.equal((await kv.atomic().check(entry).set(["a"], 3).commit()).ok, true);
    });

    test("a watch yields the newest state, and ends with the handle", async () => {
      const mock = await start({ h2 });
      const kv = await connect(mock);
      const reader = kv.watch([["a"], ["b"]]).getReader();
      const next = async () => (await reader.read()).value?.map((entry) => entry.value);
      assert.deepEqual(await next(), [null, null]);
      await kv.set(["b"], 1);
      assert.deepEqual(await next(), [null, 1]);
      for (let i = 0; i < 5; i++) await kv.set(["a"], i);
      let last;
      do last = await next();
      while (last[0] !== 4);
      await kv.close();
      assert.deepEqual(await reader.read(), { done: true, value: undefined });
    });

    test("a cancelled watch ends at the server", async () => {
      const mock = await start({ h2 });
      const kv = await connect(mock);
      const reader = kv.watch([["a"]]).getReader();
      await reader.read();
      assert.equal(mock.watching, 1);
      await reader.cancel();
      while (mock.watching > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    });
  });
}

test("features without a message in the protocol are rejected by name", async () => {
  const mock = await start();
  const kv = await connect(mock);
  const before = mock.requests.length;
  const end = { expireIn: 1000 };
  for (const [add, words] of [
    [(op) => op.sum(["n"], 1n, end), /for expireIn and expireAt of sum/],
    [(op) => op.max(["n"], 1n, end), /for expireIn and expireAt of max/],
    [(op) => op.sum(["n"], 1n, { max: 5n }), /for bounds of sums/],
    [(op) => op.append(["l"], [1]), /for append and prepend/],
    [(op) => op.touch(["a"], end), /for touch and persist/],
    [(op) => op.set([kv.uuidv7()], 1), /for uuidv7\(\)/],
    [
      (op) => ({ commit: () => op.sum(["n"], 1n).commit({ values: true }) }),
      /for commit\(\{ values: true \}\)/,
    ],
  ]) {
    await assert.rejects(add(kv.atomic()).commit(), { code: "UNSUPPORTED", message: words });
  }
  assert.equal(mock.requests.length, before);
  // Its messages have no ids.
  const { id, deduplicated } = await kv.enqueue(1);
  assert.deepEqual([id, deduplicated], [null, false]);
});

describe("requests", () => {
  test("the headers of each version", async () => {
    for (const version of [1, 2, 3]) {
      const mock = await start();
      const url = version === 1 ? `${mock.url}v2` : "/v2";
      mock.metadata = { version, endpoints: [{ url, consistency: "strong" }] };
      const kv = await connect(mock);
      await kv.set(["a"], 1);
      const [exchange, write] = mock.requests.slice(-2);
      assert.equal(exchange.headers.authorization, "Bearer user-token");
      assert.match(exchange.headers["user-agent"], /^openkv\//);
      assert.deepEqual(JSON.parse(exchange.body).supportedVersions.toSorted(), [1, 2, 3]);
      assert.equal(write.headers.authorization, "Bearer data-token");
      assert.equal(write.headers["content-type"], "application/x-protobuf");
      assert.equal(write.headers["x-denokv-version"], version > 1 ? `${version}` : undefined);
      const header = version > 1 ? "x-denokv-database-id" : "x-transaction-domain-id";
      assert.equal(write.headers[header], "01234567-89ab-cdef-0123-456789abcdef");
    }
  });

  test("expiries, versionstamped keys, sums and messages use the protocol's own fields", async () => {
    const mock = await start();
    const kv = await connect(mock);
    const last = () => fields(mock.requests.at(-1).body);
    const before = Date.now();
    await kv.set(["a", kv.commitVersionstamp()], 1, { expireIn: 60_000 });
    const set = fields(last()[2][0]);
    assert.equal(set[3][0], 9n);
    assert.ok(Number(set[4][0]) >= before + 60_000);
    await kv.atomic().sum(["n"], 3n).max(["m"], 4n).min(["k"], 5n).commit();
    const kinds = last()[2].map((bytes) => fields(bytes));
    assert.deepEqual(
      kinds.map((mutation) => mutation[3][0]),
      [3n, 4n, 5n],
    );
    assert.deepEqual(fields(kinds[0][2][0])[2], [2n], "a KvU64");
    await kv.enqueue("message", { delay: 1000, keysIfUndelivered: [["dead"]] });
    const enqueue = fields(last()[3][0]);
    assert.ok(Number(enqueue[2][0]) >= before + 1000);
    assert.equal(enqueue[3].length, 1);
  });

  test("concurrent gets share requests of ten keys, each of one snapshot", async () => {
    const mock = await start();
    const kv = await connect(mock);
    await Promise.all(Array.from({ length: 25 }, (_, i) => kv.get(["k", i])));
    assert.equal(mock.counts.snapshot_read, 3);
    await Promise.all([kv.get(["x"]), kv.getMany(Array.from({ length: 10 }, (_, i) => ["m", i]))]);
    const sizes = mock.requests.slice(-2).map(({ body }) => fields(body)[1].length);
    assert.deepEqual(sizes.toSorted(), [1, 10]);
  });

  test("concurrent reads fail separately", async () => {
    const mock = await start();
    mock.metadata = {
      endpoints: [
        { url: "/strong", consistency: "strong" },
        { url: "/near", consistency: "eventual" },
      ],
    };
    mock.scripts.snapshot_read = ({ url }, response) =>
      url.startsWith("/strong") && reply(response, 400, "text/plain", "not here");
    const kv = await connect(mock, { limits: "wide" });
    const eventual = { consistency: "eventual" };
    const eleven = Array.from({ length: 11 }, (_, i) => ["k", i]);
    const settled = await Promise.allSettled([
      kv.get(["a"], eventual),
      kv.get(["b"]),
      kv.getMany(eleven, eventual),
      kv.list({ prefix: ["c"] }, eventual).next(),
      kv.getMany([["d"], ["e"]]),
    ]);
    const told = settled.map(({ value, reason }) => reason?.code ?? reason?.name ?? value);
    const absent = { key: ["a"], value: null, versionstamp: null };
    assert.deepEqual(told, [
      absent,
      "INVALID",
      "UNSUPPORTED",
      { done: true, value: undefined },
      "INVALID",
    ]);
    assert.match(settled[1].reason.message, /not here/);
    assert.match(settled[2].reason.message, /11 keys/);
  });

  test("eventual reads use the nearest endpoint, all other requests a strong one", async () => {
    const mock = await start();
    mock.metadata = {
      endpoints: [
        { url: "/strong", consistency: "strong" },
        { url: "/near", consistency: "eventual" },
      ],
    };
    const kv = await connect(mock);
    const asked = () => mock.requests.at(-1).url.split("/")[1];
    await kv.set(["a"], 1);
    assert.equal(asked(), "strong");
    assert.equal((await kv.get(["a"], { consistency: "eventual" })).value, 1);
    assert.equal(asked(), "near");
    await kv.get(["a"], { consistency: "strong" });
    assert.equal(asked(), "strong");
    await kv.getMany([["a"], ["b"]], { consistency: "eventual" });
    assert.equal(asked(), "near");
    await kv.list({ prefix: [] }, { consistency: "eventual" }).next();
    assert.equal(asked(), "near");
    await kv.list({ prefix: [] }).next();
    assert.equal(asked(), "strong");
  });

  test("concurrent writes of one key keep their order", async () => {
    const kv = await connect(await start({ h2: true }));
    await Promise.all(Array.from({ length: 20 }, (_, i) => kv.set(["same"], i)));
    assert.equal((await kv.get(["same"])).value, 19);
  });
});

test("a value that only V8 can read does not affect others", async () => {
  const mock = await start();
  const kv = await connect(mock);
  for (const name of ["a", "b", "c"]) await kv.set(["v", name], name);
  for (const [key, entry] of mock.entries) {
    if (key.includes("0262")) entry.data = Buffer.from([0xff, 0x0f, 0x3f]);
  }
  const list = kv.list({ prefix: ["v"] });
  assert.equal((await list.next()).value.value, "a");
  await assert.rejects(list.next(), RangeError);
  assert.equal((await list.next()).value.value, "c");
  await assert.rejects(kv.get(["v", "b"]), RangeError);
});

test("count, where and keysOnly read page by page", async () => {
  const mock = await start({ h2: true });
  const kv = await connect(mock);
  for (let i = 0; i < 13; i++) {
    const op = kv.atomic();
    for (let j = 0; j < 100; j++) op.set(["n", i * 100 + j], { n: i * 100 + j });
    await op.commit();
  }
  const prefix = ["n"];
  assert.equal(await kv.count({ prefix }), 1300);
  assert.equal(await kv.count({ prefix }, { where: { n: { $gte: 700 } } }), 600);
  const all = async (options) => {
    const found = [];
    for await (const { key } of kv.list({ prefix }, options)) found.push(key[1]);
    return found;
  };
  assert.deepEqual(await all({ where: { n: { $in: [3, 999, 1299] } } }), [3, 999, 1299]);
  const last = { where: { n: { $lt: 5 } }, reverse: true, limit: 2 };
  assert.deepEqual(await all(last), [4, 3]);
  const keys = await all({ keysOnly: true });
  assert.deepEqual(
    keys,
    Array.from({ length: 1300 }, (_, i) => i),
  );
});

describe("features without a message in the protocol", () => {
  const refused = {
    ttl: (kv) => kv.ttl(["a"]),
    touch: (kv) => kv.touch(["a"], { expireIn: 1 }),
    checkpoint: (kv) => kv.checkpoint(),
    listenQueue: (kv) => kv.listenQueue(() => {}),
    peek: (kv) => kv.queue("jobs").peek(),
    append: (kv) => kv.atomic().append(["a"], [1]).commit(),
  };
  for (const [name, call] of Object.entries(refused)) {
    test(`${name} is rejected by name`, async () => {
      const kv = await connect(await start());
      await assert.rejects(call(kv), (error) => {
        assert.equal(error.code, "UNSUPPORTED");
        assert.match(error.message, /extension/);
        return true;
      });
    });
  }

  test("more than ten keys of one snapshot", async () => {
    const kv = await connect(await start(), { limits: { rangesMax: 20 } });
    const keys = Array.from({ length: 11 }, (_, i) => [i]);
    await assert.rejects(kv.getMany(keys), { code: "UNSUPPORTED" });
  });
});

test("a closed handle rejects calls, and earlier calls are completed", async () => {
  const mock = await start();
  const kv = await connect(mock);
  const write = kv.set(["a"], 1);
  await kv.close();
  assert.equal((await write).ok, true);
  await assert.rejects(kv.get(["a"]), { name: "BadResource" });
  await assert.rejects(kv.set(["a"], 1), { name: "BadResource" });
  assert.throws(() => kv.watch([["a"]]), { name: "BadResource" });
});
