// Duty: the table of CI steps: the name, command, lane and hang guard of each.
//
// The lane "first" runs before the others. Then two lanes run in parallel, each one step at a time:
// "rust" compiles and checks, "node" builds the addon and uses it. Whichever has ended takes the steps of
// "either", so that both end at about the same time. `needs` names the steps that must succeed first, of any
// lane. A step whose need failed is reported as not run, which fails the whole run.

import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { findChromium } from "../../__test__/kit/chromium.mjs";
import { findBinaries } from "../../__test__/kit/postgres/programs.mjs";

/** Hang guard of a step that names none, in minutes. */
const STEP_MINUTES_MAX = 8;

/** Every feature but the addon, so that the tests need no Node. */
const WITHOUT_NODE = ["--no-default-features", "--features", "archive,server,postgres,defects"];

const KILLS = 50;
const PROCESSES_SECONDS = 10;
const NETWORK_SECONDS = 45;
const POSTGRES_FAULTS = 8;
const REPLICA_KILLS = 30;
const REPLICA_CUTS = 100;
const FUZZ_SECONDS = 15;

/** All steps in the order in which each lane takes them. */
export function steps(root) {
  return [
    step("first", "postgres", postgres()),
    step("first", "chromium", chromium()),
    step("first", "python", python()),

    node("install", npmCi(root, ".")),
    node("lint", ["npm", "run", "lint"], { needs: ["install"] }),
    node("addon", ["npm", "run", "build:addon"]),
    node("ts", ["npm", "run", "build:ts"], { needs: ["install"] }),
    node("studio-packages", npmCi(root, "studio")),
    node("studio", ["npm", "run", "build:studio"], { needs: ["studio-packages"] }),
    node("runtimes", npmCi(root, "__test__/runtime")),
    node("peers", npmCi(root, "__test__/peers")),
    node("bundler-packages", npmCi(root, "__test__/bundlers")),
    node("types", ["npm", "run", "test:types"], { needs: ["install", "runtimes"] }),
    node("node-test", ["npm", "test", "--", "--retry"], {
      needs: ["addon", "ts", "runtimes"],
      minutes: 15,
    }),

    rust("components", rustComponents()),
    rust("fmt", ["cargo", "fmt", "--check"]),
    rust("clippy", [
      ...["cargo", "clippy", "--all-targets", "--features", "defects"],
      ...["--", "-D", "warnings"],
    ]),
    rust("clippy-plain", [
      ...["cargo", "clippy", "--all-targets", "--no-default-features", "--features", "server"],
      ...["--", "-D", "warnings"],
    ]),
    rust("rust-test", rustTest(), { minutes: 15 }),
    rust("rust-doc", ["cargo", "test", "--doc", ...WITHOUT_NODE]),
    rust("fuzz-build", ["npm", "run", "fuzz", "--", "--quick", "--build-only"], { minutes: 15 }),
    rust("fuzz", ["npm", "run", "fuzz", "--", "--quick", "--seconds", `${FUZZ_SECONDS}`], {
      needs: ["fuzz-build"],
    }),

    either("conformance", ["npm", "run", "test:runtime"], { needs: ["addon", "ts", "runtimes"] }),
    either("studio-test", ["npm", "run", "test:studio"], {
      needs: ["addon", "ts", "studio", "chromium"],
      minutes: 15,
    }),
    either("bundlers", ["node", "__test__/bundlers/run.mjs"], {
      needs: ["addon", "ts", "runtimes", "bundler-packages"],
    }),
    either("clients", ["node", "__test__/peers/run.mjs"], {
      needs: ["addon", "ts", "runtimes", "peers"],
    }),
    either("matrix", ["node", "__test__/peers/matrix.mjs"], {
      needs: ["addon", "ts", "runtimes"],
    }),
    either("http-schema", ["node", "__test__/schema/run.mjs"], {
      needs: ["addon", "ts", "python"],
    }),
    either("archive-s3", ["node", "__test__/archive/run.mjs"], {
      needs: ["addon", "ts", "python"],
    }),
    either("crash", ["npm", "run", "test:crash", "--", "--kills", `${KILLS}`], {
      needs: ["addon", "ts"],
    }),
    either(
      "processes",
      ["npm", "run", "test:processes", "--", "--seconds", `${PROCESSES_SECONDS}`],
      {
        needs: ["addon", "ts"],
      },
    ),
    either("network", ["npm", "run", "test:network", "--", "--seconds", `${NETWORK_SECONDS}`], {
      needs: ["addon", "ts"],
    }),
    either(
      "replica",
      [
        ...["npm", "run", "test:replica", "--"],
        ...["--kills", `${REPLICA_KILLS}`, "--cuts", `${REPLICA_CUTS}`],
      ],
      { needs: ["addon", "ts"] },
    ),
    either("faults", ["npm", "run", "test:faults", "--", "--faults", `${POSTGRES_FAULTS}`], {
      needs: ["addon", "ts"],
    }),
  ];
}

const node = (name, command, more) => step("node", name, command, more);
const rust = (name, command, more) => step("rust", name, command, more);
/** These play with processes, browsers and networks, so a failure is tried once more. */
const either = (name, command, more) => step("either", name, command, { ...more, tries: 2 });

function step(lane, name, command, more = {}) {
  const { needs = [], minutes = STEP_MINUTES_MAX, tries = 1 } = more;
  return { lane, name, command, needs, minutes, tries };
}

/** `npm ci` in a folder, or null if the installed packages match the lock file. */
function npmCi(root, folder) {
  const changed = (...path) =>
    statSync(join(root, folder, ...path), { throwIfNoEntry: false })?.mtimeMs;
  const locked = changed("package-lock.json");
  const installed = changed("node_modules", ".package-lock.json");
  if (locked !== undefined && installed !== undefined && installed >= locked) {
    return null;
  }
  // Without scripts: building is a separate step with its own time and failure, and Bun and Deno
  // run from the files in their packages.
  return ["npm", "ci", "--ignore-scripts", "--prefix", folder];
}

/** Installs PostgreSQL where the tests would find none. */
function postgres() {
  return findBinaries() === undefined ? ["node", "scripts/ci/install-postgres.mjs"] : null;
}

/** Installs Chromium where the tests of the studio would find none. */
function chromium() {
  return findChromium() === undefined ? ["node", "scripts/ci/install-chromium.mjs"] : null;
}

/** Installs what makes environments of Python where it is missing: Debian has it in a package of its own. */
function python() {
  return works("python3", ["-c", "import ensurepip, venv"])
    ? null
    : ["node", "scripts/ci/install-python.mjs"];
}

function rustComponents() {
  return works("cargo", ["fmt", "--version"]) && works("cargo", ["clippy", "--version"])
    ? null
    : ["rustup", "component", "add", "rustfmt", "clippy"];
}

function rustTest() {
  return works("cargo", ["nextest", "--version"])
    ? ["cargo", "nextest", "run", "--retries", "1", ...WITHOUT_NODE]
    : ["cargo", "test", "--all-targets", ...WITHOUT_NODE];
}

function works(command, args) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}
