// Duty: the answer to a commit is right when the network loses its request or its answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { sleep } from "../kit/time.mjs";
import { startProxy } from "./proxy.mjs";

const ROUNDS = 5;

/**
 * Less than an idle transaction may hold its lock. On a machine that stands still for longer, the
 * server may end the transaction first.
 */
const LATE_MS = 100;

const isCommit = ({ query }) => query === "COMMIT";
const isCommitted = ({ tag }) => tag === "COMMIT";

/** What the network does with one commit. */
const faults = [
  { name: "the request is lost", at: isCommit, verdict: "drop" },
  { name: "the answer is lost", at: isCommitted, verdict: "drop" },
  { name: "the request comes late", at: isCommit, verdict: "late", releaseMs: LATE_MS },
  { name: "the request comes after the answer", at: isCommit, verdict: "late" },
];

for (const { name, at, verdict, releaseMs } of faults) {
  test(`${name}: a commit is acknowledged, and happens once`, async (t) => {
    const server = await sharedPostgres();
    const proxy = await startProxy(server);
    t.after(() => proxy.close());
    const url = server.url();
    const near = await openKv(url);
    const far = await openKv(url.replace(`:${server.port}`, `:${proxy.port}`));
    for (let round = 0; round < ROUNDS; round++) {
      await far.set(["warm", round], round);
      let isHit = false;
      proxy.watch = (message) => {
        if (isHit || !at(message)) return undefined;
        isHit = true;
        if (releaseMs !== undefined) sleep(releaseMs).then(() => proxy.release());
        return verdict;
      };
      const answer = await far.atomic().sum(["total"], 1n).set(["op", round], round).commit();
      proxy.release();
      assert.ok(isHit);
      const { versionstamp } = await near.get(["op", round]);
      assert.deepEqual(answer, { ok: true, versionstamp });
      await far.set(["after", round], round);
    }
    const { value } = await near.get(["total"]);
    assert.equal(value.value, BigInt(ROUNDS));
    await far.close();
    await near.close();
  });
}
