// Duty: the entries that a commit of openkv/bullmq sees equal a plain map of them, over many commits, with writes that
// are taken back, and before and after the commit of those that were sent; and what is kept of them for the next commit.

import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { Batch } from "../../dist/drivers/bullmq-batch.js";
import { Entries } from "../../dist/drivers/bullmq-entries.js";
import { openKv } from "../../index.mjs";

const STEPS = 4000;
/** More than one read of a range answers. */
const ORDERS = 800;
/** Parts of each kind that an order may have, in their order. */
const SECOND = [new Uint8Array([7]), new Uint8Array([7, 1]), "", "a", "\uffff", "\u{1f600}", -1, 5];

/** The order at a place in the whole order. */
const orderOf = (place) => [Math.floor(place / SECOND.length), SECOND[place % SECOND.length]];

test("entries equal a plain map after random writes, undone writes, reads, and commits under way", async () => {
  const kv = await openKv(":memory:");
  const entries = new Entries(kv, ["below"]);
  await kv.set(["below!", 1], "of another key");
  const model = new Map();
  const isKept = (value) => value % 2 === 0;
  /** Writes to the entries and the map; answers what takes it back in both. */
  const put = (place, value) => {
    const before = model.get(place);
    if (value === undefined) model.delete(place);
    else model.set(place, value);
    const overwritten = entries.put(orderOf(place), value);
    return () => {
      entries.undo(overwritten);
      if (before === undefined) model.delete(place);
      else model.set(place, before);
    };
  };
  const equalsFirst = async (limit) => {
    const places = [...model.keys()].toSorted((a, b) => a - b).slice(0, limit);
    const expected = places.map((place) => ({ order: orderOf(place), value: model.get(place) }));
    assert.deepEqual(await entries.list(limit), expected);
  };
  /** The commit of the writes that were sent. */
  let sent = null;
  for (let step = 1; step <= STEPS; step++) {
    const place = randomInt(ORDERS);
    const kind = randomInt(100);
    if (kind < 55) put(place, step);
    else if (kind < 75) put(place, undefined);
    else if (kind < 80) {
      const undos = [put(place, step), put(randomInt(ORDERS), undefined), put(place, undefined)];
      await equalsFirst(3);
      for (const undo of undos.toReversed()) undo();
    } else if (kind < 88) assert.equal(await entries.get(orderOf(place)), model.get(place));
    else if (kind < 97) await equalsFirst([1, 7, 90, 300][randomInt(4)]);
    else if (kind < 98) await equalsFirst(Infinity);
    else if (sent === null) {
      sent = kv.atomic();
      entries.send(sent);
    } else if (kind < 99) await sent.commit();
    else {
      // To commit it again changes nothing.
      await sent.commit();
      entries.settle(isKept);
      sent = null;
    }
  }
  await equalsFirst(Infinity);
  await kv.close();
});

test("a batch keeps the sets and the active jobs of a queue, until another process changes it", async () => {
  const kv = await openKv(":memory:");
  const [states, others] = [new Map(), new Map()];
  const commit = async (of, change) => {
    const batch = new Batch(kv, ["base"], of);
    batch.begin();
    const view = await batch.queue("q");
    await change(view);
    assert.ok(await batch.commit());
    batch.settle();
  };
  const active = { id: "a", data: "{}", state: "active", order: [1] };
  await commit(states, (view) => {
    view.set(active, "job", "a");
    view.set({ ...active, id: "b", state: "wait" }, "job", "b");
    view.setIn(["set", "wait"], [0, 1], "b");
    for (let n = 0; n < 100; n++) view.setIn(["log", `job ${n}`], [0], "a row");
  });
  assert.deepEqual([...states.get("q").entries.keys()].length, 2);
  // A change beside the head is what no process does: it shows what is read again.
  await kv.set(["base", "q", "job", "a"], { ...active, data: "changed" });
  await kv.set(["base", "q", "job", "b"], { ...active, data: "changed" });
  await commit(states, async (view) => {
    assert.equal((await view.job("a")).data, "{}");
    assert.equal((await view.job("b")).data, "changed");
  });
  await commit(others, (view) => view.setIn(["set", "wait"], [0, 2], "c"));
  await commit(states, async (view) => {
    assert.equal((await view.job("a")).data, "changed");
    assert.deepEqual(
      (await view.ids("wait", 2)).map(({ value }) => value),
      ["b", "c"],
    );
  });
  await kv.close();
});
