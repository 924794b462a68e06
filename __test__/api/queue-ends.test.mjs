// Duty: the ends of consumers: whatever ends a listener or a wait for a message, its promise resolves
// when the handlers have ended and all that they settled is stored. The end of a listener and of a handle
// resolved before that: right after it, handled messages counted as processing, and came again when the
// process died.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import process from "node:process";
import { describe, test } from "node:test";
import { sharedPostgres } from "../kit/postgres.mjs";
import { argumentsFor } from "../kit/program.mjs";
import { startServer } from "../kit/server.mjs";
import { HANG_MS, guard, sleep, until } from "../kit/time.mjs";
import { freshPath, open } from "./databases.mjs";

const NONE = { pending: 0, delayed: 0, processing: 0, dead: 0, total: 0, paused: false };
const HOUR_MS = 3_600_000;
const index = new URL("../../index.mjs", import.meta.url).href;

/** Where a database is, and how it is opened there: two handles on it are two consumers. */
const PLACES = {
  "a file": async () => [freshPath()],
  "a URL": async () => {
    const accessToken = "the-token-of-these-tests";
    const { url } = await startServer({ path: freshPath(), accessToken });
    return [url, { accessToken }];
  },
  PostgreSQL: async () => [(await sharedPostgres()).url({})],
  "PostgreSQL with a leader": async () => [(await sharedPostgres()).url({ more: "&lead=ends" })],
};

for (const [name, place] of Object.entries(PLACES)) {
  describe(`the end of consumers on ${name}`, () => suite(place));
}

function suite(place) {
  /** Two handles on a new database. */
  async function two() {
    const where = await place();
    return [await open(...where), await open(...where)];
  }

  test("after a signal, all that the handlers settled is stored", async () => {
    const [kv, other] = await two();
    const queue = kv.queue("mail");
    for (let round = 0; round < 10; round++) {
      const stop = new AbortController();
      let left = 4;
      const listening = queue.listen(() => --left || stop.abort(), { signal: stop.signal });
      await Promise.all([1, 2, 3, 4].map((n) => queue.enqueue(n)));
      await listening;
      assert.deepEqual(await queue.stats(), NONE, `round ${round}`);
      assert.deepEqual(await other.queue("mail").stats(), NONE, `round ${round}`);
    }
  });

  test("after a signal in onError, the message is a dead letter", async () => {
    const [kv] = await two();
    const queue = kv.queue("fails");
    for (let round = 1; round <= 5; round++) {
      const stop = new AbortController();
      const handler = () => Promise.reject(new Error("expected by the test"));
      const options = { signal: stop.signal, onError: () => stop.abort() };
      const listening = queue.listen(handler, options);
      await queue.enqueue("m", { backoffSchedule: [] });
      await listening;
      assert.equal((await queue.dead.list()).messages.length, round);
    }
  });

  for (const [how, end] of Object.entries({
    "close()": (kv) => kv.close(),
    "its asynchronous disposal": (kv) =>
      kv[Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")](),
  })) {
    test(`${how} waits for handlers and for what they settle; watches end before`, async () => {
      const [kv, other] = await two();
      const order = [];
      let running = 0;
      const handler = async () => {
        running++;
        await Promise.all([denos, watched]);
        // An end that waits for no handler would come first.
        await sleep(50);
        order.push("handler");
      };
      const listening = kv.queue("mail").listen(handler, { lockDuration: HOUR_MS });
      const denos = kv.listenQueue(handler);
      const watch = kv.watch([["a"]]).getReader();
      await watch.read();
      const watched = watch.read().then(() => order.push("watch"));
      await Promise.all([kv.queue("mail").enqueue("m"), kv.enqueue("m")]);
      await until(() => running === 2, "a message for each handler");
      const closing = end(kv).then(() => order.push("close"));
      await guard(denos, HANG_MS, "Deno's listener ends while handlers run");
      assert.deepEqual(
        order.filter((what) => what !== "watch"),
        [],
        "as in Deno",
      );
      await guard(watched, HANG_MS, "the watch ends while handlers run");
      await Promise.all([closing, listening]);
      assert.equal(order[0], "watch");
      assert.deepEqual(order.slice(1).sort(), ["close", "handler", "handler"]);
      assert.equal(order[3], "close");
      assert.deepEqual(await other.queue("mail").stats(), NONE);
    });
  }

  test("close() puts back what no handler and no receiver has got", async () => {
    const where = await place();
    const other = await open(...where);
    for (let round = 0; round < 8; round++) {
      const kv = await open(...where);
      const queue = kv.queue(`round ${round}`);
      const options = { lockDuration: HOUR_MS };
      const received = queue.receive({ wait: 10_000, ...options }).catch(({ code }) => code);
      const listening = round % 2 === 0 ? null : queue.listen(() => {}, options);
      await sleep(round);
      const enqueued = [1, 2, 3, 4].map((n) => other.queue(queue.name).enqueue(n));
      await sleep(round);
      await Promise.all([...enqueued, kv.close(), listening]);
      const got = await received;
      // A server puts back what was on its way when it sees the end of the request; the lock lasts an hour.
      const locked = got === "CLOSED" ? 0 : 1;
      const isBack = async () => (await other.queue(queue.name).stats()).processing === locked;
      await until(isBack, `round ${round}, received ${got}: the others are back`);
    }
  });

  test("a handler that does not end is waited for as long as `drain` says", async () => {
    const [kv, other] = await two();
    const never = new Promise(() => {});
    const stop = new AbortController();
    const queue = kv.queue("stuck");
    const options = { lockDuration: 300, drain: 50 };
    const byClose = queue.listen(() => never, options);
    const bySignal = queue.listen(() => never, { ...options, signal: stop.signal });
    await Promise.all([queue.enqueue(1), queue.enqueue(2)]);
    await until(async () => (await queue.stats()).processing === 2, "both handlers");
    stop.abort();
    await guard(bySignal, 10_000, "the end by the signal");
    await guard(kv.close(), 10_000, "the end by close()");
    await byClose;
    const again = [];
    for (const _ of [1, 2]) {
      const message = await other.queue("stuck").receive({ wait: 10_000 });
      again.push(message.value);
      await message.ack();
    }
    assert.deepEqual(again.sort(), [1, 2]);
  });

  test("a handler may wait for close(), which waits for it as long as `drain` says", async () => {
    const [kv] = await two();
    const queue = kv.queue("closes");
    const listening = queue.listen(() => kv.close(), { drain: 50 });
    await queue.enqueue("m");
    await guard(listening, 10_000, "the end of the listener");
  });

  test("writes of another handle do not delay the end", async () => {
    const [kv, other] = await two();
    let ended = false;
    const writing = (async () => {
      for (let n = 0; !ended; n += 50) {
        await Promise.all(Array.from({ length: 50 }, (_, i) => other.set(["n", n + i], n)));
      }
    })();
    const queue = kv.queue("busy");
    let handled;
    const done = new Promise((resolve) => (handled = resolve));
    const listening = queue.listen(() => handled());
    await queue.enqueue("m");
    await done;
    try {
      await guard(Promise.all([kv.close(), listening]), 10_000, "the end beside writes");
    } finally {
      ended = true;
      await writing;
    }
    assert.deepEqual(await other.queue("busy").stats(), NONE);
  });

  test("what a listener has handled does not come again after a kill", async () => {
    for (const end of ["stop.abort(); await listening", "await kv.close()"]) {
      const where = await place();
      const source = `
        import { openKv } from ${JSON.stringify(index)};
        const kv = await openKv(...${JSON.stringify(where)});
        const queue = kv.queue("kill");
        const stop = new AbortController();
        let all, left = 6;
        const handled = new Promise((resolve) => (all = resolve));
        const handler = async () => { if (--left === 0) all(); };
        const listening = queue.listen(handler, { signal: stop.signal, concurrency: 2 });
        for (let n = 0; n < 6; n++) await queue.enqueue(n);
        await handled;
        ${end};
        process.kill(process.pid, "SIGKILL");`;
      const child = spawn(process.execPath, argumentsFor(source), { stdio: "inherit" });
      const [, signal] = await new Promise((resolve) =>
        child.on("close", (...how) => resolve(how)),
      );
      assert.equal(signal, "SIGKILL");
      const kv = await open(...where);
      assert.deepEqual(await kv.queue("kill").stats(), NONE, end);
    }
  });
}
