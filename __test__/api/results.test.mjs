// Duty: what the results of writes say beyond ok and versionstamp.

import assert from "node:assert/strict";
import { test } from "node:test";
import { onEveryKind } from "./databases.mjs";

onEveryKind("results", (fresh) => {
  test("a refused commit names every check that failed, in the order of its checks", async () => {
    const kv = await fresh();
    await kv.set(["here"], 1);
    const here = await kv.get(["here"]);
    const taken = { key: ["here"], versionstamp: null };
    const absent = { key: ["absent"], versionstamp: null };
    const commit = (...checks) => kv.atomic().check(...checks).set(["a"], 1).commit();
    assert.deepEqual(await commit(here, taken), { ok: false, failed: [1] });
    assert.deepEqual(await commit(taken, here, absent, taken), { ok: false, failed: [0, 3] });
    const late = kv.atomic().set(["a"], 1).check(absent).delete(["b"]).check(taken);
    assert.deepEqual(await late.commit(), { ok: false, failed: [1] });
    assert.equal((await kv.get(["a"])).versionstamp, null);
    assert.deepEqual(Object.keys(await commit(here, absent)), ["ok", "versionstamp"]);
  });

  test("refused and other commits of one moment get their own results", async () => {
    const kv = await fresh();
    await kv.set(["a"], 1);
    const taken = { key: ["a"], versionstamp: null };
    const results = await Promise.all([
      kv.atomic().check(taken).commit(),
      kv.set(["b"], 1),
      kv.touch(["nobody"], { expireIn: 1000 }),
      kv.atomic().check({ key: ["x"], versionstamp: null }, taken, taken).commit(),
    ]);
    assert.deepEqual(results.map(({ failed }) => failed), [[0], undefined, [], [1, 2]]);
  });
});
