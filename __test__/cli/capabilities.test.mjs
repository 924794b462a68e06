// Duty: the commands on counting, filters, feeds, queues, search and the file.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv, serve } from "../../index.mjs";
import { startServer } from "../kit/server.mjs";
import { ended, folderOfTests, linesOf, openkv, start } from "./running.mjs";

const path = folderOfTests();
const PEOPLE = [
  [["people", "ada"], { name: "Ada", age: 36, about: "first programs" }],
  [["people", "bob"], { name: "Bob", age: 17, about: "programs of others" }],
  [["people", "bob", "cat"], { name: "Tom", age: 3, about: "mice" }],
  [["other"], 1],
];

/** A database with a few people, and the command on it. */
async function people(name) {
  const db = path(name);
  const kv = await openKv(db);
  for (const [key, value] of PEOPLE) await kv.set(key, value);
  await kv.close();
  return { db, database: ["-d", db], on: (...args) => openkv("-d", db, ...args) };
}

/** The same behind a URL. */
async function served(name) {
  const { db } = await people(name);
  const accessToken = "the-token-of-these-tests";
  const server = await startServer({ path: db, accessToken });
  const database = ["-d", server.url, "--token", accessToken];
  return { db, database, on: (...args) => openkv(...database, ...args) };
}

/** On a file, and behind a URL: the same assertions. */
function onBoth(name, run) {
  test(name, () => run(people));
  test(`${name}, behind a URL`, () => run((file) => served(`served-${file}`)));
}

const parsed = ({ out }) =>
  out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

onBoth("entries are counted and listed by conditions and depth", async (people) => {
  const { on } = await people("reads.db");
  const [all, some, adults, shallow, bad] = await Promise.all([
    on("count"),
    on("count", "people", "--where", "{ age: { $lt: 18 } }", "--json"),
    on("list", "people", "--where", '{ age: { $gte: 18 }, name: "Ada" }'),
    on("list", "people", "--depth", "1", "--keys-only"),
    on("count", "--where", "[1]"),
  ]);
  assert.deepEqual(all, { code: 0, out: "4\n", err: "" });
  assert.deepEqual(parsed(some), [{ count: 2 }]);
  assert.match(adults.out, /^\["people", "ada"\] @\w{20}\n {2}\{ name: "Ada".*\n$/);
  assert.deepEqual(shallow.out.match(/^\[.*\]/gm), ['["people", "ada"]', '["people", "bob"]']);
  assert.equal(bad.code, 2);
  assert.match(bad.err, /conditions must be an object/);
});

onBoth("many are deleted only when that was meant", async (people) => {
  const { on } = await people("delete.db");
  const asked = await on("delete", "--prefix", "people");
  assert.equal(asked.code, 2);
  assert.match(asked.err, /Delete 3 entries: give --yes/);
  const young = await on(
    "delete",
    "--prefix",
    "people",
    "--where",
    "{ age: { $lt: 18 } }",
    "--yes",
    "--json",
  );
  assert.equal(parsed(young)[0].count, 2);
  const kept = await on("delete", "other", "--where", "{ $eq: 2 }", "--json");
  assert.deepEqual(parsed(kept), [{ count: 0, versionstamp: null }]);
  assert.equal((await on("count")).out, "2\n");
  const wrong = [
    ["delete"],
    ["delete", "a", "--prefix", "b"],
    ["delete", "a", "--atomic"],
    ["watch"],
  ];
  for (const { code } of await Promise.all(wrong.map((args) => on(...args)))) assert.equal(code, 2);
});

test("watch of a prefix tells every change, and goes on where it was", async () => {
  const { db } = await people("feed.db");
  const kv = await openKv(db);
  // The feed is kept from its first follower on.
  const follower = kv.watch({ prefix: ["people"] }).getReader();
  const told = follower.read();
  const { versionstamp: since } = await kv.set(["people", "new"], 1);
  await told;
  const later = start(["-d", db, "--json", "watch", "--prefix", "people", "--since", since]);
  const lines = linesOf(later, 2);
  await kv.delete(["people", "ada"]);
  await kv.set(["people", "eve"], 5n);
  const [gone, set] = (await lines).map((line) => JSON.parse(line));
  assert.deepEqual([gone.type, gone.key[1].value], ["delete", "ada"]);
  assert.deepEqual([set.type, set.value], ["set", { type: "bigint", value: "5" }]);
  assert.equal(await ended(later, "SIGINT"), 0);
  await follower.cancel();
  await kv.close();
});

onBoth("messages go into named queues and come out", async (people) => {
  const { on, database } = await people("queue.db");
  assert.equal(
    (await on("enqueue", "{ n: 1 }", "--queue", "mail", "--backoff", "0", "--key", "k")).code,
    0,
  );
  await on("enqueue", "{ n: 2 }", "--queue", "mail", "--key", "k");
  await on("enqueue", "'first'", "--queue", "mail", "--priority", "9");
  assert.equal(parsed(await on("queue", "stats", "mail", "--json"))[0].pending, 2);
  assert.match((await on("queue", "list")).out, /^mail {2}pending 2 /);
  const looked = parsed(await on("queue", "peek", "mail", "--json"));
  assert.deepEqual(
    looked.map(({ state, attempts, lockedUntil }) => [state, attempts, lockedUntil]),
    [
      ["pending", 0, null],
      ["pending", 0, null],
    ],
  );
  const one = await on("queue", "peek", "mail", "--limit", "1");
  assert.equal(one.out.match(/state pending/g).length, 1, one.out);
  assert.equal((await on("queue", "peek", "mail", "--state", "delayed")).out, "");
  assert.equal((await on("queue", "peek", "mail", "--state", "gone")).code, 2);
  const schedule = ["queue", "schedule", "mail", "daily", "{ n: 1 }"];
  const cron = ["--cron", "0 8 * * MON", "--time-zone", "Asia/Tokyo"];
  assert.deepEqual(parsed(await on(...schedule, ...cron, "--json")), [{ changed: true }]);
  assert.equal((await on(...schedule, ...cron)).err, "unchanged\n");
  assert.equal((await on(...schedule)).code, 2, "neither --cron nor --every");
  const [daily] = parsed(await on("queue", "schedules", "mail", "--json"));
  const value = { type: "object", value: { n: { type: "number", value: 1 } } };
  assert.deepEqual([daily.name, daily.timeZone, daily.value], ["daily", "Asia/Tokyo", value]);
  assert.equal((await on("queue", "unschedule", "mail", "daily")).err, "removed\n");
  assert.equal((await on("queue", "unschedule", "mail", "daily")).code, 1);
  await on("enqueue", "'unwanted'", "--queue", "mail", "--delay", "60000");
  const [{ id }] = parsed(await on("queue", "peek", "mail", "--state", "delayed", "--json"));
  assert.deepEqual(parsed(await on("queue", "delete", "mail", id, "--json")), [
    { deleted: 1, kept: [] },
  ]);
  assert.deepEqual(await on("queue", "delete", "mail", id), {
    code: 1,
    out: "",
    err: `deleted 0\nopenkv: not there, or with a consumer: ${id}\n`,
  });
  const first = await on("queue", "receive", "mail");
  assert.match(first.out, /^id \d+ {2}attempts 1 .*\n {2}"first"\n$/);
  await on("queue", "receive", "mail", "--nack");
  const [second] = parsed(
    await on("queue", "receive", "mail", "--wait", "5000", "--nack", "--error", "no", "--json"),
  );
  assert.deepEqual([second.attempts, second.value.value.n.value], [2, 1]);
  assert.deepEqual(await on("queue", "receive", "mail"), {
    code: 1,
    out: "",
    err: "openkv: no message is due\n",
  });
  const [dead] = parsed(await on("dead", "list", "mail", "--json"));
  assert.deepEqual([dead.id, dead.attempts, dead.error.message], [second.id, 2, "no"]);
  assert.match((await on("dead", "get", "mail", dead.id)).out, /error \w+: no\n {2}\{ n: 1 \}/);
  assert.equal((await on("dead", "requeue", "mail", dead.id)).code, 0);
  assert.equal((await on("dead", "requeue", "mail", dead.id)).code, 1);
  const listener = start([...database, "queue", "listen", "mail", "--json"]);
  const [line] = await linesOf(listener, 1);
  assert.equal(JSON.parse(line).id, dead.id);
  assert.equal(await ended(listener, "SIGINT"), 0);
  const [purge, purged, every, wrong] = await Promise.all([
    on("dead", "purge", "mail"),
    on("dead", "purge", "mail", "--yes", "--json"),
    on("dead", "delete", "mail", "--all", "--yes", "--json"),
    on("enqueue", "1", "--priority", "3"),
  ]);
  assert.deepEqual([purge.code, parsed(purged)[0].purged, wrong.code], [2, 0, 2]);
  assert.deepEqual(parsed(every), [{ delete: 0, absent: [] }]);
});

onBoth("an index is made, searched, listed and dropped", async (people) => {
  const { on } = await people("search.db");
  const made = await on(
    "index",
    "create",
    "people",
    "name",
    "about",
    "--tokenize",
    "porter",
    "--json",
  );
  assert.equal(parsed(made)[0].state, "ready");
  const [found, shown, young, wrong, none, nothing, listed] = await Promise.all([
    on("search", "people", "program", "--json"),
    on("search", "people", "about:program", "--highlight", "--limit", "1"),
    on("search", "people", "program", "--where", "{ age: { $lt: 18 } }", "--json"),
    on("search", "people", '"open'),
    on("search", "people", "program", "--limit", "0"),
    on("list", "--limit", "0"),
    on("index", "list", "--json"),
  ]);
  assert.deepEqual(
    parsed(found)
      .map(({ key }) => key[1].value)
      .sort(),
    ["ada", "bob"],
  );
  assert.match(shown.out, /about: .*<b>programs<\/b>/);
  assert.match(shown.err, /--cursor \S+ goes on/);
  assert.deepEqual(
    parsed(young).map(({ key }) => key[1].value),
    ["bob"],
  );
  assert.deepEqual([wrong.code, none.code, nothing.code], [1, 2, 2]);
  assert.deepEqual(parsed(listed)[0].fields, ["name", "about"]);
  assert.equal((await on("index", "drop", "people")).code, 0);
  assert.equal((await on("index", "drop", "people")).code, 1);
});

onBoth("stats and vacuum tell of the file", async (people) => {
  const { on } = await people("file.db");
  const [stats] = parsed(await on("stats", "--entries", "--json"));
  assert.equal(stats.entries, 4);
  assert.match((await on("stats")).out, /^databaseBytes +\d+\n/);
  assert.equal(stats.vacuumInSteps, true);
  const [vacuum] = parsed(await on("vacuum", "--json"));
  assert.ok(vacuum.afterBytes <= vacuum.beforeBytes);
});

test("what ends keeps its end through export, import and copy", async () => {
  const db = path("ends.db");
  await openkv("-d", db, "set", "k", "1", "--expire-in", "3600000");
  const piped = await openkv("-d", db, "export", "-");
  await openkv("-d", path("ends2.db"), "import", "-", { input: piped.out });
  assert.equal((await openkv("copy", db, path("ends3.db"))).code, 0);
  // From openkv's own server too, and to it.
  const accessToken = "token-of-the-copies";
  const served = async (name) => serve({ path: path(name), accessToken, listen: "127.0.0.1:0" });
  const [from, to] = [await served("ends.db"), await served("ends4.db")];
  const copied = await openkv("--token", accessToken, "copy", from.url, path("ends5.db"));
  assert.equal(copied.code, 0);
  assert.ok(!copied.err.includes("does not tell"), copied.err);
  assert.equal((await openkv("--token", accessToken, "copy", from.url, to.url)).code, 0);
  await Promise.all([from.close(), to.close()]);
  const ends = [];
  for (const name of ["ends.db", "ends2.db", "ends3.db", "ends4.db", "ends5.db"]) {
    const kv = await openKv(path(name));
    ends.push((await kv.ttl(["k"]))?.expireAt.getTime());
    await kv.close();
  }
  for (const end of ends) assert.ok(Math.abs(end - ends[0]) < 1000, `${ends}`);
});

test("a copy and an import can be files of Deno's kind", async () => {
  const { db, on } = await people("kind.db");
  assert.equal((await openkv("copy", db, path("deno.db"), "--encoding", "v8")).code, 0);
  const piped = await on("export", "-");
  const into = path("deno2.db");
  await openkv("-d", into, "import", "-", "--encoding", "v8", { input: piped.out });
  for (const file of [path("deno.db"), into]) {
    // Only a file that has this encoding is opened by that name.
    const kv = await openKv(file, { encoding: "v8" });
    assert.deepEqual((await kv.get(PEOPLE[0][0])).value, PEOPLE[0][1]);
    await kv.close();
  }
  assert.equal((await openkv("copy", db, path("bad.db"), "--encoding", "json")).code, 2);
});

onBoth("value indexes are created, order lists, and explain them", async (people) => {
  const { on } = await people("value-index.db");
  const made = await on("index", "create", "people", "age", "--type", "value", "--name", "age");
  assert.equal(made.code, 0, made.err);
  const listed = parsed(await on("index", "list", "--json"));
  assert.deepEqual([listed[0].type, listed[0].on], ["value", [{ path: "age", order: "asc" }]]);
  const where = ["list", "people", "--where", "{ age: { $gte: 18 } }", "--explain"];
  const [explained] = parsed(await on(...where, "--json"));
  assert.deepEqual([explained.method, explained.branches[0].index], ["index", "age"]);
  assert.match((await on(...where)).out, /^method +index\nreads +age \(age: from 18, /);
  const none = await on("list", "people", "--order-by", "name");
  assert.match(none.err, /'openkv index create PREFIX FIELD --type value'/);
  const order = ["list", "people", "--json", "--order-by", '{ age: "desc" }'];
  const ordered = parsed(await on(...order));
  assert.equal(ordered.length, 3);
  const [counted] = parsed(await on("count", "people", "--explain", "--json"));
  assert.deepEqual([counted.method, counted.returned], ["scan", 3]);
  const wrong = await on("index", "create", "people", "age", "--unique");
  assert.deepEqual([wrong.code, /need --type value/.test(wrong.err)], [2, true]);
  assert.equal((await on("index", "drop", "--name", "age")).code, 0);
});
