// Duty: leaders of a database in an object store are killed and stopped; no acknowledged write is lost, none is
// done twice, and no read goes back in time.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { endsWithTests } from "../kit/living.mjs";
import { until } from "../kit/time.mjs";

const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));

/**
 * Kills the leader `kills` times, at random moments; every third time it is stopped for longer than its lease
 * and goes on beside the next leader. Returns how many writes were acknowledged.
 */
export async function killLeaders({ url, folder, leaseMs, kills, env = {} }) {
  const [acked, open, bad] = [new Set(), new Set(), []];
  const workers = new Map();
  let started = 0;
  function start() {
    const name = `w${started++}`;
    // Some have a cache from before, some begin without.
    const cache = started % 3 === 0 ? "" : join(folder, `cache-${started % 2}-${started % 4}`);
    const child = endsWithTests(
      spawn(process.execPath, [worker, url, cache, name], {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, ...env },
      }),
    );
    // Once all is read that it has told.
    const state = { child, acks: 0, ended: new Promise((done) => child.on("close", done)) };
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [what, id] = line.split(" ");
      if (what === "ack") {
        acked.add(id);
        state.acks++;
      } else if (what === "open") open.add(id);
      else if (what === "bad") bad.push(line);
    });
    workers.set(name, state);
    return state;
  }
  // Of those that live: what a stopped one has told before may be read later.
  const living = () => [...workers.values()].reduce((sum, { acks }) => sum + acks, 0);
  const acks = (count, what) => {
    const goal = living() + count;
    return until(
      () => living() >= goal,
      () => `${what}: ${JSON.stringify([...workers.keys()])} ${bad}`,
    );
  };
  const reader = await openKv(url, { lead: "never" }).catch(async (error) => {
    if (error.code !== "UNAVAILABLE") throw error;
    start();
    await acks(1, "a first write");
    return await openKv(url, { lead: "never" });
  });
  let reading = true;
  let reads = 0;
  const reader_ = (async () => {
    let before = 0n;
    while (reading) {
      const known = BigInt(acked.size);
      const count = await countOf(reader);
      assert.ok(count >= known, `a read has ${count} of ${known} acknowledged writes`);
      assert.ok(count >= before, `a read goes back from ${before} to ${count}`);
      before = count;
      reads++;
    }
  })();
  reader_.catch(() => {});
  try {
    await play();
  } finally {
    // After a failure too: a reader that goes on would keep the process.
    reading = false;
  }
  await reader_;
  assert.ok(reads > 0);
  const { found, count } = await contents(reader);
  await reader.close();
  assert.deepEqual(bad, []);
  const lost = [...acked].filter((id) => !found.has(id));
  assert.deepEqual(lost, [], "acknowledged writes are lost");
  assert.equal(Number(count), found.size, "a write was done twice, or in part");
  return { acked: acked.size, open: open.size, reads };

  async function play() {
    while (workers.size < 2) start();
    const stopped = [];
    for (let n = 0; n < kills; n++) {
      await acks(5, "writes go on");
      const leading = [...workers].toSorted(([, a], [, b]) => b.acks - a.acks);
      const [name, leader] = leading.find(([, state]) => state.acks > 0);
      await new Promise((done) => setTimeout(done, Math.random() * 30));
      workers.delete(name);
      if (n % 3 === 1) {
        leader.child.kill("SIGSTOP");
        stopped.push(leader);
      } else {
        leader.child.kill("SIGKILL");
        await leader.ended;
      }
      start();
      if (stopped.length > 0 && n % 3 === 2) {
        // The next leader has written; the one before wakes and must not answer what is not in the log.
        await acks(5, "another leader writes");
        const [old] = stopped.splice(0);
        old.child.kill("SIGCONT");
        await new Promise((done) => setTimeout(done, leaseMs));
        old.child.kill("SIGKILL");
        await old.ended;
      }
    }
    for (const { child } of [...workers.values(), ...stopped]) child.kill("SIGKILL");
    await Promise.all([...workers.values(), ...stopped].map(({ ended }) => ended));
  }
}

/** How many writes the reader has seen. */
async function countOf(reader) {
  const { value } = await reader.get(["count"]);
  return value?.value ?? value ?? 0n;
}

/** The writes and their count in one state: the last write of a killed process may still arrive at the store. */
export async function contents(reader) {
  for (;;) {
    const count = await countOf(reader);
    const found = new Set();
    for await (const { key } of reader.list({ prefix: ["write"] })) found.add(key[1]);
    if ((await countOf(reader)) === count) return { found, count };
  }
}
