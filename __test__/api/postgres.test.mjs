// Duty: what a database on PostgreSQL does not offer is refused by name, with what to use instead.

import assert from "node:assert/strict";
import { test } from "node:test";
import { onPostgres } from "./databases.mjs";

onPostgres("calls of other engines", (fresh) => {
  const calls = {
    vacuum: (kv) => kv.vacuum(),
    checkpoint: (kv) => kv.checkpoint(),
    search: (kv) => kv.search(["a"], "b"),
    backup: (kv) => kv.backup("copy.sqlite3"),
    getSync: async (kv) => kv.getSync(["a"]),
  };
  for (const [name, call] of Object.entries(calls)) {
    test(`${name} is UNSUPPORTED`, async () => {
      const kv = await fresh();
      await assert.rejects(call(kv), { name: "KvError", code: "UNSUPPORTED" });
      await kv.set(["a"], 1);
      assert.equal((await kv.get(["a"])).value, 1);
    });
  }

  test("values encoded by V8 are UNSUPPORTED", async () => {
    await assert.rejects(fresh({ encoding: "v8" }), { code: "UNSUPPORTED" });
  });
});
