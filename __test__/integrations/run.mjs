// Duty: runs the drivers (openkv/unstorage and so on) under the libraries that they are for, with the suites
// that those have on npm, and prints how many tests of each suite passed, in each place of a database.
//
//   node __test__/integrations/run.mjs               all of them
//   node __test__/integrations/run.mjs unstorage     only suites with such a name
//
// openkv is in node_modules as npm would install it: a driver finds its library beside itself.

import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { packedFiles } from "../../scripts/pack.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const shell = process.platform === "win32";
/** A hang guard for one run. */
const RUN_MS_MAX = 240_000;

install();
const wanted = process.argv.slice(2);
const suites = readdirSync(here)
  .filter((name) => name.endsWith(".test.mjs"))
  .filter((name) => wanted.length === 0 || wanted.some((word) => name.startsWith(word)));
if (suites.length === 0) {
  console.error(`No suite is named ${wanted.join(" or ")}.`);
  process.exit(1);
}
const results = join(here, "node_modules", ".results");
rmSync(results, { recursive: true, force: true });

const { status, output } = await vitest();
console.log(output);
const summary = suites.flatMap((suite) => told(suite, "Node.js"));
console.log(`\n${summary.map(({ line }) => line).join("\n")}`);
process.exit(status === 0 && summary.every(({ ok }) => ok) ? 0 : 1);

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

/** Runs the suites by vitest, in processes of their own. */
function vitest() {
  return run(process.execPath, [
    ...[join(here, "node_modules/vitest/vitest.mjs"), "run", "--root", here],
    ...["--pool=forks", `--maxWorkers=${availableParallelism()}`],
    ...[
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${join(results, "Node.js.json")}`,
    ],
    ...suites,
  ]);
}

/** How a suite went in each place: the outermost title of its tests. */
function told(suite, runtime) {
  const name = basename(suite, ".test.mjs");
  const file = join(results, `${runtime}.json`);
  const { testResults } = existsSync(file)
    ? JSON.parse(readFileSync(file, "utf8"))
    : { testResults: [] };
  const tests = testResults
    .filter((result) => basename(result.name) === suite)
    .flatMap(({ assertionResults }) => assertionResults);
  const places = grouped(tests);
  if (places.size === 0) return [{ ok: false, line: `${name}, ${runtime}: no test has run` }];
  return [...places].map(([place, these]) => {
    const passed = these.filter(({ status }) => status === "passed").length;
    const line = `${name} ${place}, ${runtime}: ${passed} of ${these.length} passed`;
    return { ok: passed === these.length, line };
  });
}

/** Tests by the place, their outermost title. */
function grouped(tests) {
  const places = new Map();
  for (const test of tests) {
    const [place] = test.ancestorTitles;
    places.set(place, [...(places.get(place) ?? []), test]);
  }
  return places;
}

/** Runs a program; answers its exit code or signal, and what it printed. */
function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: here,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: RUN_MS_MAX,
      env: { ...process.env, NO_COLOR: "1", CI: "1" },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => (output += chunk));
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ status: code ?? signal, output }));
  });
}
