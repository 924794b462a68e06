// Duty: runs the coverage-guided fuzz targets for a bounded time, several at once.
//
//   npm run fuzz                               every target, 60 s each, two at a time
//   npm run fuzz -- --seconds 600 cbor key     some targets, longer
//   npm run fuzz -- --jobs 4                   four at a time
//   npm run fuzz -- --quick                    seeds and random changes of them, without libFuzzer and its build
//
// cargo-fuzz is installed into target/tools when the machine has none. It wants unstable compiler
// flags; RUSTC_BOOTSTRAP=1 lets the stable compiler take them, for this build only.

import { spawn, spawnSync } from "node:child_process";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { FLAGS, PROFILE } from "./rust-tests.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tools = join(root, "target", "tools");

/** Every target, in the order in which they start. */
// biome-ignore format: one row
const TARGETS = ["key", "cbor", "frame", "v8", "connect", "call", "query", "filter", "paths", "interchange"];

const CARGO_FUZZ_VERSION = "0.13.2";

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    jobs: { type: "string", default: "2" },
    quick: { type: "boolean" },
  },
  allowPositionals: true,
});
const targets = positionals.length > 0 ? positionals : TARGETS;
for (const target of targets) {
  if (!TARGETS.includes(target)) {
    console.error(`There is no fuzz target "${target}"; there are ${TARGETS.join(", ")}.`);
    process.exit(1);
  }
}
const env = {
  ...process.env,
  // Another environment would have cargo compile all crates of the tests again.
  ...(!values.quick && { RUSTC_BOOTSTRAP: "1" }),
  PATH: `${join(tools, "bin")}${delimiter}${process.env.PATH}`,
};

inherit(process.execPath, [join(root, "fuzz", "seeds.mjs")]);
if (values.quick) {
  // One at a time, because the counting of memory is one for the process.
  const tests = ["test", "--profile", PROFILE, "--test", "fuzz", ...FLAGS];
  inherit("cargo", [...tests, "--", "--ignored", "--test-threads=1", ...positionals]);
} else {
  installCargoFuzz();
  inherit("cargo", ["fuzz", "build"]);
  process.exit((await runAll()) ? 0 : 1);
}

function installCargoFuzz() {
  if (spawnSync("cargo", ["fuzz", "--version"], { env, stdio: "ignore" }).status !== 0) {
    const version = ["--version", CARGO_FUZZ_VERSION];
    // It only starts cargo: optimizing it would take longer than it runs.
    inherit("cargo", ["install", "cargo-fuzz", "--debug", "--locked", ...version, "--root", tools]);
  }
}

/** Runs a program with the output of this process; ends the process if it fails. */
function inherit(command, args) {
  const { status } = spawnSync(command, args, {
    cwd: root,
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) {
    console.error(`${command} ${args[0]} failed`);
    process.exit(status ?? 1);
  }
}

/** Runs the targets, `jobs` at a time, and prints the result of each. True if all have passed. */
async function runAll() {
  const waiting = [...targets];
  const failed = [];
  const lane = async () => {
    for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
      const { code, output } = await run(target);
      const end = code === 0 ? lastFigures(output) : output.slice(-8_000);
      console.log(`fuzz ${target}: ${code === 0 ? "nothing found" : `FAILED (${code})`}\n${end}`);
      if (code !== 0) {
        failed.push(target);
      }
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, lane));
  const passed = targets.length - failed.length;
  console.log(`fuzz: ${passed} passed, ${failed.length} failed, ${values.seconds} s each`);
  return failed.length === 0;
}

function run(target) {
  const limits = [`-max_total_time=${values.seconds}`, "-timeout=10", "-print_final_stats=1"];
  const child = spawn("cargo", ["fuzz", "run", target, "--", ...limits], {
    cwd: root,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const keep = (chunk) => {
    // Only the end is printed; a long run prints a line for each new input.
    output = (output + chunk).slice(-64_000);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  return new Promise((resolve) => {
    child.on("error", (error) => resolve({ code: error.message, output }));
    child.on("close", (code, signal) => resolve({ code: code ?? signal, output }));
  });
}

/** The final figures of libFuzzer: number of inputs, rate, memory. */
function lastFigures(output) {
  const lines = output.split("\n").filter((line) => /^(Done \d|stat::)/.test(line));
  return lines.map((line) => `  ${line}`).join("\n");
}
