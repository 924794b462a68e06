// Duty: runs the programs of programs.mjs in the runtime that runs this: Node.js, Bun or Deno.
// Ends with the line "N passed, N failed". `--only words` runs those whose name has the words.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { serve } from "../../index.mjs";
import { polluted } from "./pollution.mjs";
import { moduleOf, programs } from "./programs.mjs";

/** A hang guard for one program. */
const PROGRAM_MS_MAX = 60_000;
const PROGRAMS_AT_ONCE = 3;

const at = process.argv.indexOf("--only");
const only = at === -1 ? "" : process.argv[at + 1];
const flags = globalThis.Deno ? ["run", "-A", "--quiet", "--no-lock"] : [];
// Below the package: Deno takes a .js file for CommonJS only where it sees the package.json.
const folder = mkdtempSync(join(dirname(fileURLToPath(import.meta.url)), "programs-"));
const all = [...programs, ...polluted];
const queue = all.filter(({ name }) => name.includes(only));
const counts = { passed: 0, failed: 0 };

await Promise.all(
  Array.from({ length: PROGRAMS_AT_ONCE }, async () => {
    for (let next = queue.shift(); next; next = queue.shift()) await judge(next);
  }),
);
rmSync(folder, { recursive: true, force: true });
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed ? 1 : 0);

async function judge(program) {
  const { end, said } = await (program.served ? withServer(program) : run(program));
  const good = end === program.code && said === program.said;
  counts[good ? "passed" : "failed"]++;
  if (good) return;
  console.log(`FAIL ${program.name}`);
  console.log(`     ended with ${end}, not ${program.code}; said: ${said.slice(0, 2000)}`);
}

/** Runs a program beside a server of its own, in this process, which it cannot change. */
async function withServer(program) {
  const accessToken = "a-token-of-the-programs";
  const path = join(folder, `${all.indexOf(program)}-served.sqlite3`);
  const server = await serve({ path, listen: "127.0.0.1:0", accessToken });
  try {
    return await run(program, {
      OPENKV_TEST_SERVER: JSON.stringify({ url: server.url, accessToken }),
    });
  } finally {
    await server.close();
  }
}

/** The exit code, or the signal that ended it; and all it printed. */
function run(program, env) {
  const base = join(folder, `${all.indexOf(program)}`);
  writeFileSync(`${base}.mjs`, moduleOf(program, `${base}.sqlite3`));
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...flags, `${base}.mjs`], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    const guard = setTimeout(() => child.kill("SIGKILL"), PROGRAM_MS_MAX);
    let said = "";
    child.stdout.on("data", (chunk) => (said += chunk));
    child.stderr.on("data", (chunk) => (said += chunk));
    child.on("close", (code, signal) => {
      clearTimeout(guard);
      resolve({ end: code ?? signal, said });
    });
  });
}
