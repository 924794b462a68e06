// Duty: 100 clients of both doors, /api and /keyval/api, on one database, under exact checkers: every acknowledged transfer
// is stored once and moved its amount, counters are the sum of what was acknowledged, appended items are in the order of
// each client, and every message is handled by one client at a time and once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { caller, serveApi } from "../http/calling.mjs";

const CLIENTS = 100;
const STEPS = 8;
const ACCOUNTS = 6;
const BALANCE = 1000;

/** Random numbers from a seed, so that a failure can be repeated. */
function random(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** The same requests over either door. */
const DOORS = {
  api: (call) => ({
    get: async (...key) =>
      (await call("GET", `/keys?key=${encodeURIComponent(JSON.stringify(key))}`)).body,
    atomic: async (checks, mutations) =>
      (await call("POST", "/atomic", { body: { checks, mutations } })).body,
    take: async () => (await call("GET", "/queue/poll?lockDuration=60000")).body.message,
    done: async ({ id, lock }) =>
      (await call("POST", "/queue/ack", { body: { id, lock } })).body.ok,
    enqueue: async (value) => (await call("POST", "/queue/enqueue", { body: { value } })).body.ok,
  }),
  keyval: (call) => ({
    get: async (...key) => (await call("GET", `/keys/${key.join("/")}`)).body,
    atomic: async (checks, mutations) =>
      (await call("POST", "/atomic", { body: { checks, mutations } })).body,
    take: async () => (await call("GET", "/queue/poll")).body.message,
    done: async ({ id }) => (await call("POST", "/queue/ack", { body: { id } })).body.ok,
    enqueue: async (value) => (await call("POST", "/queue/enqueue", { body: { value } })).body.ok,
  }),
};

class Checkers {
  transfers = new Map();
  sum = 0;
  appended = new Map();
  enqueued = new Set();
  handling = new Set();
  handled = new Set();

  took(value) {
    assert.ok(!this.handling.has(value), `${value} is with two clients`);
    assert.ok(!this.handled.has(value), `${value} was handled before`);
    this.handling.add(value);
  }
}

async function client(id, door, checkers, below) {
  for (let step = 0; step < STEPS; step++) {
    const of = `${id}.${step}`;
    switch (below(4)) {
      case 0: {
        const [from, to, amount] = [below(ACCOUNTS), below(ACCOUNTS), 1 + below(9)];
        if (from === to) break;
        const [a, b] = [await door.get("account", from), await door.get("account", to)];
        const checks = [a, b].map(({ key, versionstamp }) => ({ key, versionstamp }));
        const { ok } = await door.atomic(checks, [
          { type: "set", key: ["account", from], value: a.value - amount },
          { type: "set", key: ["account", to], value: b.value + amount },
          { type: "set", key: ["transfer", of], value: { from, to, amount } },
        ]);
        if (ok) checkers.transfers.set(of, { from, to, amount });
        break;
      }
      case 1: {
        const value = 1 + below(5);
        const mutations = [
          { type: "sum", key: ["sum"], value },
          { type: "max", key: ["max"], value: id * STEPS + step },
        ];
        assert.equal((await door.atomic([], mutations)).ok, true);
        checkers.sum += value;
        break;
      }
      case 2: {
        const { ok } = await door.atomic([], [{ type: "append", key: ["list"], value: [of] }]);
        assert.equal(ok, true);
        checkers.appended.set(id, [...(checkers.appended.get(id) ?? []), of]);
        break;
      }
      default: {
        assert.equal(await door.enqueue(of), true);
        checkers.enqueued.add(of);
        const message = await door.take();
        if (message === null) break;
        checkers.took(message.value);
        assert.equal(await door.done(message), true);
        checkers.handling.delete(message.value);
        checkers.handled.add(message.value);
      }
    }
  }
}

test("100 random clients of both doors keep every promise", { timeout: 60_000 }, async () => {
  const { server } = await serveApi();
  const doors = {
    api: DOORS.api(caller(`${server.url}/api`)),
    keyval: DOORS.keyval(caller(`${server.url}/keyval/api`)),
  };
  const accounts = Array.from({ length: ACCOUNTS }, (_, n) => n);
  const initial = accounts.map((n) => ({ type: "set", key: ["account", n], value: BALANCE }));
  await doors.api.atomic([], initial);
  const checkers = new Checkers();
  const clients = Array.from({ length: CLIENTS }, (_, id) =>
    client(id, id % 2 === 0 ? doors.api : doors.keyval, checkers, random(id + 1)),
  );
  await Promise.all(clients);
  for (let message; (message = await doors.keyval.take()) !== null; ) {
    checkers.took(message.value);
    await doors.keyval.done(message);
    checkers.handling.delete(message.value);
    checkers.handled.add(message.value);
  }
  assert.deepEqual([...checkers.handled].sort(), [...checkers.enqueued].sort());
  const call = caller(`${server.url}/keyval/api`);
  const stored = (await call("GET", "/keys?prefix=transfer&limit=1000")).body;
  assert.deepEqual(
    new Map(stored.map(({ key, value }) => [key[1], value])),
    new Map([...checkers.transfers].sort()),
  );
  const balances = accounts.map(() => BALANCE);
  for (const { from, to, amount } of checkers.transfers.values()) {
    balances[from] -= amount;
    balances[to] += amount;
  }
  const found = await Promise.all(accounts.map((n) => doors.api.get("account", n)));
  assert.deepEqual(
    found.map(({ value }) => value),
    balances,
  );
  assert.equal((await doors.api.get("sum")).value, checkers.sum);
  const list = (await doors.keyval.get("list")).value;
  assert.equal(new Set(list).size, list.length);
  for (const [id, items] of checkers.appended) {
    assert.deepEqual(
      list.filter((item) => item.startsWith(`${id}.`)),
      items,
      `client ${id}`,
    );
  }
  const count = [...checkers.appended.values()].flat().length;
  assert.equal(list.length, count);
  assert.ok(
    checkers.transfers.size > 0 && checkers.handled.size > 0 && count > 0 && checkers.sum > 0,
  );
});

test("a message with a timeout and a trace is one of its value to clients of KeyVal", async () => {
  const { server, call } = await serveApi();
  const keyval = caller(`${server.url}/keyval/api`);
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const value = { to: "Ada" };
  const body = { value, timeout: 5000, backoffSchedule: [] };
  await call("POST", "/queue/enqueue", { body, headers: { traceparent } });
  const { message } = (await keyval("GET", "/queue/poll")).body;
  assert.deepEqual(message, { id: message.id, value, attempts: 1 });
  await keyval("POST", "/queue/nack", { body: { id: message.id } });
  const dead = (await keyval("GET", "/queue/dlq")).body;
  assert.deepEqual(dead[0].value, value);
});
