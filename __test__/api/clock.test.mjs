// Duty: `expireIn` and `delay` count from the clock of the database. The clock of the calling
// machine, which is an hour off here, does not matter. Over a URL it does.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { argumentsFor } from "../kit/program.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { HANG_MS } from "../kit/time.mjs";
import { startServer } from "../kit/server.mjs";
import { BEHIND_MS_MAX, freshPath, open } from "./databases.mjs";

const HOUR_MS = 3_600_000;
const EXPIRE_IN_MS = 60_000;

const INDEX = new URL("../../index.mjs", import.meta.url).href;

/** Writes in every way, and prints the expiries in ms. */
const WRITES = `
  const kv = await openKv(url, options);
  const expireIn = ${EXPIRE_IN_MS};
  await kv.set(["touched"], 1);
  await kv.set(["touched in an operation"], 1);
  await kv.set(["set"], 1, { expireIn });
  await kv.touch(["touched"], { expireIn });
  await kv.set(["blob"], new Blob(["contents"]), { expireIn });
  await kv.atomic()
    .set(["set in an operation"], 1, { expireIn })
    .touch(["touched in an operation"], { expireIn })
    .sum(["sum"], 1, { expireIn })
    .max(["max"], 1, { expireIn })
    .append(["append"], [1], { expireIn })
    .mutate({ type: "set", key: ["mutate"], value: 1, expireIn })
    .commit();
  const { value: own } = await kv.transaction(async (tx) => {
    tx.set(["transaction"], 1, { expireIn });
    for await (const own of tx.list({ prefix: [] }, { withExpiry: true })) {
      if (own.key[0] === "transaction") return own;
    }
  });
  await kv.set(["gone"], 1, { expireIn: 0 });
  const ends = { "read by the transaction": own.expireAt.getTime() };
  for await (const { key, expireAt } of kv.list({ prefix: [] }, { withExpiry: true })) {
    ends[key[0]] = expireAt.getTime();
  }
  const kept = (await kv.get(["set"])).value;
  await kv.enqueue("for Deno's queue");
  await kv.queue("q").enqueue("at once");
  await kv.queue("q").enqueue("soon", { delay: 100 });
  await kv.atomic().enqueue("in an operation", { queue: "q" }).commit();
  await kv.queue("later").enqueue("in a minute", { delay: ${EXPIRE_IN_MS} });
  const { delayed } = await kv.queue("later").stats();
  await kv.close();
  console.log(JSON.stringify({ ends, kept, delayed }));
`;

/** Runs {@link WRITES} on a machine whose clock is wrong by `aheadMs`. */
async function writeWithClock(aheadMs, url, options) {
  const program = `
    const right = Date.now;
    // Bound, so that it is not taken for a fake timer, in whose place the real clock counts.
    Date.now = (() => right() + ${aheadMs}).bind();
    const { openKv } = await import(${JSON.stringify(INDEX)});
    const [url, options] = ${JSON.stringify([url, options])};
    ${WRITES}`;
  const run = promisify(execFile)(process.execPath, argumentsFor(program), { timeout: HANG_MS });
  return JSON.parse((await run).stdout);
}

const EXPIRING = [
  "append",
  "blob",
  "max",
  "mutate",
  "read by the transaction",
  "set",
  "set in an operation",
  "sum",
  "touched",
  "touched in an operation",
  "transaction",
];

/** Every entry expires between `from` and `to`; the one that expires at once is not listed. */
function assertEnds(ends, from, to) {
  assert.deepEqual(Object.keys(ends).toSorted(), EXPIRING);
  for (const [name, ms] of Object.entries(ends)) {
    assert.ok(ms >= from && ms <= to, `${name}: ${ms - from} ms after the earliest expiry`);
  }
}

const MODES = { directly: "", "as the leader": "&lead=clock" };
const CLOCKS = { ahead: HOUR_MS, behind: -HOUR_MS };

describe("on PostgreSQL its clock counts", () => {
  for (const [mode, more] of Object.entries(MODES)) {
    for (const [clock, aheadMs] of Object.entries(CLOCKS)) {
      test(`${mode}, with a clock that is an hour ${clock}`, async () => {
        const server = await sharedPostgres();
        const time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8";
        const url = server.url();
        const before = Number(await server.sql(time));
        const { ends, kept, delayed } = await writeWithClock(aheadMs, url + more, {});
        const after = Number(await server.sql(time));
        assertEnds(ends, before + EXPIRE_IN_MS - BEHIND_MS_MAX, after + EXPIRE_IN_MS);
        assert.equal(kept, 1);
        assert.equal(delayed, 1);

        const kv = await open(url);
        const queue = kv.queue("q");
        const received = [];
        while (received.length < 3) {
          const message = await queue.receive({ wait: HANG_MS });
          assert.ok(message !== null, `only ${received}`);
          received.push(message.value);
          await message.ack();
        }
        assert.deepEqual(received.toSorted(), ["at once", "in an operation", "soon"]);
        assert.equal((await kv.queue("later").stats()).delayed, 1);
        const heard = await new Promise((resolve) => {
          kv.listenQueue(resolve).catch(resolve);
        });
        assert.equal(heard, "for Deno's queue");
      });
    }
  }
});

test("over a URL the clock of the client counts", async () => {
  const accessToken = "the-token-of-these-tests";
  const server = await startServer({ path: freshPath(), accessToken });
  const before = Date.now();
  // For this client the entry with `expireIn: 0` has expired; for the server it does in an hour.
  const {
    ends: { gone, ...ends },
  } = await writeWithClock(HOUR_MS, server.url, { accessToken });
  const after = Date.now();
  assert.ok(gone >= before + HOUR_MS && gone <= after + HOUR_MS);
  assertEnds(ends, before + HOUR_MS + EXPIRE_IN_MS, after + HOUR_MS + EXPIRE_IN_MS);
});
