// Duty: `npm test`: builds what is out of date, then runs every Node test.
//
//   npm test                  all of them
//   npm test -- api codec     those whose path below __test__/ starts with one of the words
//   npm test -- --no-build    without building first (CI, which has just built)
//
// Files that failed run once more, each alone, if all of them are in the list of scripts/ci/flaky.mjs.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { postgresForAll } from "../__test__/kit/postgres.mjs";
import { build } from "./build.mjs";
import { mayFailOnce } from "./ci/flaky.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const testDir = join(root, "__test__");

/** The tests that use the server that this script starts. */
const NEEDS_POSTGRES = /^(api|cli|conformance|examples|postgres|processes|property)\//;

/** Most files wait now and then: for timers, servers and processes. */
const FILES_AT_ONCE = availableParallelism() + 2;

/** A hang guard for one test file, not a measure of speed. */
const FILE_TIMEOUT_MS = 300_000;

const { values, positionals } = parseArgs({
  options: { "no-build": { type: "boolean" } },
  allowPositionals: true,
});

if (!values["no-build"]) {
  await build();
}
const files = testFiles(testDir).filter((file) => wanted(file, positionals));
if (files.length === 0) {
  console.error(`No test file below __test__/ matches: ${positionals.join(" ") || "*.test.mjs"}`);
  process.exit(1);
}
for (const signal of ["SIGINT", "SIGTERM"]) {
  // The server ends with this process, by its exit handlers.
  process.on(signal, () => process.exit(1));
}
const server = files.some((file) => NEEDS_POSTGRES.test(nameOf(file))) ? await startServer() : {};
const temporary = mkdtempSync(join(tmpdir(), "openkv-test-"));
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));
const first = await run(files, FILES_AT_ONCE);
if (first.status === 0 || !mayFailOnce(first.failed.map(nameOf))) {
  process.exit(first.status);
}
console.log(`\nRunning once more, as scripts/ci/flaky.mjs allows:\n${first.failed.join("\n")}\n`);
const second = await run(first.failed, 1);
process.exit(second.status);

/** Runs test files; returns the exit status, and the files with a failure. */
async function run(paths, concurrency) {
  const failed = join(temporary, "failed");
  const child = spawn(
    process.execPath,
    [
      "--test",
      "--test-reporter=spec",
      "--test-reporter-destination=stdout",
      `--test-reporter=${pathToFileURL(join(root, "scripts/ci/failed-files.mjs"))}`,
      `--test-reporter-destination=${failed}`,
      `--test-concurrency=${concurrency}`,
      `--test-timeout=${FILE_TIMEOUT_MS}`,
      ...paths,
    ],
    { cwd: root, stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, ...server } },
  );
  const [status, signal] = await once(child, "exit");
  if (signal !== null) {
    console.error(`The test runner was ended by ${signal}.`);
  }
  const lines = readFileSync(failed, "utf8").split("\n");
  return { status: status ?? 1, failed: lines.filter((line) => line !== "") };
}

/** One PostgreSQL for all test files. Without it the tests that need it fail, each with the reason. */
async function startServer() {
  try {
    return await postgresForAll();
  } catch (error) {
    console.error(error.message);
    return {};
  }
}

/** Every *.test.mjs below a directory, sorted, without installed packages. */
function testFiles(directory) {
  const found = [];
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory() && entry.name !== "node_modules") {
      found.push(...testFiles(path));
    } else if (entry.isFile() && entry.name.endsWith(".test.mjs")) {
      found.push(path);
    }
  }
  return found.sort();
}

function wanted(file, words) {
  return words.length === 0 || words.some((word) => nameOf(file).startsWith(word));
}

function nameOf(file) {
  return relative(testDir, file).split(sep).join("/");
}
