// Duty: a tour of the API for programs that have changed the built-in objects of their process. It
// uses as little of these as it can, so that what fails is openkv.

// As they were before the program's changes.
const { setTimeout, clearTimeout, Promise: Native } = globalThis;

/** A hang guard for one part of the tour. */
const PART_MS_MAX = 20_000;

function same(got, expected, what) {
  if (got !== expected) throw new Error(`${what}: ${String(got)}, not ${String(expected)}`);
}

/** Values of every kind, with the text that tells them from others. */
function values({ KvU64 }) {
  const shared = { deep: [1, "two", { three: 3n }] };
  const error = new RangeError("far", { cause: "near" });
  const sparse = ["a", , "c"];
  return [
    [undefined, (v) => String(v), "undefined"],
    [null, (v) => String(v), "null"],
    [-0, (v) => String(Object.is(v, -0)), "true"],
    [12345678901234567890n, (v) => String(v), "12345678901234567890"],
    ["text é 東", (v) => v, "text é 東"],
    [new KvU64(7n), (v) => String(v instanceof KvU64 && v.value), "7"],
    [new Date(5), (v) => String(v.getTime()), "5"],
    [/a.b/gi, (v) => String(v), "/a.b/gi"],
    [new Map([["k", { v: 1 }]]), (v) => String(v.get("k").v), "1"],
    [new Set(["x"]), (v) => String(v.has("x")), "true"],
    [Uint8Array.of(1, 2, 3), (v) => `${v.length} ${v[2]}`, "3 3"],
    [Float64Array.of(0.5), (v) => String(v[0]), "0.5"],
    [new DataView(Uint8Array.of(9).buffer), (v) => String(v.getUint8(0)), "9"],
    [Uint8Array.of(4).buffer, (v) => String(v.byteLength), "1"],
    [error, (v) => `${v.name} ${v.message} ${v.cause}`, "RangeError far near"],
    [sparse, (v) => `${v.length} ${Object.hasOwn(v, 1)} ${v[2]}`, "3 false c"],
    [[1, 2.5, 3, 4, 5, 6, 7, 8, 9], (v) => `${v.length} ${v[8]}`, "9 9"],
    [{ a: shared, b: shared }, (v) => String(v.a === v.b && v.a.deep[2].three), "3"],
    [
      { limit: 2, get: 3, toString: 4, constructor: 5, 7: 6 },
      (v) => Object.entries(v).join(),
      KEYED,
    ],
    [Object("boxed"), (v) => String(typeof v === "object" && v), "boxed"],
    [[{ id: 1, n: "a" }, { id: 2, n: "b" }, { id: 3 }], (v) => v[1].n + v[2].id, "b3"],
  ];
}

const KEYED = "7,6,limit,2,get,3,toString,4,constructor,5";

/** Whether the runtime itself can still make a stream. */
function hasStreams() {
  try {
    new ReadableStream();
    return true;
  } catch {
    return false;
  }
}

/** Runs a part; names it in its error. */
async function part(name, run) {
  let guard;
  const late = new Native((_, reject) => {
    guard = setTimeout(() => reject(new Error("has not ended")), PART_MS_MAX);
  });
  try {
    await Native.race([run(), late]);
  } catch (error) {
    throw new Error(`${name}: ${error?.stack ?? error}`);
  } finally {
    clearTimeout(guard);
  }
}

/** Every capability of a handle, on one kind of database. `at` is where: a path or URL. */
export async function tour(openkv, at, options) {
  const { openKv, sizeOf, KvU64 } = openkv;
  let kv;
  const served = at.startsWith("http");
  await part("openKv", async () => {
    kv = await openKv(at, options);
    if (served) await kv.deleteMany({ prefix: ["tour"] });
  });
  await part("values", async () => {
    let i = 0;
    for (const [value, textOf, text] of values(openkv)) {
      await kv.set(["tour", "value", i], value);
      const entry = await kv.get(["tour", "value", i]);
      same(textOf(entry.value), text, `value ${i}`);
      same(typeof sizeOf(value), "number", "sizeOf");
      i++;
    }
  });
  await part("keys", async () => {
    const key = ["tour", "key", Uint8Array.of(1), 1, 1n, true];
    await kv.set(key, "k");
    same((await kv.get(key)).value, "k", "value");
    await kv.set(["tour", "stamped", kv.commitVersionstamp()], 1);
    await kv.set(["tour", "uuid", kv.uuidv7()], 1);
    same((await kv.list({ prefix: ["tour", "stamped"] }).toArray()).length, 1, "stamped");
    await kv.delete(key);
    same((await kv.get(key)).versionstamp, null, "deleted");
  });
  await part("reads", async () => {
    for (let i = 0; i < 120; i++) await kv.set(["tour", "n", i], { n: i });
    const [first, none] = await kv.getMany([
      ["tour", "n", 1],
      ["tour", "none"],
    ]);
    same(first.value.n, 1, "getMany");
    same(none.value, null, "getMany of nothing");
    const prefix = ["tour", "n"];
    let seen = 0;
    for await (const { value } of kv.list({ prefix })) same(value.n, seen++, "list");
    same(seen, 120, "entries of the list");
    same(
      (await kv.list({ prefix }, { limit: 3, reverse: true }).toArray())[2].value.n,
      117,
      "last",
    );
    const list = kv.list({ prefix }, { where: { n: { $gte: 118 } }, withExpiry: true });
    same((await list.toArray())[1].value.n, 119, "where");
    same((await kv.list({ prefix }, { keysOnly: true }).toArray()).length, 120, "keysOnly");
    same((await kv.list({ prefix: ["tour"] }, { depth: 2 }).toArray()).length > 1, true, "depth");
    same(await kv.count({ prefix }), 120, "count");
    const page = await kv.paginate({ prefix }, { limit: 7 });
    same(page.entries[6].value.n, 6, "paginate");
    const next = await kv.paginate({ prefix }, { limit: 7, cursor: page.cursor });
    same(next.entries[0].value.n, 7, "the next page");
    same((await kv.get(["tour", "n", 1], { consistency: "eventual" })).value.n, 1, "eventual");
    if (!served) same(kv.getSync(["tour", "n", 1]).value.n, 1, "getSync");
    const signal = new AbortController().signal;
    same((await kv.get(["tour", "n", 1], { signal })).value.n, 1, "get with a signal");
    const gets = await Native.all([kv.get(["tour", "n", 1]), kv.get(["tour", "n", 2])]);
    same(gets[1].value.n, 2, "two at once");
  });
  await part("writes", async () => {
    await kv.set(["tour", "ends"], 1, { expireIn: 60_000 });
    same((await kv.ttl(["tour", "ends"])) !== null, true, "ttl");
    same((await kv.ttl(["tour", "n", 1])) === null || true, true, "ttl of one that stays");
    same((await kv.get(["tour", "n", 5], { withExpiry: true })).expireAt, null, "no expiry");
    await kv.touch(["tour", "ends"], { expireIn: 90_000 });
    await kv.persist(["tour", "ends"]);
    const stamp = (await kv.set(["tour", "a"], 1)).versionstamp;
    const refused = await kv
      .atomic()
      .check({ key: ["tour", "a"], versionstamp: null })
      .set(["tour", "a"], 2)
      .commit();
    same(refused.ok, false, "refused");
    same(refused.failed[0], 0, "failed");
    const done = await kv
      .atomic()
      .check({ key: ["tour", "a"], versionstamp: stamp })
      .mutate({ type: "set", key: ["tour", "b"], value: 1 }, { type: "delete", key: ["tour", "c"] })
      .sum(["tour", "sum"], 2n)
      .min(["tour", "min"], 2n)
      .max(["tour", "max"], 2n)
      .append(["tour", "list"], [1, 2])
      .prepend(["tour", "list"], [0])
      .mutate({ type: "sum", key: ["tour", "u"], value: new KvU64(1n) })
      .commit({ values: true });
    same(done.ok, true, "commit");
    same((await kv.get(["tour", "list"])).value.length, 3, "append");
    same(await kv.deleteMany({ prefix: ["tour", "n"] }, { limit: 5 }).then((r) => r.count), 5, "5");
    const { count } = await kv.deleteMany([
      ["tour", "n", 10],
      ["tour", "none"],
    ]);
    same(count, 1, "deleteMany of keys");
  });
  await part("transaction", async () => {
    const { value } = await kv.transaction(async (tx) => {
      const entry = await tx.get(["tour", "a"]);
      tx.set(["tour", "a"], entry.value + 1).sum(["tour", "sum"], 1n);
      const entries = await tx.list({ prefix: ["tour", "n"] }, { limit: 3 }).toArray();
      return entries.length + (await tx.count({ prefix: ["tour", "value"] }));
    });
    same(value > 3, true, "result");
    same((await kv.get(["tour", "a"])).value, 2, "written");
  });
  await part("watch", async () => {
    if (!hasStreams()) return;
    const reader = kv
      .watch([
        ["tour", "w"],
        ["tour", "a"],
      ])
      .getReader();
    same((await reader.read()).value[1].value, 2, "first state");
    await kv.set(["tour", "w"], "news");
    same((await reader.read()).value[0].value, "news", "second state");
    await reader.cancel();
    const feed = kv.watch({ prefix: ["tour", "feed"] }).getReader();
    const read = feed.read();
    const loud = (async () => {
      for (let i = 0; i < 100; i++) {
        await kv.set(["tour", "feed", i], i);
        const told = await Native.race([read, new Native((go) => setTimeout(go, 20, null))]);
        if (told !== null) return;
      }
    })();
    same(typeof (await read).value.changes[0].value, "number", "feed");
    await loud;
    await feed.cancel();
  });
  await part("queues", async () => {
    const name = `tour-${served}`;
    const queue = kv.queue(name);
    await queue.enqueue({ job: 1 }, { priority: 2, deduplicationKey: "once" });
    same((await queue.peek()).messages[0].value.job, 1, "peek");
    const message = await queue.receive({ wait: 5000 });
    same(message.value.job, 1, "receive");
    same(await message.ack(), true, "ack");
    const stop = new AbortController();
    let got;
    const heard = new Native((resolve) => (got = resolve));
    const listening = queue.listen((value) => got(value), { signal: stop.signal });
    await kv.atomic().enqueue("told", { queue: name }).commit();
    same(await heard, "told", "listen");
    stop.abort();
    await listening;
    await queue.enqueue("dies", { backoffSchedule: [] });
    await (await queue.receive({ wait: 5000 })).nack({ error: new Error("no use") });
    for (let i = 0; ; i++) {
      const { messages } = await queue.dead.list();
      if (messages.length > 0) break;
      if (i > 200) throw new Error("no dead letter");
      await new Native((go) => setTimeout(go, 10));
    }
    same(await queue.dead.purge(), 1, "purge");
    same(typeof (await queue.stats()).dead, "number", "stats");
    let told;
    const hears = new Native((resolve) => (told = resolve));
    const hearing = kv.listenQueue((value) => told(value));
    await kv.enqueue("plain", { delay: 0, keysIfUndelivered: [["tour", "dead"]] });
    same(await hears, "plain", "listenQueue");
    hearing.catch?.(() => {});
  });
  await part("search", async () => {
    const index = await kv.createIndex({ prefix: ["tour", "doc"], fields: ["text"] });
    await kv.set(["tour", "doc", 1], { text: "some words" });
    await index.ready();
    same((await kv.search(["tour", "doc"], "words", { limit: 2 })).entries.length, 1, "hits");
    same((await kv.listIndexes()).length, 1, "indexes");
    same(await kv.dropIndex(["tour", "doc"]), true, "dropped");
  });
  await part("maintenance", async () => {
    same(typeof (await kv.stats({ entries: true })).entries, "number", "stats");
    same(typeof (await kv.metrics()).operations.get.count, "number", "metrics");
    same(typeof (await kv.metrics({ format: "prometheus" })), "string", "prometheus");
    if (at.startsWith("/") || at.startsWith("\\") || (at[1] === ":" && at !== ":memory:")) {
      await kv.backup(`${at}-copy`);
      same((await kv.check()).ok, true, "check");
      await kv.vacuum();
      await kv.checkpoint();
    }
  });
  await part("errors", async () => {
    const rejected = async (call) => {
      try {
        await call();
      } catch (error) {
        return error;
      }
      throw new Error("was not refused");
    };
    same((await rejected(() => kv.set([], 1))).message.length > 0, true, "empty key");
    same((await rejected(() => kv.set(["a"], () => {}))).name, "TypeError", "function");
    same((await rejected(() => kv.set(["a"], 1, { ttl: 1 }))).name, "TypeError", "ttl");
    same((await rejected(() => kv.get(["a"], { consistency: "no" }))).name, "TypeError", "enum");
    same((await rejected(() => openKv("htp://x"))).code, "UNSUPPORTED", "scheme");
  });
  await part("close", async () => {
    await kv.close();
    try {
      await kv.get(["a"]);
    } catch (error) {
      same(error.name, "BadResource", "closed");
      return;
    }
    throw new Error("a closed handle answers");
  });
}
