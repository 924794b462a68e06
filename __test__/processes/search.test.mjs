// Duty: full-text indexes across processes: a build goes on after its process was killed, and what
// one process writes another one finds.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { endsWithTests } from "../kit/living.mjs";

const folder = newFolder("search");
const ENTRIES = 6000;

const entry = new URL("../../index.mjs", import.meta.url).href;

/** A process that runs `body` with `kv` open on the file, and says "started" when told to. */
function program(path, body) {
  const source = `import { openKv } from ${JSON.stringify(entry)};
    const kv = await openKv(${JSON.stringify(path)});
    const say = () => console.log("started");
    ${body}`;
  const args = ["--input-type=module", "--eval", source];
  return endsWithTests(spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] }));
}

test("a build whose process is killed is finished by the next one, exactly", async () => {
  const path = join(folder, "killed.sqlite3");
  let kv = await openKv(path);
  for (let at = 0; at < ENTRIES; at += 500) {
    const batch = kv.atomic();
    for (let i = at; i < at + 500; i++) batch.set(["d", i], { t: `old number${i}` });
    await batch.commit();
  }
  await kv.close();
  const child = program(
    path,
    `await kv.createIndex({ prefix: ["d"], fields: ["t"] });
     await kv.set(["d", 5], { t: "new" });
     say();
     setInterval(() => {}, 1000);`,
  );
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "close");
  kv = await openKv(path);
  const index = await kv.createIndex({ prefix: ["d"], fields: ["t"] });
  await kv.delete(["d", 7]);
  await index.ready();
  const [{ state, documents }] = await kv.listIndexes();
  assert.deepEqual([state, documents], ["ready", ENTRIES - 1]);
  assert.equal((await kv.search(["d"], "new")).entries.length, 1);
  for (const gone of [5, 7]) {
    assert.equal((await kv.search(["d"], `number${gone}`)).entries.length, 0);
  }
  for (const i of [0, 6, 3000, ENTRIES - 1]) {
    assert.deepEqual((await kv.search(["d"], `number${i}`)).entries[0].key, ["d", i]);
  }
  await kv.close();
});

test("a process that was open before an index keeps it exact", async () => {
  const path = join(folder, "two.sqlite3");
  const kv = await openKv(path);
  const child = program(
    path,
    `await kv.set(["d", "before"], { t: "word" });
     say();
     while ((await kv.get(["go"])).value === null) await new Promise((r) => setTimeout(r, 5));
     await kv.set(["d", "after"], { t: "word" });
     await kv.delete(["d", "mine"]);
     kv.close();`,
  );
  await once(child.stdout, "data");
  const index = await kv.createIndex({ prefix: ["d"], fields: ["t"] });
  await index.ready();
  await kv.set(["d", "mine"], { t: "word" });
  await kv.set(["go"], true);
  await once(child, "close");
  const { entries } = await kv.search(["d"], "word");
  assert.deepEqual(entries.map(({ key }) => key[1]).sort(), ["after", "before"]);
  await kv.close();
});
