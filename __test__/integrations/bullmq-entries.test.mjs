// Duty: the entries that a commit of openkv/bullmq sees equal a plain map of them, over many commits, with writes that
// are taken back.

import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { Entries } from "../../dist/drivers/bullmq-entries.js";
import { openKv } from "../../index.mjs";

const STEPS = 4000;
/** More than one read of a range answers. */
const ORDERS = 800;
/** Parts of each kind that an order may have, in their order. */
const SECOND = [new Uint8Array([7]), new Uint8Array([7, 1]), "", "a", "\uffff", "\u{1f600}", -1, 5];

/** The order at a place in the whole order. */
const orderOf = (place) => [Math.floor(place / SECOND.length), SECOND[place % SECOND.length]];

test("entries equal a plain map after random writes, undone writes, reads and commits", async () => {
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
    const undo = entries.put(orderOf(place), value);
    return () => {
      undo();
      if (before === undefined) model.delete(place);
      else model.set(place, before);
    };
  };
  const equalsFirst = async (limit) => {
    const places = [...model.keys()].toSorted((a, b) => a - b).slice(0, limit);
    const expected = places.map((place) => ({ order: orderOf(place), value: model.get(place) }));
    assert.deepEqual(await entries.list(limit), expected);
  };
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
    else {
      const atomic = kv.atomic();
      for (const { order, value } of entries.written.values()) {
        if (value === undefined) atomic.delete(entries.keyOf(order));
        else atomic.set(entries.keyOf(order), value);
      }
      await atomic.commit();
      entries.settle(isKept);
      assert.equal(entries.written.size, 0);
    }
  }
  await equalsFirst(Infinity);
  await kv.close();
});
