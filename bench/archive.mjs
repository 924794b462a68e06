// Duty: the time and memory of a restore: an archive with many entries in its snapshot and as many changes
// behind it, restored by the command in a process of its own.
//
//   node bench/archive.mjs [entries] [changes]

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { openKv } from "../index.mjs";
import { newFolder } from "../__test__/kit/folder.mjs";

const [entries = 1_000_000, changes = 1_000_000] = process.argv.slice(2).map(Number);
/** Writes of one commit. */
const BATCH = 500;
const WAIT_MS = 100;

const folder = newFolder("bench-archive");
const [file, target] = [join(folder, "kv.sqlite3"), join(folder, "archive")];
const kv = await openKv(file, { durability: "normal", limits: "wide" });
await write(entries, (n) => n);
const archive = await kv.archive({ to: target });
while (archive.status().snapshot === null) {
  await new Promise((done) => setTimeout(done, WAIT_MS));
}
const begun = performance.now();
await write(changes, (n) => (n * 7919) % Math.max(entries, 1));
await archive.stop();
const archived = (performance.now() - begun) / 1000;
await kv.close();

const child = `
  process.argv = [process.argv[0], "openkv", "restore", ${JSON.stringify(target)}, ${JSON.stringify(join(folder, "restored"))}, "--json"];
  process.on("exit", () => console.error(process.resourceUsage().maxRSS));
  require(${JSON.stringify(fileURLToPath(new URL("../dist/cli/openkv.js", import.meta.url)))});
`;
const restoring = performance.now();
const { status, stdout, stderr } = spawnSync(process.execPath, ["-e", child], { encoding: "utf8" });
const seconds = (performance.now() - restoring) / 1000;
if (status !== 0) throw new Error(stderr);
const { segments } = JSON.parse(stdout);
console.log({
  entries,
  changes,
  segments,
  archivedSeconds: Number(archived.toFixed(1)),
  restoreSeconds: Number(seconds.toFixed(1)),
  restoreMiB: Math.round(Number(stderr.trim().split("\n").at(-1)) / 1024),
});
rmSync(folder, { recursive: true, force: true });

async function write(count, keyOf) {
  for (let at = 0; at < count; at += BATCH) {
    const atomic = kv.atomic();
    for (let n = at; n < Math.min(at + BATCH, count); n++) {
      atomic.set(["entry", keyOf(n)], { n, text: "a value of a usual size" });
    }
    await atomic.commit();
  }
}
