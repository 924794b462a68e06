// Duty: keep a copy of some entries elsewhere, and go on where it stopped after a restart. The feed
// tells every change once and in order; the versionstamp of the last batch says where to go on.
//
//   node examples/change-feed.mjs [database file]

import { KvFeedGapError, openKv } from "openkv";

const path = process.argv[2] ?? ":memory:";
const kv = await openKv(path);

/** The copy: a cache, a search engine, another database. It keeps how far it has come. */
const copy = { prices: new Map(), since: undefined };

/** Everything from the beginning, as one state. */
async function load() {
  copy.prices.clear();
  copy.since = "0".repeat(20);
  for await (const { key, value, versionstamp } of kv.list({ prefix: ["price"] })) {
    copy.prices.set(key[1], value);
    if (versionstamp > copy.since) copy.since = versionstamp;
  }
}

/** Follows until so many changes have come. */
async function follow(count) {
  let seen = 0;
  for await (const batch of kv.watch({ prefix: ["price"] }, { since: copy.since })) {
    for (const { type, key, value } of batch.changes) {
      if (type === "set") copy.prices.set(key[1], value);
      else copy.prices.delete(key[1]);
    }
    // Batch by batch: after a crash in between, its changes are yielded again and have no effect.
    copy.since = batch.versionstamp;
    seen += batch.changes.length;
    if (seen >= count) break;
  }
}

await kv.set(["price", "tea"], 3);
await kv.set(["price", "milk"], 1);
await load();
console.log(`Loaded ${copy.prices.size} prices.`);

const following = follow(3);
await kv.set(["price", "coffee"], 5);
await kv.atomic().set(["price", "tea"], 4).delete(["price", "milk"]).commit();
await following;
console.log(`Followed: ${[...copy.prices].map((pair) => pair.join(" ")).join(", ")}.`);

// Changes happen while no reader follows.
await kv.set(["price", "tea"], 5);
await kv.delete(["price", "coffee"]);
await follow(2);
console.log(`Caught up: ${[...copy.prices].map((pair) => pair.join(" ")).join(", ")}.`);

copy.since = "f".repeat(16) + "0000";
await follow(1).catch(async (error) => {
  if (!(error instanceof KvFeedGapError)) throw error;
  await load();
  console.log(`Not ours: loaded again, ${copy.prices.size} price.`);
});
kv.close();
