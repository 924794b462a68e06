// Duty: watches over the HTTP API: events and polls, and what a client that was cut off gets.

import assert from "node:assert/strict";
import { createServer, connect as dial } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { EventSource } from "eventsource";
import { openKv } from "../../../index.mjs";
import { newFolder } from "../../kit/folder.mjs";
import { until } from "../../kit/time.mjs";
import { kill, spawnServer } from "../children.mjs";
import { accessToken, adminToken, connect, folder, start } from "../serving.mjs";
import { TYPED, caller, readToken, serveApi } from "./calling.mjs";

const query = (parameters) => new URLSearchParams(parameters).toString();

/** The events of a stream, as they arrive. */
function follow(url, { token = accessToken, headers = {} } = {}) {
  const source = new EventSource(url, {
    fetch: (address, options) =>
      fetch(address, {
        ...options,
        headers: { ...options.headers, authorization: `Bearer ${token}`, ...headers },
      }),
  });
  const events = [];
  for (const name of ["change", "ping", "gap"]) {
    source.addEventListener(name, ({ data, lastEventId }) =>
      events.push({ name, data: JSON.parse(data), id: lastEventId }),
    );
  }
  after(() => source.close());
  const changes = () => events.filter(({ name }) => name === "change");
  /** The ping of the opened connection has no id; the next event has one, and from there on all is told. */
  const opened = () => until(() => events.some(({ id }) => id !== ""), "the stream has a position");
  return { source, events, changes, opened };
}

/** A server of TCP that passes bytes on, until `cut` ends its connections. */
async function cuttable(url) {
  const { hostname, port } = new URL(url);
  const sockets = new Set();
  const proxy = createServer((client) => {
    const server = dial({ host: hostname, port });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ]) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => sockets.delete(from) && to.destroy());
      from.pipe(to);
    }
  });
  await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));
  const cut = () => sockets.forEach((socket) => socket.destroy());
  after(() => {
    proxy.close();
    cut();
  });
  return { url: `http://127.0.0.1:${proxy.address().port}`, cut };
}

test("a watch of keys sends the present state, then what differs", async () => {
  const { server } = await serveApi();
  const kv = await connect(server);
  await kv.set(["a", 1n], { n: 5n });
  const keys = '[["a",1n],["b"]]';
  const watch = follow(`${server.url}/api/watch?${query({ keys })}`, { token: readToken });
  await until(() => watch.changes().length === 1);
  const [first] = watch.changes();
  const key = ["a", { type: "bigint", value: "1" }];
  assert.deepEqual(
    first.data.map((entry) => [entry.key, entry.value]),
    [
      [key, { n: 5 }],
      [["b"], null],
    ],
  );
  const { versionstamp } = await kv.set(["b"], "new");
  await until(() => watch.changes().length === 2);
  assert.deepEqual(watch.changes()[1].data, [{ key: ["b"], value: "new", versionstamp }]);
  await kv.delete(["a", 1n]);
  await until(() => watch.changes().length === 3);
  assert.deepEqual(watch.changes()[2].data, [{ key, value: null, versionstamp: null }]);
  const last = watch.changes()[2].id;
  watch.source.close();
  // Nothing is told twice, and nothing is missed.
  await kv.delete(["b"]);
  const again = follow(`${server.url}/api/watch?${query({ keys, since: last })}`, {
    headers: { accept: `text/event-stream, ${TYPED}` },
  });
  await until(() => again.changes().length === 1);
  const typed = [{ type: "string", value: "b" }];
  assert.deepEqual(again.changes()[0].data, [{ key: typed, value: null, versionstamp: null }]);
  const silent = follow(`${server.url}/api/watch?${query({ keys, initial: "false" })}`);
  await silent.opened();
  assert.deepEqual(silent.changes(), []);
});

test("a watch of a prefix sends every change, after the present entries if asked", async () => {
  const { server } = await serveApi();
  const kv = await connect(server);
  for (let n = 0; n < 5; n++) await kv.set(["p", n], n);
  const url = `${server.url}/api/watch/prefix?${query({ prefix: "p", initial: "true", limit: "2" })}`;
  const watch = follow(url);
  await until(() => watch.changes().length === 3);
  const present = watch.changes().flatMap(({ data }) => data.map(({ value }) => value));
  assert.deepEqual(present, [0, 1, 2, 3, 4]);
  await kv.set(["other"], 1);
  await kv.atomic().set(["p", 1], "x").delete(["p", 2]).set(["p", 9], "y").commit();
  await until(() => watch.changes().length === 4);
  const { data, id } = watch.changes()[3];
  assert.deepEqual(
    data.map((entry) => [entry.key[1], entry.value]),
    [
      [1, "x"],
      [2, null],
      [9, "y"],
    ],
  );
  assert.equal(data[0].versionstamp, id);
});

test("changes that are no longer known are a gap, and the client goes on behind it", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const { versionstamp } = await kv.set(["p", 1], 1);
  await kv.delete(["p", 1]);
  const watch = follow(
    `${server.url}/api/watch/prefix?${query({ prefix: "p", since: versionstamp })}`,
  );
  await until(() => watch.events.some(({ name }) => name === "gap"));
  const polled = await call(
    "GET",
    `/watch/prefix/poll?${query({ prefix: "p", since: versionstamp })}`,
  );
  assert.equal(polled.body.gap, true);
  await kv.set(["p", 2], 2);
  await until(() => watch.changes().length > 0);
  assert.deepEqual(watch.changes()[0].data[0].key, ["p", 2]);
});

test("a client that is cut off misses nothing and gets nothing twice", async () => {
  const { server } = await serveApi();
  const kv = await connect(server);
  const proxy = await cuttable(server.url);
  const watch = follow(`${proxy.url}/api/watch/prefix?prefix=p`);
  await watch.opened();
  let written = 0;
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 20; n++) await kv.set(["p", written++], "x");
    await until(() => watch.changes().length > round * 2);
    proxy.cut();
    for (let n = 0; n < 20; n++) await kv.set(["p", written++], "x");
    await until(() => watch.changes().flatMap(({ data }) => data).length >= written);
  }
  const seen = watch.changes().flatMap(({ data }) => data.map(({ key }) => key[1]));
  assert.deepEqual(seen, [...Array(written).keys()]);
});

test("after a kill -9 of the server a client misses nothing and gets nothing twice", {
  timeout: 120_000,
}, async () => {
  const path = join(newFolder("http-kill"), "kv.sqlite3");
  let server = await spawnServer({ path, accessToken, listen: "127.0.0.1:0" });
  const options = { path, accessToken, listen: new URL(server.url).host };
  after(() => kill(server));
  const kv = await openKv(server.url, { accessToken, timeout: 30_000 });
  after(() => kv.close());
  const watch = follow(`${server.url}/api/watch/prefix?prefix=p`);
  await watch.opened();
  const acknowledged = [];
  for (let n = 0; n < 90; n++) {
    if (n % 30 === 15) {
      await kill(server);
      server = await spawnServer(options);
    }
    try {
      await kv.set(["p", n], n);
      acknowledged.push(n);
    } catch (error) {
      // Whether such a write happened is not known.
      if (error.code !== "OUTCOME_UNKNOWN") throw error;
    }
  }
  const seen = () => watch.changes().flatMap(({ data }) => data.map(({ key }) => key[1]));
  await until(() => acknowledged.every((n) => seen().includes(n)));
  assert.equal(new Set(seen()).size, seen().length);
});

test("polls answer what differs, or wait for it", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const { versionstamp } = await kv.set(["a"], 1);
  const keys = '[["a"],["b"]]';
  const states = async (parameters) =>
    (await call("GET", `/watch/poll?${query({ keys, ...parameters })}`)).body;
  const first = await states({});
  assert.deepEqual(first.versionstamps, [versionstamp, null]);
  assert.equal(first.entries.length, 2);
  const versionstamps = `${versionstamp},null`;
  assert.deepEqual(await states({ versionstamps }), {
    entries: [],
    versionstamps: [versionstamp, null],
  });
  const waiting = states({ versionstamps, wait: "30000" });
  const second = await kv.set(["b"], 2);
  assert.deepEqual((await waiting).versionstamps, [versionstamp, second.versionstamp]);

  const changes = async (parameters) =>
    (await call("GET", `/watch/prefix/poll?${query(parameters)}`)).body;
  const start = await changes({});
  assert.deepEqual(start, { entries: [], versionstamp: second.versionstamp, gap: false });
  assert.deepEqual(await changes({ since: start.versionstamp }), start);
  const later = changes({ since: start.versionstamp, wait: "30000" });
  const third = await kv.set(["c"], 3);
  const change = { key: ["c"], value: 3, versionstamp: third.versionstamp };
  assert.deepEqual(await later, {
    entries: [change],
    versionstamp: third.versionstamp,
    gap: false,
  });
  // The limit ends an answer, and the next one goes on there.
  const fourth = await kv.delete(["c"]).then(() => kv.set(["d"], 4));
  const some = await changes({ since: start.versionstamp, limit: "1" });
  assert.deepEqual(some.entries, [change]);
  const rest = await changes({ since: some.versionstamp });
  assert.deepEqual(
    rest.entries.map((entry) => [entry.key[0], entry.value]),
    [
      ["c", null],
      ["d", 4],
    ],
  );
  assert.equal(rest.versionstamp, fourth.versionstamp);
});

test("a poll that waits ends with its token, its database and its server", async () => {
  const server = await start({ path: join(folder(), "polls/"), adminToken });
  const admin = caller(`${server.url}/v1/admin/databases`, adminToken);
  /** Polls of a database that wait, and what they are answered. */
  const waiting = async (name, token) => {
    const call = caller(`${server.url}/${name}/api`, token);
    const { body } = await call("PUT", "/keys/a", { body: 1 });
    const wait = "wait=60000";
    const paths = [
      `/watch/poll?${query({ keys: '[["b"]]', versionstamps: "null" })}&${wait}`,
      `/watch/prefix/poll?since=${body.versionstamp}&${wait}`,
      `/queue/poll?${wait}`,
    ];
    const polls = paths.map((path) => call("GET", path));
    const watches = async () =>
      (await admin("GET", "")).body.find((database) => database.name === name).watches;
    await until(async () => (await watches()) === paths.length, "all polls wait");
    return async () => (await Promise.all(polls)).map(({ status }) => status);
  };
  const { token } = (await admin("POST", "", { body: { name: "one" } })).body;
  const other = (await admin("POST", "/one/tokens", { body: { rights: "write" } })).body;
  const revoked = await waiting("one", other.token);
  await admin("DELETE", `/one/tokens/${other.id}`);
  // The message that a worker waits for did not come.
  assert.deepEqual(await revoked(), [401, 401, 200]);
  const dropped = await waiting("one", token);
  await admin("DELETE", "/one");
  assert.deepEqual(await dropped(), [401, 401, 200]);
  const two = (await admin("POST", "", { body: { name: "two" } })).body;
  const closed = await waiting("two", two.token);
  await server.close();
  assert.deepEqual(await closed(), [503, 503, 200]);
});

test("requests that are wrong are refused", async () => {
  const { call } = await serveApi();
  for (const path of [
    "/watch",
    "/watch?keys=[]",
    "/watch?keys=[[]]",
    "/watch?keys=[[1],2]",
    "/watch?keys=a&since=5",
    "/watch/prefix?since=x",
    "/watch/prefix?limit=0",
    "/watch/poll?keys=a&versionstamps=null,null",
    "/watch/poll?keys=a&wait=60001",
    "/watch/prefix/poll?other=1",
  ]) {
    const { status, body } = await call("GET", path);
    assert.deepEqual([status, body.code], [400, "INVALID"], path);
    assert.equal((await call("GET", path, { token: null })).status, 401, path);
  }
});
