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

/** What the network does with one commit, and whether the commit happens. */
const faults = [
  { name: "the request is lost", at: isCommit, verdict: "drop", happens: false },
  { name: "the answer is lost", at: isCommitted, verdict: "drop", happens: true },
  {
    name: "the request comes late",
    at: isCommit,
    verdict: "late",
    releaseMs: LATE_MS,
    happens: true,
  },
  { name: "the request comes after the answer", at: isCommit, verdict: "late", happens: false },
];

for (const { name, at, verdict, releaseMs, happens } of faults) {
  test(`${name}: a commit is ${happens ? "acknowledged" : "UNAVAILABLE"}`, async (t) => {
    const server = await sharedPostgres();
    const proxy = await startProxy(server);
    t.after(() => proxy.close());
    const url = server.url();
    const near = await openKv(url);
    const far = await openKv(url.replace(`:${server.port}`, `:${proxy.port}`));
    let happened = 0;
    for (let round = 0; round < ROUNDS; round++) {
      await far.set(["warm", round], round);
      let isHit = false;
      proxy.watch = (message) => {
        if (isHit || !at(message)) return undefined;
        isHit = true;
        if (releaseMs !== undefined) sleep(releaseMs).then(() => proxy.release());
        return verdict;
      };
      const commit = far.atomic().sum(["total"], 1n).set(["op", round], round).commit();
      const answer = await commit.catch((error) => error);
      proxy.release();
      assert.ok(isHit);
      const { versionstamp } = await near.get(["op", round]);
      if (releaseMs === undefined) assert.equal(versionstamp !== null, happens);
      if (versionstamp !== null) {
        happened++;
        assert.deepEqual(answer, { ok: true, versionstamp });
      } else {
        assert.equal(answer.code, "UNAVAILABLE", `${answer}`);
      }
    }
    assert.equal(happened > 0, happens);
    const { value } = await near.get(["total"]);
    assert.equal(value?.value ?? 0n, BigInt(happened));
    await far.close();
    await near.close();
  });
}
