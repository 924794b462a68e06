// Duty: one file after the other in the hands of Deno's own KV and of openkv, both in Deno: every
// value goes both ways, through a file that Deno has made and one that openkv has made for Deno.
// The two never have a file open at the same time here: two copies of SQLite in one process would
// drop each other's locks. Ends with the line "N passed, N failed".

import { join } from "node:path";
import process from "node:process";
import { KvU64, openKv } from "../../index.mjs";
import { fill, verify } from "../deno-files/matrix.mjs";

const folder = await Deno.makeTempDir();
const counts = { passed: 0, failed: 0 };

const deno = { name: "Deno", open: (path) => Deno.openKv(path), u64: (n) => new Deno.KvU64(n) };
const openkv = { name: "openkv", open: (path) => openKv(path), u64: (n) => new KvU64(n) };
const made = (path) => openKv(path, { encoding: "v8" });

for (const [at, [first, second, make]] of [
  [deno, openkv, deno.open],
  [openkv, deno, made],
].entries()) {
  const path = join(folder, `${at}.sqlite3`);
  const [one, two] = [() => first.open(path), () => second.open(path)];
  await step(
    `${first.name} writes`,
    () => make(path),
    (kv) => fill(kv, first.u64),
  );
  await step(`${second.name} reads`, two, (kv) => verify(kv, second.u64));
  await step(`${second.name} writes over it`, two, (kv) => fill(kv, second.u64));
  await step(`${first.name} reads`, one, async (kv) => {
    await verify(kv, first.u64);
    await kv.atomic().sum(["count"], 1n).delete(["bytes"]).commit();
  });
  await step(`${first.name} enqueues`, one, async (kv) => {
    await kv.enqueue({ big: 10n ** 20n });
    await kv.enqueue("to be left", { backoffSchedule: [1], keysIfUndelivered: [["left"]] });
  });
  await step(`${second.name} is given the messages`, two, async (kv) => {
    const seen = [];
    kv.listenQueue((value) => {
      seen.push(typeof value === "string" ? value : value.big);
      if (value === "to be left") throw new Error("not now");
    });
    while ((await kv.get(["left"])).value === null) await new Promise((r) => setTimeout(r, 5));
    const all = seen.map(String).sort().join();
    if (all !== `${10n ** 20n},to be left,to be left`) throw new Error(all);
  });
  await step(`${first.name} finds what was left behind`, one, async (kv) => {
    if ((await kv.get(["left"])).value !== "to be left") throw new Error("it is not there");
  });
  await step(`${second.name} sees what ${first.name} has changed`, two, async (kv) => {
    const [count, bytes] = await kv.getMany([["count"], ["bytes"]]);
    if (count.value.value !== 42n || bytes.value !== null) throw new Error("it is not there");
  });
}
await Deno.remove(folder, { recursive: true });
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed ? 1 : 0);

async function step(what, open, body) {
  const kv = await open();
  try {
    await body(kv);
    counts.passed++;
  } catch (error) {
    counts.failed++;
    console.log(`FAIL ${what}\n     ${error.stack}`);
  } finally {
    await kv.close();
  }
}
