// The crash test's verifier finds each kind of loss: without this, a verifier that finds nothing
// would look like a database that loses nothing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Model, text } from "./crash/model.mjs";
import { chainKey, doneKey, fill, markKey, plan, slotKey } from "./crash/plan.mjs";
import { Random } from "./crash/random.mjs";
import { inOrder, verify } from "./crash/verify.mjs";

const SEED = "verifier";
const LANE = "w0.0";
const KILLED = 2_000_000;

/** The first step of the lane, from `from` on, that `wanted` wants. */
function stepWhere(wanted, from = 0) {
  for (let n = from; ; n++) if (wanted(plan(SEED, LANE, n))) return n;
}

const stamp = (n) => n.toString(16).padStart(16, "0") + "0000";

/** An acknowledged history of all kinds of steps: lines, as writers say them. */
function history() {
  const lines = [];
  const chains = new Map();
  for (let n = 0; n < 60; n++) {
    const step = plan(SEED, LANE, n);
    const read = chains.get(step.chain) ?? { stamp: "-", count: 0 };
    const advance = step.kind === "advance" ? ` ${read.stamp} ${read.count}` : "";
    lines.push(`S ${LANE} ${n} ${1000 + n}${advance}`);
    lines.push(`A ${LANE} ${n} ${1000 + n} ${step.kind === "delete" ? "-" : stamp(n + 1)}`);
    if (step.kind === "advance")
      chains.set(step.chain, { stamp: stamp(n + 1), count: read.count + 1 });
  }
  return lines;
}

function hearing(lines) {
  const model = new Model(SEED);
  for (const line of lines) model.hear(line);
  return model;
}

/** What a perfect database would hold after `lines`. */
function perfect(lines) {
  const model = hearing(lines);
  model.settle(new Map(), KILLED);
  assert.deepEqual(model.faults, []);
  const entries = [...model.entries].filter(([, { goneFrom }]) => !(goneFrom <= Date.now()));
  return new Map(
    entries.map(([name, { key, stamp, value }]) => [name, { key, value, versionstamp: stamp }]),
  );
}

/** A database that holds `held`. */
function holding(held) {
  const missing = (key) => ({ key, value: null, versionstamp: null });
  const get = async (key) => held.get(text(key)) ?? missing(key);
  return {
    async *list() {
      yield* [...held.values()].sort((a, b) => (inOrder(a.key, b.key) ? -1 : 1));
    },
    get,
    getMany: (keys) => Promise.all(keys.map(get)),
    set: async () => ({ ok: true, versionstamp: "ff".repeat(10) }),
  };
}

/** The faults that the verifier finds when a perfect database is damaged by `damage`. */
async function faultsOf(damage, lines = history()) {
  const held = perfect(history());
  damage(held);
  const model = hearing(lines);
  await verify(holding(held), model, KILLED, new Random(SEED));
  return model.faults.join("\n");
}

const anySlot = (held) => [...held.keys()].find((name) => name.startsWith('"slot"'));

test("nothing is found when nothing is wrong", async () => {
  assert.equal(await faultsOf(() => {}), "");
});

test("a lost entry", async () => {
  assert.match(await faultsOf((held) => held.delete(anySlot(held))), /is lost/);
});

test("an entry that should not be there", async () => {
  const key = ["stray"];
  const damage = (held) => held.set(text(key), { key, value: 1, versionstamp: stamp(1) });
  assert.match(await faultsOf(damage), /"stray" .* should not be there/);
});

test("a value with one wrong byte", async () => {
  const damage = (held) => {
    const entry = [...held.values()].find(({ value }) => value instanceof Uint8Array);
    entry.value = entry.value.slice();
    entry.value[0] ^= 1;
  };
  assert.match(await faultsOf(damage), /has a wrong value/);
});

test("an entry with another versionstamp than was acknowledged", async () => {
  const damage = (held) => (held.get(anySlot(held)).versionstamp = stamp(999));
  assert.match(await faultsOf(damage), /expected 0/);
});

test("an expired entry that is still seen", async () => {
  const n = stepWhere(
    ({ sets, kind }) => kind === "atomic" && sets.some(({ expireIn }) => expireIn < 100),
    100,
  );
  const { slot, size } = plan(SEED, LANE, n).sets.find(({ expireIn }) => expireIn < 100);
  const lines = [...history(), `S ${LANE} ${n} 5000`, `A ${LANE} ${n} 5000 ${stamp(n)}`];
  const key = slotKey(LANE, slot);
  const value = fill(SEED, LANE, n, slot, size);
  const damage = (held) => held.set(text(key), { key, value, versionstamp: stamp(n) });
  assert.match(await faultsOf(damage, lines), /after it expired/);
});

test("a commit in flight of which only the mark has landed", async () => {
  const n = stepWhere(
    ({ sets, kind }) => kind === "atomic" && sets.some(({ expireIn }) => !expireIn),
    100,
  );
  const damage = (held) => {
    const key = markKey(LANE);
    held.set(text(key), { key, value: { n, fill: null }, versionstamp: stamp(n) });
  };
  assert.match(await faultsOf(damage, [...history(), `S ${LANE} ${n} 5000`]), /is lost|expected 0/);
});

test("a commit in flight of which everything but the mark has landed", async () => {
  const wanted = ({ sets, kind }) =>
    kind === "atomic" && sets.some(({ expireIn }) => expireIn === undefined);
  const n = stepWhere(wanted, 100);
  const damage = (held) => {
    const { slot, size } = plan(SEED, LANE, n).sets.find(({ expireIn }) => expireIn === undefined);
    const key = slotKey(LANE, slot);
    held.set(text(key), { key, value: fill(SEED, LANE, n, slot, size), versionstamp: stamp(n) });
  };
  assert.match(
    await faultsOf(damage, [...history(), `S ${LANE} ${n} 5000`]),
    /should not be there|expected 0/,
  );
});

test("an update that another one overwrote unseen", async () => {
  const n = stepWhere(({ kind }) => kind === "advance", 100);
  const lines = [...history(), `S ${LANE} ${n} 5000 - 0`, `A ${LANE} ${n} 5000 ${stamp(n)}`];
  const { chain } = plan(SEED, LANE, n);
  const damage = (held) => {
    held.set(text(chainKey(chain)), { key: chainKey(chain), value: 1, versionstamp: stamp(n) });
    held.set(text(markKey(LANE)), {
      key: markKey(LANE),
      value: { n, fill: null },
      versionstamp: stamp(n),
    });
  };
  assert.match(await faultsOf(damage, lines), /lost update/);
});

test("versionstamps that repeat, or run against time", async () => {
  const repeated = history().map((line) => line.replace(stamp(9), stamp(8)));
  assert.match(await faultsOf(() => {}, repeated), /two commits got the versionstamp/);
  const [a, b] = [
    stepWhere(({ kind }) => kind === "enqueue"),
    stepWhere(({ kind }) => kind === "enqueue", 20),
  ];
  const swap = (line) =>
    line
      .replace(stamp(a + 1), "?")
      .replace(stamp(b + 1), stamp(a + 1))
      .replace("?", stamp(b + 1));
  assert.match(
    await faultsOf(() => {}, history().map(swap)),
    /smaller versionstamp than its successor/,
  );
});

test("a message handled that was never enqueued, and a handled one without its mark", async () => {
  const key = doneKey("w0.0/12345");
  const damage = (held) => held.set(text(key), { key, value: true, versionstamp: stamp(61) });
  assert.match(await faultsOf(damage), /handled that nobody enqueued/);
  assert.match(await faultsOf(() => {}, [...history(), "H w0.0/7 x"]), /its mark is gone/);
});

test("a rejected operation", async () => {
  assert.match(
    await faultsOf(() => {}, [...history(), "X w0.0 60 Error: no"]),
    /an operation was rejected/,
  );
});
