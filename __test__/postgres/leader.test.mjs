// Duty: processes that lead a database: one is killed or stopped, and its network loses messages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres, startPostgres } from "../kit/postgres.mjs";
import { sleep } from "../kit/time.mjs";
import { startLoad } from "./load.mjs";
import { startProxy } from "./proxy.mjs";

const skip = process.platform === "win32" && "Windows cannot stop and continue processes";

const COMMITS = 300;
/** More than a lease lasts after its last renewal. */
const BEYOND_LEASE_MS = 4500;
/** The forms of a commit, with their statements. */
const FORMS = {
  "of one statement": { statements: 1, complete: (commit) => commit },
  // BEGIN, the fence, the entries, their expiries, the message, the log, COMMIT.
  "with a message": { statements: 7, complete: (commit) => commit.enqueue("mail") },
};
/** A part of the statement that is a commit by itself. */
const COMMITS_AT_ONCE = "WITH fence AS";
/** A part of the statement that raises the epoch. */
const RAISES = "SET epoch = epoch + 1";

const lead = (url, name) => `${url}&lead=${name}`;

test("another process leads after the leader was killed", async () => {
  const url = (await sharedPostgres()).url();
  const load = await startLoad(lead(url, "one"), { processes: 1 });
  await load.progress(COMMITS);
  const second = await load.add(lead(url, "two"), 8);
  load.workers[0].kill();
  await load.workers[0].ended;
  await load.progress(COMMITS, load.workers.indexOf(second));
  await load.stop({ killed: [load.workers[0]] });
  await load.check(url);
});

test("a leader that stops beyond its lease is refused, and its commits are not lost", {
  skip,
}, async (t) => {
  const server = await sharedPostgres();
  const url = server.url();
  const proxy = await startProxy(server);
  t.after(() => proxy.close());
  const far = url.replace(`:${server.port}`, `:${proxy.port}`);
  const load = await startLoad(lead(far, "one"), { processes: 1 });
  await load.progress(COMMITS);
  const second = await load.add(lead(url, "two"), 8);
  const [first] = load.workers;
  // It stops while a commit is on its way, which reaches the server once another process leads.
  await new Promise((resolve) => {
    proxy.watch = ({ query }) => {
      if (!query?.startsWith(COMMITS_AT_ONCE)) return undefined;
      resolve();
      return "hold";
    };
  });
  first.pause();
  proxy.watch = () => undefined;
  await load.progress(COMMITS, load.workers.indexOf(second));
  await sleep(BEYOND_LEASE_MS);
  proxy.release();
  first.resume();
  await load.progress(COMMITS, load.workers.indexOf(second));
  await load.stop();
  assert.ok([...load.refused].some((commit) => commit.startsWith("0/")));
  await load.check(url);
});

test("a direct process takes over when no leader is left", async () => {
  const url = (await sharedPostgres()).url();
  const load = await startLoad(lead(url, "one"), { processes: 1 });
  const direct = await load.add(url, 8);
  await load.progress(COMMITS);
  load.workers[0].kill();
  await load.workers[0].ended;
  await load.progress(COMMITS, load.workers.indexOf(direct));
  await load.stop({ killed: [load.workers[0]] });
  await load.check(url);
});

test("writes of a leader wait for a server that starts, as busyTimeout says", async (t) => {
  const server = await startPostgres();
  t.after(() => server.close());
  const kv = await openKv(lead(server.url(), "one"), { busyTimeout: 60_000 });
  await kv.set(["led"], 1);
  await server.stop();
  // Each is decided over what the server has.
  const writes = [
    kv.set(["a"], 1),
    kv.atomic().sum(["total"], 1n).commit(),
    kv
      .atomic()
      .check({ key: ["b"], versionstamp: null })
      .set(["b"], 1)
      .commit(),
  ];
  const settled = Promise.allSettled(writes);
  await server.start();
  for (const { reason, value } of await settled) assert.equal(value?.ok, true, `${reason}`);
  assert.equal((await kv.get(["total"])).value.value, 1n);
  await kv.close();
});

/** What the network does with a message of a commit. */
const FAULTS = {
  "a request is lost": { from: "client", verdict: "drop" },
  "an answer is lost": { from: "server", verdict: "drop" },
  "a request comes late": { from: "client", verdict: "late" },
};

/** A leader whose way to the server loses messages. */
async function leaderBehindProxy(t) {
  const server = await sharedPostgres();
  const proxy = await startProxy(server);
  t.after(() => proxy.close());
  const far = server.url().replace(`:${server.port}`, `:${proxy.port}`);
  const kv = await openKv(lead(far, "one"));
  t.after(() => kv.close());
  return { proxy, kv };
}

// The leader finds out what has happened, and decides again what has not. So each call succeeds once.
const cases = Object.entries(FAULTS).flatMap(([name, fault]) =>
  Object.entries(FORMS).map(([form, of]) => ({
    name: `${name}, at every statement of a leader's commit ${form}`,
    ...fault,
    ...of,
  })),
);
for (const { name, from, verdict, statements, complete } of cases) {
  test(name, async (t) => {
    const { proxy, kv } = await leaderBehindProxy(t);
    let rounds = 0;
    for (let at = 0; at < statements; at++, rounds++) {
      // Leads, with a connection whose statements are prepared.
      await kv.set(["warm"], at);
      let seen = 0;
      let isHit = false;
      const counts = ({ query, tag }) => (from === "client" ? query : tag) !== undefined;
      proxy.watch = (message) => {
        if (isHit || message.from !== from || !counts(message) || seen++ < at) return undefined;
        isHit = true;
        if (verdict === "late") sleep(100).then(() => proxy.release());
        return verdict;
      };
      const commit = kv.atomic().sum(["total"], 1n).set(["op", at], at);
      const { ok } = await complete(commit).commit();
      proxy.watch = () => undefined;
      assert.deepEqual({ ok, isHit }, { ok: true, isHit: true });
    }
    const { value } = await kv.get(["total"]);
    assert.equal(value.value, BigInt(rounds));
  });
}

// The leader finds its own new epoch, and must not take itself for another leader.
for (const lost of [1, 2]) {
  test(`a leader leads on when ${lost} answers to raising its epoch are lost`, async (t) => {
    const { proxy, kv } = await leaderBehindProxy(t);
    const faults = [
      ({ query }) => query?.startsWith(COMMITS_AT_ONCE),
      ({ tag, after }) => tag === "SELECT 1" && after.startsWith(COMMITS_AT_ONCE),
    ];
    for (const isFault of faults) {
      await kv.set(["warm"], 0);
      let isHit = false;
      let raised = 0;
      // Of the transaction that raises the epoch.
      let step;
      proxy.watch = (message) => {
        if (!isHit && isFault(message)) {
          isHit = true;
          return "drop";
        }
        if (message.query?.includes(RAISES)) step = "raises";
        else if (step === "raises" && message.tag?.startsWith("SELECT")) {
          // The epoch is another one where no row was changed.
          step = message.tag === "SELECT 1" ? "commits" : undefined;
        } else if (step === "commits" && message.tag === "COMMIT") {
          step = undefined;
          return raised++ < lost ? "drop" : undefined;
        }
        return undefined;
      };
      const calls = [1n, 2n, 3n].map((n) => kv.atomic().sum(["total"], n).commit());
      const answers = await Promise.all(calls);
      proxy.watch = () => undefined;
      assert.ok(answers.every(({ ok }) => ok));
      assert.deepEqual({ isHit, raised }, { isHit: true, raised: lost + 1 });
    }
    const { value } = await kv.get(["total"]);
    assert.equal(value.value, BigInt(6 * faults.length));
  });
}
