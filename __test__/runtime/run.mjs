// Duty: what `npm test` does in Node.js, in the other runtimes: the conformance cases, the programs
// of this folder and the tests of `__test__/api` in Bun and in Deno, and the cases against Deno's own KV.
//
//   npm run test:runtime                          all of them
//   npm run test:runtime -- --in bun              one of them: bun, deno, oracle, files (that
//                                                 Deno and openkv have in common), classes
//                                                 (likewise), or move (docs/deno.md)
//   npm run test:runtime -- --only "queue: "      only cases, programs and tests with such a name
//
// Runs that failed are done once more, each alone, if all of them are in the list of scripts/ci/flaky.mjs.
//
// Bun and Deno come from the package.json of this folder, installed here when they are missing.

import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { mayFailOnce } from "../../scripts/ci/flaky.mjs";
import { postgresForAll } from "../kit/postgres.mjs";
import { bun, deno } from "./binaries.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const cases = join(here, "..", "conformance", "run.mjs");
const programs = join(here, "run-programs.mjs");
const files = join(here, "deno-files.mjs");
const classes = join(here, "deno-classes.mjs");
const move = join(here, "move.mjs");
const permissions = join(here, "permissions.mjs");
const api = join(here, "..", "api");
const apiTests = readdirSync(api)
  .filter((name) => name.endsWith(".test.mjs"))
  .map((name) => join(api, name));

/** A whole run that takes longer hangs. Beside the other steps of CI one has taken 400 s. */
const RUN_MS_MAX = 900_000;
/** Most runs wait now and then: for timers, servers and processes. */
const RUNS_AT_ONCE = Math.max(2, availableParallelism());
/** How much of the errors of a run that fails is shown, in characters. */
const ERROR_CHARS_MAX = 8000;
/** A hang guard for one test, in Bun, whose own is five seconds. */
const TEST_MS_MAX = 60_000;

const denoFlags = ["run", "-A", "--quiet", "--no-lock"];
const runs = {
  bun: {
    command: () => bun(),
    scripts: [[cases], [programs], ["test", `--timeout=${TEST_MS_MAX}`, ...apiTests]],
    onlyTests: "--test-name-pattern",
  },
  deno: {
    command: () => deno(),
    scripts: [
      [...denoFlags, cases],
      [...denoFlags, programs],
      ["test", ...denoFlags.slice(1), "--no-check", "--parallel", ...apiTests],
    ],
    onlyTests: "--filter",
  },
  oracle: {
    command: () => deno(),
    scripts: [[...denoFlags, "--unstable-kv", cases, "--oracle"]],
  },
  files: { command: () => deno(), scripts: [[...denoFlags, "--unstable-kv", files]] },
  classes: { command: () => deno(), scripts: [[...denoFlags, "--unstable-kv", classes]] },
  permissions: { command: () => process.execPath, scripts: [[permissions]] },
  move: { command: () => process.execPath, scripts: process.platform === "win32" ? [] : [[move]] },
};

const args = process.argv.slice(2);
const at = args.indexOf("--in");
const chosen = at === -1 ? Object.keys(runs) : args.splice(at, 2).slice(1);
for (const name of chosen) {
  if (!runs[name]) {
    console.error(`There is no "${name}"; there are ${Object.keys(runs).join(", ")}.`);
    process.exit(1);
  }
}
const server = await postgresForAll();
const planned = chosen.flatMap((name) => runs[name].scripts.map((script) => plan(name, script)));
await takeAll(planned, RUNS_AT_ONCE);
const failed = planned.filter(({ status }) => status !== 0);
if (mayFailOnce(failed.map(({ what }) => what))) await takeAll(failed, 1);
console.log(`\n${planned.map(({ closing }) => closing).join("\n")}`);
process.exit(planned.every(({ status }) => status === 0) ? 0 : 1);

/** A run: its name, its command, and its arguments with those of this program. */
function plan(name, script) {
  const { command, onlyTests } = runs[name];
  const kinds = { [cases]: "cases", [programs]: "programs", test: "api" };
  const kind = kinds[script.find((part) => part in kinds)] ?? "";
  const more = kind === "api" ? args.map((arg) => (arg === "--only" ? onlyTests : arg)) : args;
  return { what: `${name} ${kind}`.trim(), command, script: [...script, ...more] };
}

/** Does the runs, so many at once; the output of one that fails, or with options, is printed at its end. */
async function takeAll(these, atOnce) {
  const waiting = [...these];
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await take(next);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

async function take(one) {
  const { status, last, output } = await run(one.command(), one.script);
  if (status !== 0 || args.length > 0) console.log(`\n--- ${one.what} ---\n${output}`);
  one.status = status;
  const result = status === 0 ? last : `${last} (exit ${status})`;
  one.closing = `${one.what.padEnd(15)} ${result}`;
}

/** Runs a script; answers the exit code (or the signal), its output, and the last line with a result. */
function run(command, script) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, script, {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: RUN_MS_MAX,
      env: {
        ...process.env,
        ...server,
        DENO_DIR: join(tmpdir(), "openkv-test-deno"),
        DENO_NO_UPDATE_CHECK: "1",
        NO_COLOR: "1",
      },
    });
    let [out, errors] = ["", ""];
    child.stdout.on("data", (chunk) => (out += chunk));
    child.stderr.on("data", (chunk) => (errors += chunk));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const status = code ?? signal;
      // Bun's test runner writes there, a line for each test. The last line of a run that hangs names its place.
      const shown = signal === null ? errors.replace(/^\(pass\) .*\n/gm, "") : errors;
      const output = `${out}\n${shown.slice(-ERROR_CHARS_MAX)}`;
      const lines = `${out}\n${errors}`.trimEnd().split("\n");
      const last = lines.findLast((line) => /\d passed|^Ran \d/.test(line));
      resolve({ status, output, last: last ?? "printed no result" });
    });
  });
}
