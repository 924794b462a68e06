// Duty: the streams of /keyval/api with a real EventSource: states of keys, changes below prefixes, messages; a stream that
// begins again where it broke off.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EventSource } from "eventsource";
import { caller, serveApi } from "../http/calling.mjs";
import { accessToken } from "../serving.mjs";

const base = (server) => `${server.url}/keyval/api`;

/** A stream, whose events of one name are taken one by one. */
function open(url, name) {
  const source = new EventSource(url, {
    fetch: (input, init) =>
      fetch(input, {
        ...init,
        headers: { ...init.headers, authorization: `Bearer ${accessToken}` },
      }),
  });
  const events = [];
  let wake = () => {};
  source.addEventListener(name, ({ data, lastEventId }) => {
    events.push({ data: JSON.parse(data), id: lastEventId });
    wake();
  });
  const next = async () => {
    while (events.length === 0) await new Promise((resolve) => (wake = resolve));
    return events.shift();
  };
  return { source, next };
}

const values = (entries) => entries.map(({ key, value }) => [key.join("/"), value]);

test("a watch of keys begins with the present entries and tells each new state", async () => {
  const { server } = await serveApi();
  const call = caller(base(server));
  await call("PUT", "/keys/users/1", { body: { name: "Ada" } });
  const { source, next } = open(`${base(server)}/watch?keys=users/1,none`, "change");
  const { data, id } = await next();
  assert.deepEqual(values(data), [
    ["users/1", { name: "Ada" }],
    ["none", null],
  ]);
  assert.equal(data[1].versionstamp, null);
  assert.notEqual(id, "");
  await call("PUT", "/keys/none", { body: 1 });
  assert.deepEqual(values((await next()).data), [["none", 1]]);
  await call("DELETE", "/keys/users");
  const [gone] = (await next()).data;
  assert.deepEqual([gone.key, gone.value, gone.versionstamp], [["users", 1], null, null]);
  source.close();
});

test("a watch of keys without the present entries tells the first change", async () => {
  const { server } = await serveApi();
  const call = caller(base(server));
  await call("PUT", "/keys/a", { body: 1 });
  const ready = open(`${base(server)}/watch?keys=a&initial=false`, "ping");
  const changes = [];
  ready.source.addEventListener("change", ({ data }) => changes.push(...values(JSON.parse(data))));
  // The ping of the opened connection has no id yet: the ping with one says which state is not told.
  while ((await ready.next()).id === "");
  await call("PUT", "/keys/a", { body: 2 });
  while (changes.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(changes, [["a", 2]]);
  ready.source.close();
});

test("changes below prefixes come by commit, without those of other keys and of expiries", async () => {
  const { server, call: api } = await serveApi();
  const call = caller(base(server));
  for (const path of ["a/1", "a/2", "b", "b/1", "c/1"])
    await call("PUT", `/keys/${path}`, { body: JSON.stringify(path) });
  const below = open(`${base(server)}/watch/prefix?prefix=a&limit=1`, "change");
  assert.deepEqual(values((await below.next()).data), [["a/1", "a/1"]]);
  assert.deepEqual(values((await below.next()).data), [["a/2", "a/2"]]);
  const both = open(`${base(server)}/watch/prefix?prefixes=c,b,b/1`, "change");
  const first = [...(await both.next()).data, ...(await both.next()).data];
  assert.deepEqual(values(first), [
    ["b", "b"],
    ["b/1", "b/1"],
    ["c/1", "c/1"],
  ]);
  const mutations = [
    { type: "set", key: ["b"], value: 2 },
    { type: "set", key: ["a", 3], value: 3, expiresIn: 60_000 },
    { type: "delete", key: ["c", 1] },
    { type: "set", key: ["bb"], value: 4 },
  ];
  const { versionstamp } = (await call("POST", "/atomic", { body: { mutations } })).body;
  const { data, id } = await both.next();
  assert.deepEqual(values(data), [
    ["b", 2],
    ["c/1", null],
  ]);
  assert.equal(id, versionstamp);
  const [expiring] = (await below.next()).data;
  assert.deepEqual(expiring, { key: ["a", 3], value: 3, versionstamp });
  assert.equal((await api("GET", "/keys/count")).body.count, 6);
  below.source.close();
  both.source.close();
});

test("a stream that broke off gets what it has missed, each change once", async () => {
  const { server } = await serveApi();
  const call = caller(base(server));
  const headers = { authorization: `Bearer ${accessToken}` };
  const first = open(`${base(server)}/watch/prefix?prefix=p`, "change");
  await first.next();
  await call("PUT", "/keys/p/1", { body: 1 });
  const { id } = await first.next();
  first.source.close();
  await call("PUT", "/keys/p/2", { body: 2 });
  await call("DELETE", "/keys/p/1");
  const end = new AbortController();
  const again = await fetch(`${base(server)}/watch/prefix?prefix=p`, {
    headers: { ...headers, "last-event-id": id },
    signal: end.signal,
  });
  let text = "";
  for await (const piece of again.body) {
    text += Buffer.from(piece);
    if (text.includes('["p",1]') && text.includes('["p",2]')) break;
  }
  end.abort();
  const told = [...text.matchAll(/data: (\[.*\])/g)].flatMap(([, data]) =>
    values(JSON.parse(data)),
  );
  assert.deepEqual(told, [
    ["p/2", 2],
    ["p/1", null],
  ]);
});

test("messages come as events, and an acknowledgement by their id makes room", async () => {
  const { server } = await serveApi();
  const call = caller(base(server));
  const { source, next } = open(`${base(server)}/queue/listen`, "message");
  for (let n = 0; n < 12; n++) await call("POST", "/queue/enqueue", { body: { value: { n } } });
  const seen = [];
  while (seen.length < 12) {
    const { data, id } = await next();
    assert.equal(id, data.id);
    assert.equal(data.attempts, 1);
    seen.push(data.value.n);
    assert.deepEqual((await call("POST", "/queue/ack", { body: { id } })).body, { ok: true });
  }
  assert.deepEqual(
    [...seen].sort((a, b) => a - b),
    Array.from({ length: 12 }, (_, n) => n),
  );
  assert.equal((await call("GET", "/queue/stats")).body.total, 0);
  source.close();
});
