// Leases, limiters and runs over several processes: processes that are stopped and continued, and processes that are
// killed. On a file, behind a URL and on PostgreSQL.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sharedPostgres } from "../kit/postgres.mjs";
import { startServer } from "../kit/server.mjs";
import { guard, HANG_MS, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { wrongOf } from "./leases/history.mjs";
import { skip, trouble } from "./leases.mjs";
import { newPath } from "./peer/file.mjs";
import { openKv } from "./target.mjs";

const WORKER = new URL("./leases/worker.mjs", import.meta.url);
const TTL_MS = 400;
/** Of a holder that writes while its lease lasts, also on a busy machine. */
const LONG_TTL_MS = 2_000;
const accessToken = "token-of-the-leases";

const PLACES = {
  "a file": async () => ({ path: newPath() }),
  "a URL": async () => {
    const { url } = await startServer({ path: newPath(), accessToken });
    return { path: url, options: { accessToken } };
  },
  PostgreSQL: async () => ({ path: (await sharedPostgres()).url() }),
};

/** Starts `count` workers on one database. */
async function workers(t, place, count, args = {}) {
  const started = Array.from({ length: count }, (_, name) =>
    startChild(WORKER, { ...place, name, ttl: TTL_MS, ...args }),
  );
  t.after(() => started.forEach((worker) => worker.kill()));
  for (const worker of started) assert.equal(await line(worker), "ready", worker.stderr);
  return started;
}

const line = (worker) => guard(worker.line(), HANG_MS, "a line of a worker");

/** The next line that begins with `word`, without that. */
async function answer(worker, word) {
  for (;;) {
    const text = await line(worker);
    assert.ok(text !== undefined && !text.startsWith("failed"), `${text} ${worker.stderr}`);
    if (text.startsWith(word)) return text.slice(word.length + 1);
  }
}

async function ask(worker, command, word) {
  worker.say(command);
  return await answer(worker, word);
}

/** The checked writes: their tokens never decrease, so no holder wrote after a later one had the lease. */
async function checkWrites(place) {
  const kv = await openKv(place.path, place.options);
  const entries = await kv.list({ prefix: ["writes"] }).toArray();
  const writes = entries.map(({ value }) => value);
  await kv.close();
  const tokens = writes.map(({ token }) => token);
  assert.deepEqual(tokens, tokens.toSorted());
  const holders = new Map();
  for (const { by, token } of writes) {
    assert.equal(holders.get(token) ?? by, by, `${token} had two holders`);
    holders.set(token, by);
  }
  return writes.length;
}

for (const [name, makePlace] of Object.entries(PLACES)) {
  describe(`processes with leases on ${name}`, () => {
    test("a process that is stopped loses its lease, and its checked write fails", {
      skip: process.platform === "win32" && "there is no SIGSTOP",
    }, async (t) => {
      const place = await makePlace();
      const [first, second] = await workers(t, place, 2, { ttl: LONG_TTL_MS });
      const token = await ask(first, "acquire", "has");
      assert.equal(await ask(first, "writeAndStop", "wrote"), "true");
      const next = await ask(second, "acquire", "has");
      assert.ok(next > token, `${next} is after ${token}`);
      assert.equal(await ask(second, "write", "wrote"), "true");
      first.say("write");
      first.resume();
      const lines = [await line(first), await line(first), await line(first)].sort();
      assert.deepEqual(lines, ["continues", `lost ${token}`, "wrote false"]);
      assert.equal(await ask(second, "write", "wrote"), "true");
      assert.equal(await ask(second, "release", "released"), "true");
      assert.equal(await checkWrites(place), 3);
    });

    test("the lease of a process that is killed passes on", async (t) => {
      const place = await makePlace();
      const [first, second] = await workers(t, place, 2);
      const token = await ask(first, "acquire", "has");
      second.say("acquire");
      first.kill();
      assert.ok((await answer(second, "has")) > token);
    });

    test("no two of competing, stopped and killed processes write under one lease", async (t) => {
      const place = await makePlace();
      const competing = await workers(t, place, 4);
      for (const worker of competing) worker.say("compete");
      await Promise.all(competing.slice(0, 1).map((worker) => answer(worker, "competes")));
      for (let round = 0; round < 4; round++) {
        const worker = competing[round % 3];
        worker.pause();
        await sleep(TTL_MS * 1.5);
        if (round === 2) worker.kill();
        else worker.resume();
      }
      const left = competing.filter((_, at) => at !== 2);
      for (const worker of left) worker.say("end");
      for (const worker of left) assert.ok(Number(await answer(worker, "competed")) > 0);
      assert.ok((await checkWrites(place)) > 0);
    });

    for (const algorithm of ["fixed", "sliding", "token-bucket"]) {
      test(`four processes get exactly the limit together: ${algorithm}`, async (t) => {
        const place = await makePlace();
        const args = { limit: 500, takes: 300, algorithm };
        const taking = await workers(t, place, 4, args);
        const took = await Promise.all(taking.map((worker) => ask(worker, "take", "took")));
        assert.equal(
          took.map(Number).reduce((sum, n) => sum + n),
          500,
        );
      });
    }

    test("of four processes one runs the function, and all get its result", async (t) => {
      const place = await makePlace();
      const asking = await workers(t, place, 4, { ttl: LONG_TTL_MS });
      const results = await Promise.all(asking.map((worker) => ask(worker, "once", "result")));
      assert.equal(new Set(results).size, 1);
    });

    test("when the process of a run is killed, another one runs", async (t) => {
      const place = await makePlace();
      const [first] = await workers(t, place, 1, { hangs: true });
      const [second] = await workers(t, place, 1, { hangs: false });
      await ask(first, "once", "runs");
      second.say("once");
      first.kill();
      assert.equal(await answer(second, "result"), "0");
    });
  });
}

describe("leases in trouble", { skip }, () => {
  const seed = `leases ${Date.now()}`;
  for (const served of [false, true]) {
    const where = served ? "behind a URL" : "of a file";
    test(`processes ${where} are stopped and killed, and the clock jumps`, async () => {
      const { wrong, holds, writes } = await trouble({ faults: 15, seed, served });
      assert.deepEqual(wrong, [], seed);
      assert.ok(holds > 1 && writes > 1, `${holds} leases, ${writes} writes`);
    });
  }

  for (const planted of ["unchecked", "clock"]) {
    test(`a wrong lease is found: ${planted}`, async () => {
      const { wrong, faults } = await trouble({ faults: 500, seed, planted });
      assert.notDeepEqual(wrong, [], `${faults} faults, ${seed}`);
    });
  }
});

test("a history with anything wrong is found", () => {
  const hold = (by, asked, has, token) => ({
    by,
    askedNs: BigInt(asked),
    hasNs: BigInt(has),
    token,
  });
  const write = (by, token, versionstamp) => ({ by, token, versionstamp });
  const holds = [hold(1, 0, 1, "10"), hold(2, 0, 5, "20"), hold(1, 6, 7, "30")];
  const writes = [write(1, "10", "11"), write(2, "20", "21"), write(3, "25", "26")];
  const wrong = (history) => wrongOf({ writes, holds, ...history }).length;
  assert.equal(wrong({}), 0);
  assert.equal(wrong({ writes: [writes[1], write(1, "10", "22")] }), 1);
  assert.equal(wrong({ writes: [write(2, "10", "11")] }), 1);
  assert.equal(wrong({ writes: [write(2, "20", "15")] }), 1);
  assert.equal(wrong({ holds: [...holds, hold(2, 8, 9, "27")] }), 1);
  assert.equal(wrong({ holds: [holds[0], hold(2, 0, 5, "10")], writes: [] }), 1);
});
