// Duty: runs the drivers (openkv/unstorage and so on) under the libraries that they are for, with the suites
// that those have on npm, in Node.js, Bun and Deno, and prints how many tests of each suite passed, in
// each place of a database.
//
//   node __test__/integrations/run.mjs               all of them
//   node __test__/integrations/run.mjs unstorage     only suites with such a name
//   node __test__/integrations/run.mjs --quick       on a file and, in Node.js, over a URL
//
// A suite is a file of vitest, `*.spec.mjs`, or a program that prints TAP, `*.tap.mjs`; `*.test.mjs` are those of
// `npm test`. openkv is in node_modules as npm would install it: a driver finds its library beside itself.

import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { packedFiles } from "../../scripts/pack.mjs";
import { bun, deno } from "../runtime/binaries.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const results = join(here, "node_modules", ".results");
const shell = process.platform === "win32";
/** A hang guard for one run. */
const RUN_MS_MAX = 480_000;
/** A hang guard for one test of vitest, and for one condition that it waits for. */
const TEST_MS_MAX = 60_000;
/** Most runs wait now and then: for timers, disks and servers. */
const RUNS_AT_ONCE = 1 + availableParallelism();

/**
 * In Node.js only: the programs of the page print what it prints, types are the same everywhere, the command line
 * is a program of Node.js, and the suite of the Workflow SDK starts Node.js. Its package.json has a small package in place of those that build applications.
 */
const ONCE = ["documentation.spec.mjs", "mcp.spec.mjs", "types.spec.mjs", "workflow.spec.mjs"];

const runtimes = {
  "Node.js": [process.execPath],
  Bun: [bun(), "--bun"],
  Deno: [deno(), "run", "-A", "--quiet", "--no-lock"],
};

install();
// Only now: it imports openkv as the suites do.
const { places } = await import("./kit.mjs");
const { values, positionals: wanted } = parseArgs({
  options: { quick: { type: "boolean" } },
  allowPositionals: true,
});
const suites = readdirSync(here)
  .filter((name) => /\.(?:spec|tap)\.mjs$/.test(name))
  .filter((name) => wanted.length === 0 || wanted.some((word) => name.startsWith(word)));
if (suites.length === 0) {
  console.error(`No suite is named ${wanted.join(" or ")}.`);
  process.exit(1);
}
rmSync(results, { recursive: true, force: true });
const runs = Object.keys(runtimes).flatMap((runtime) => [
  ...suites.filter((name) => name.endsWith(".tap.mjs")).flatMap((suite) => taps(suite, runtime)),
  ...vitest(
    suites.filter((name) => isFor(name, runtime)),
    runtime,
  ),
]);
await takeAll(runs);
const told = runs.flatMap(({ told }) => told).sort((a, b) => a.line.localeCompare(b.line));
console.log(`\n${told.map(({ line }) => line).join("\n")}`);
process.exit(told.length > 0 && runs.every(({ ok }) => ok) && told.every(({ ok }) => ok) ? 0 : 1);

/** The packages of this folder, and openkv as it would be published, with the addon of this machine. */
function install() {
  if (!existsSync(join(here, "node_modules", ".package-lock.json"))) {
    const args = ["ci", "--ignore-scripts"];
    const { status } = spawnSync("npm", args, { cwd: here, stdio: "inherit", shell });
    if (status !== 0) process.exit(1);
  }
  const target = join(here, "node_modules", "openkv");
  rmSync(target, { recursive: true, force: true });
  const addons = readdirSync(join(root, "dist/native")).filter((name) => name.endsWith(".node"));
  for (const path of [...packedFiles(), ...addons.map((name) => `dist/native/${name}`)]) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    cpSync(join(root, path), join(target, path));
  }
}

function isFor(suite, runtime) {
  return suite.endsWith(".spec.mjs") && (runtime === "Node.js" || !ONCE.includes(suite));
}

/** The places of a database in which a runtime runs the suites. */
function placesOf(runtime) {
  if (!values.quick) return Object.keys(places);
  // A driver sees no difference between memory and a file; the suites of the engines compare the two.
  return runtime === "Node.js" ? ["on a file", "over a URL"] : ["on a file"];
}

/** The runs of a program that prints TAP, one for each place. */
function taps(suite, runtime) {
  return placesOf(runtime).map((place) => ({
    what: `${suite} ${place}, ${runtime}`,
    runtime,
    args: [join(here, suite), place],
    results: (output) => {
      const [, of = "0"] = /^# tests (\d+)$/m.exec(output) ?? [];
      const [, passed = "0"] = /^# pass +(\d+)$/m.exec(output) ?? [];
      return [line(basename(suite, ".tap.mjs"), place, runtime, Number(passed), Number(of))];
    },
  }));
}

/** The run of all suites of vitest, or none. The outermost title of a test is its place. */
function vitest(files, runtime) {
  if (files.length === 0) return [];
  const file = join(results, `${runtime}.json`);
  return [
    {
      what: `vitest, ${runtime}`,
      runtime,
      args: [
        ...[join(here, "node_modules/vitest/vitest.mjs"), "run", "--root", here, "--pool=forks"],
        ...["--maxWorkers=2", `--testTimeout=${TEST_MS_MAX}`, `--hookTimeout=${TEST_MS_MAX}`],
        ...[`--expect.poll.timeout=${TEST_MS_MAX}`, "--reporter=default", "--reporter=json"],
        ...[`--outputFile.json=${file}`, ...files],
      ],
      results: () => {
        const { testResults } = existsSync(file)
          ? JSON.parse(readFileSync(file, "utf8"))
          : { testResults: [] };
        return files.flatMap((suite) => byPlace(suite, runtime, testResults));
      },
    },
  ];
}

/** How a suite of vitest went in each place. */
function byPlace(suite, runtime, testResults) {
  const name = basename(suite, ".spec.mjs");
  const tests = testResults
    .filter((result) => basename(result.name) === suite)
    .flatMap(({ assertionResults }) => assertionResults);
  const titles = [...new Set(tests.map(({ ancestorTitles }) => ancestorTitles[0]))];
  if (titles.length === 0) return [line(name, "", runtime, 0, 0)];
  return titles.map((place) => {
    const these = tests.filter(({ ancestorTitles }) => ancestorTitles[0] === place);
    const passed = these.filter(({ status }) => status === "passed").length;
    return line(name, place, runtime, passed, these.length);
  });
}

function line(suite, place, runtime, passed, of) {
  const ok = passed === of && of > 0;
  return { ok, line: `${suite} ${place}, ${runtime}: ${passed} of ${of} passed` };
}

/** Does the runs, so many at once; the output of one that fails is printed in one piece. */
async function takeAll(these) {
  const waiting = [...these];
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await take(next);
  };
  await Promise.all(Array.from({ length: RUNS_AT_ONCE }, lane));
}

async function take(one) {
  const started = Date.now();
  const { status, output } = await run([...runtimes[one.runtime], ...one.args], one.runtime);
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  one.told = one.results(output);
  one.ok = status === 0;
  const isGood = one.ok && one.told.every(({ ok }) => ok);
  console.log(
    isGood ? `--- ${one.what}, ${seconds} s` : `\n*** ${one.what} (exit ${status}) ***\n${output}`,
  );
}

/** Runs a program; answers its exit code or signal, and what it printed. */
function run([command, ...args], runtime) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: here,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: RUN_MS_MAX,
      env: {
        ...process.env,
        NO_COLOR: "1",
        CI: "1",
        DENO_NO_UPDATE_CHECK: "1",
        OPENKV_TEST_RUNTIME: runtime,
        OPENKV_TEST_PLACES: placesOf(runtime).join(","),
      },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => (output += chunk));
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ status: code ?? signal, output }));
  });
}
