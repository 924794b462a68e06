// Duty: a load of commits whose effects can be accounted for exactly, from some processes.
//
// Each commit adds one to the total and sets an entry of its own. So the total equals the number of
// entries if and only if nothing was done twice; an acknowledged commit has its entry, with the
// versionstamp that was answered; a commit that was answered UNAVAILABLE has none.

import assert from "node:assert/strict";
import { openKv } from "../../index.mjs";
import { until } from "../kit/time.mjs";
import { startChild } from "../processes/children.mjs";

const WORKER = new URL("./load/worker.mjs", import.meta.url);

/** Starts the processes; answers when all have opened the database. */
export async function startLoad(url, { processes = 2, inFlight = 8 } = {}) {
  const load = new Load();
  await Promise.all(Array.from({ length: processes }, () => load.add(url, inFlight)));
  return load;
}

class Load {
  /** Versionstamps of the acknowledged commits, by process and number. */
  acknowledged = new Map();
  /** Commits that were answered UNAVAILABLE. */
  refused = new Set();
  /** Commits that were answered OUTCOME_UNKNOWN. */
  unknown = new Set();
  workers = [];
  #faults = [];

  /** Starts one more process, and answers it once it has opened the database. */
  async add(url, inFlight) {
    const id = this.workers.length;
    let opened = false;
    const onLine = (line) => {
      const told = JSON.parse(line);
      opened ||= told.opened;
      if (!told.opened) this.#take(`${id}/${told.n}`, told);
    };
    const worker = startChild(WORKER, { url, id, inFlight }, { onLine });
    this.workers.push(worker);
    let ended = false;
    worker.ended.then(() => (ended = true));
    await until(() => opened || ended, "the load has opened the database");
    assert.ok(opened, worker.stderr);
    return worker;
  }

  #take(commit, { versionstamp, code, message }) {
    if (versionstamp !== undefined) this.acknowledged.set(commit, versionstamp);
    else if (code === "UNAVAILABLE") this.refused.add(commit);
    else if (code === "OUTCOME_UNKNOWN") this.unknown.add(commit);
    else this.#faults.push(`${commit}: ${message}`);
  }

  /** Waits until so many more commits are acknowledged, of one process where `id` is given. */
  async progress(count, id) {
    const own = () => {
      const all = [...this.acknowledged.keys()];
      return id === undefined ? all.length : all.filter((key) => key.startsWith(`${id}/`)).length;
    };
    const goal = own() + count;
    await until(() => this.#faults.length > 0 || own() >= goal, `${count} more commits`);
    assert.deepEqual(this.#faults, []);
  }

  /** Ends all processes in order, but for those that the test has killed. */
  async stop({ killed = [] } = {}) {
    for (const worker of this.workers) worker.hangUp();
    for (const worker of this.workers) {
      const end = await worker.ended;
      if (killed.includes(worker)) continue;
      assert.deepEqual({ ...end, stderr: worker.stderr }, { code: 0, signal: null, stderr: "" });
    }
    assert.deepEqual(this.#faults, []);
  }

  /** Compares what was answered with what is stored. */
  async check(url) {
    const kv = await openKv(url);
    try {
      const countOf = async () => (await kv.get(["total"])).value?.value ?? 0n;
      const stored = new Map();
      let count;
      // The last commit of a killed process may still happen.
      do {
        count = await countOf();
        for await (const { key, versionstamp } of kv.list({ prefix: ["op"] })) {
          stored.set(`${key[1]}/${key[2]}`, versionstamp);
        }
      } while ((await countOf()) !== count);
      assert.equal(count, BigInt(stored.size), "nothing was done twice");
      for (const [commit, versionstamp] of this.acknowledged) {
        assert.equal(stored.get(commit), versionstamp, `${commit} was acknowledged`);
      }
      for (const commit of this.refused) {
        assert.equal(stored.get(commit), undefined, `${commit} was answered UNAVAILABLE`);
      }
      const stamps = new Set(stored.values());
      assert.equal(stamps.size, stored.size, "each commit has a versionstamp of its own");
      assert.ok(stored.size > 0, "there was a load");
    } finally {
      await kv.close();
    }
  }
}
