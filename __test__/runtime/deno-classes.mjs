// Duty: Deno's classes and ours in one program: run by Deno with --unstable-kv. A handle of ours is
// used where Deno's is, so the 64-bit integers of both are the same.

import assert from "node:assert/strict";
import { KvU64, openKv } from "../../index.mjs";

const kv = await openKv(":memory:");
const denos = await Deno.openKv(":memory:");
const checks = {
  "KvU64 is Deno's class": () => assert.equal(KvU64, Deno.KvU64),
  "Deno's integers are stored as such": async () => {
    await kv.set(["n"], new Deno.KvU64(5n));
    const { value } = await kv.get(["n"]);
    assert.ok(value instanceof Deno.KvU64 && value instanceof KvU64);
    assert.equal(value.value, 5n);
    for await (const entry of kv.list({ prefix: [] })) assert.ok(entry.value instanceof Deno.KvU64);
  },
  "and changed by mutations": async () => {
    const one = new Deno.KvU64(1n);
    await kv.set(["n"], new KvU64(5n));
    await kv
      .atomic()
      .mutate({ type: "sum", key: ["n"], value: one })
      .sum(["n"], one)
      .commit();
    await kv
      .atomic()
      .mutate({ type: "max", key: ["n"], value: new Deno.KvU64(9n) })
      .commit();
    assert.equal((await kv.get(["n"])).value.value, 9n);
    await kv
      .atomic()
      .mutate({ type: "min", key: ["n"], value: one })
      .commit();
    assert.equal((await kv.get(["n"])).value.value, 1n);
  },
  "what we have read goes into Deno's database": async () => {
    await kv.set(["n"], new KvU64(7n));
    await denos.set(["n"], (await kv.get(["n"])).value);
    await denos
      .atomic()
      .mutate({ type: "sum", key: ["n"], value: new KvU64(1n) })
      .commit();
    assert.equal((await denos.get(["n"])).value.value, 8n);
    await kv.set(["copy"], (await denos.get(["n"])).value);
    assert.deepEqual((await kv.get(["copy"])).value, new Deno.KvU64(8n));
  },
  "an object of that shape is an object": async () => {
    await kv.set(["like"], { value: 5n });
    assert.ok(!((await kv.get(["like"])).value instanceof Deno.KvU64));
    await kv.set(["like"], Object.create(Deno.KvU64.prototype));
    assert.ok(!((await kv.get(["like"])).value instanceof Deno.KvU64));
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
  } catch (error) {
    failed++;
    console.log(`FAIL ${name}\n${error.stack}`);
  }
}
await kv.close();
denos.close();
console.log(`${Object.keys(checks).length - failed} passed, ${failed} failed`);
Deno.exit(failed === 0 ? 0 : 1);
