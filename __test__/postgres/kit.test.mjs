// Duty: the servers of the tests do what the tests of faults rely on.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startPostgres } from "../kit/postgres.mjs";
import { sleep } from "../kit/time.mjs";

const skip = process.platform === "win32" && "Windows cannot stop and continue processes";

/** Longer than a commit takes, so that one that does not wait would be seen. */
const FROZEN_MS = 300;

test("a commit waits for the standby, which has it when the primary is killed", {
  skip,
}, async () => {
  const primary = await startPostgres({ standby: true, settings: { fsync: "on" } });
  after(() => primary.close());
  await primary.sql("CREATE TABLE t (n int)");
  const { standby } = primary;
  standby.freeze();
  let isDone = false;
  const insert = primary.sql("INSERT INTO t VALUES (1)").then(() => (isDone = true));
  await sleep(FROZEN_MS);
  assert.equal(isDone, false, "the standby is frozen");
  standby.thaw();
  await insert;
  primary.kill();
  await assert.rejects(primary.sql("SELECT 1"));
  await standby.promote();
  assert.equal(
    await standby.sql("INSERT INTO t VALUES (2) RETURNING 0; SELECT n FROM t"),
    "0\n1\n2",
  );
  await primary.start();
  assert.equal(await primary.sql("SELECT n FROM t"), "1", "the data survives the kill");
});
