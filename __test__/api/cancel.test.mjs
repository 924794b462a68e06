// Duty: a call whose signal aborts while it is under way ends its work in the addon, and, over a URL,
// at the server. The proof is the counter of the method: what has run to its end is no error.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep, until } from "../kit/time.mjs";
import { freshPath, onEachAndServed, onEveryKind } from "./databases.mjs";

const PREFIX = { prefix: ["numbers"] };
const ENTRIES = 16;
/** Each condition walks through all of a value, so that one call takes many seconds. */
const SLOW = { $or: Array(400).fill({ $contains: 8 }) };
/** The same for a search whose hits are held against it. */
const SLOW_HITS = { numbers: SLOW };
const TEXTS = { prefix: ["texts"] };
/** Far less than one of these calls takes. */
const UNDER_WAY_MS_MAX = 1_000;

/** Each long call, by the name of its counter. */
const CALLS = {
  count: (kv, options) => kv.count(PREFIX, { where: SLOW, ...options }),
  deleteMany: (kv, options) => kv.deleteMany(PREFIX, { where: SLOW, ...options }),
  list: (kv, options) => kv.list(PREFIX, { where: SLOW, ...options }).next(),
};

const SEARCH = {
  search: (kv, options) => kv.search(TEXTS.prefix, "word", { where: SLOW_HITS, ...options }),
};

/** Calls that come after all writes before them. */
const WAITING = {
  receive: (kv, options) => kv.queue("mail").receive(options),
  backup: (kv, options) => kv.backup(`${freshPath()}-copy`, options),
  stats: (kv, options) => kv.queue("mail").stats(options),
};

async function counted(kv, name) {
  const { operations } = await kv.metrics();
  const { count, errors } = operations[name];
  return { count, errors };
}

/** Aborts each call once it is under way. */
async function abortEach(kv, calls) {
  const reason = new Error("given up");
  for (const [name, call] of Object.entries(calls)) {
    const before = await counted(kv, name);
    let ms = 25;
    // On a busy machine a call that is aborted soon has not begun, and nothing counts it.
    const isCounted = async () => {
      const controller = new AbortController();
      const called = call(kv, { signal: controller.signal });
      ms = Math.min(2 * ms, UNDER_WAY_MS_MAX);
      await sleep(ms);
      controller.abort(reason);
      await assert.rejects(called, (error) => error === reason, name);
      const now = await counted(kv, name);
      return now.count > before.count && now;
    };
    const { count, errors } = await until(isCounted, `${name} is counted`);
    assert.equal(count - before.count, errors - before.errors, `${name} ran to its end`);
  }
}

async function filled(fresh) {
  const kv = await fresh({ limits: "wide" });
  const numbers = Array(60_000).fill(7);
  for (let i = 0; i < ENTRIES; i++) await kv.set([...PREFIX.prefix, i], numbers);
  return kv;
}

onEveryKind("calls that are aborted", (fresh) => {
  // A receive and a backup rejected only when the writes before them had ended.
  test("they wait no more for the writes before them", { timeout: 120_000 }, async () => {
    const kv = await filled(fresh);
    const reason = new Error("given up");
    const stop = new AbortController();
    let isOver = false;
    const deleted = kv.deleteMany(PREFIX, { where: SLOW, signal: stop.signal });
    const before = deleted.catch((error) => error).finally(() => (isOver = true));
    for (const [name, call] of Object.entries(WAITING)) {
      const controller = new AbortController();
      const called = call(kv, { signal: controller.signal });
      controller.abort(reason);
      await assert.rejects(called, (error) => error === reason, name);
      assert.equal(isOver, false, name);
    }
    stop.abort(reason);
    assert.equal(await before, reason);
  });

  test("their work ends", { timeout: 120_000 }, async () => {
    const kv = await filled(fresh);
    await abortEach(kv, CALLS);
    assert.equal(await kv.count(PREFIX), ENTRIES);
  });
});

onEachAndServed("searches that are aborted", (fresh) => {
  test("their work ends", { timeout: 120_000 }, async () => {
    const kv = await fresh({ limits: "wide" });
    const numbers = Array(60_000).fill(7);
    const index = await kv.createIndex({ ...TEXTS, fields: ["name"] });
    for (let i = 0; i < ENTRIES; i++) await kv.set(["texts", i], { name: "word", numbers });
    await index.ready();
    await abortEach(kv, SEARCH);
  });
});
