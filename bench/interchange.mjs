// `node bench/interchange.mjs`: `openkv export` and `openkv import` of a million small entries
// between files, each in a process of its own: entries per second, and peak resident memory.
//
//   --entries N      (default 1,000,000)
//   --rounds N       (default 3)
//   --dir DIRECTORY  where the files are (default bench/.data)
//   --cpu-prof DIR   V8 CPU profiles of both processes

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { median } from "./measure.mjs";

const { values: options } = parseArgs({
  options: {
    entries: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "3" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    "cpu-prof": { type: "string" },
  },
});
const entries = Number(options.entries);
const AT_ONCE = 5000;
const RATE_MIN = 200_000;
const RESIDENT_MB_MAX = 200;
const SAMPLE_MS = 20;
const command = fileURLToPath(new URL("../dist/cli/openkv.js", import.meta.url));

const directory = dataDirectory(options.dir);
const from = join(directory, "from.sqlite3");
const text = join(directory, "entries.ndjson");
const kv = await openKv(from, { durability: "normal" });
for (let n = 0; n < entries; n += AT_ONCE) {
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, entries - n) }, (_, m) =>
      kv.set(["user", n + m], { id: n + m, name: `name ${n + m}`, ok: true }),
    ),
  );
}
kv.close();

const results = { export: [], import: [] };
for (let round = 0; round < Number(options.rounds); round++) {
  const to = join(directory, `to-${round}.sqlite3`);
  results.export.push(await run("-d", from, "export", text));
  results.import.push(await run("-d", to, "import", text));
  const copy = await openKv(to);
  const count = await copy.count({ prefix: [] });
  copy.close();
  if (count !== entries) throw new Error(`${count} of ${entries} entries have arrived`);
  for (const end of ["", "-wal", "-shm"]) rmSync(to + end, { force: true });
}
console.log(`Machine: ${machineLine(directory)}.`);
console.log(
  `${entries.toLocaleString("en")} entries, ${Math.round(statSync(text).size / 1e6)} MB of NDJSON`,
);
for (const [what, runs] of Object.entries(results)) {
  const rates = runs.map(({ ms }) => entries / (ms / 1000));
  const show = (n) => Math.round(n).toLocaleString("en");
  const resident = Math.max(...runs.map((each) => each.residentMb));
  const ok = median(rates) >= RATE_MIN && resident < RESIDENT_MB_MAX;
  console.log(
    `${what}: ${show(median(rates))} entries/s (${show(Math.min(...rates))} – ${show(Math.max(...rates))}; ≥ ${show(RATE_MIN)}), ` +
      `${resident.toFixed(0)} MB resident at most (< ${RESIDENT_MB_MAX}) ${ok ? "✓" : "✗"}`,
  );
}
rmSync(directory, { recursive: true, force: true });

/** Runs the command; the time includes starting Node.js. */
async function run(...args) {
  const flags = options["cpu-prof"] ? ["--cpu-prof", `--cpu-prof-dir=${options["cpu-prof"]}`] : [];
  const start = performance.now();
  const child = spawn(process.execPath, [...flags, command, ...args], { stdio: "inherit" });
  let residentMb = 0;
  const sampling = setInterval(() => {
    const status = `/proc/${child.pid}/status`;
    if (!existsSync(status)) return;
    const [, kib] = /VmHWM:\s+(\d+)/.exec(readFileSync(status, "utf8")) ?? [];
    residentMb = Math.max(residentMb, Number(kib ?? 0) / 1024);
  }, SAMPLE_MS);
  const [code] = await once(child, "exit");
  clearInterval(sampling);
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}`);
  return { ms: performance.now() - start, residentMb };
}
