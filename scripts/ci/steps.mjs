// Duty: the table of CI steps: the name, command, lane and hang guard of each.
//
// Three lanes run in parallel, each one step at a time: "rust" compiles and checks, "node" builds the addon
// and tests it, "light" has the steps that mostly wait, for packages, timers, processes and networks, while
// the other two keep two processors busy. Whichever has ended takes the steps of "either", so that all end
// at about the same time. `needs` names the steps that must succeed first, of any lane. A step whose need
// failed is reported as not run, which fails the whole run. `after` names steps that only have to end: most
// steps wait for the addon, so no other build shares the processors with its own.

import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { findChromium } from "../../__test__/kit/chromium.mjs";
import { findBinaries } from "../../__test__/kit/postgres/programs.mjs";
import { FLAGS, PROFILE } from "../rust-tests.mjs";

/** Hang guard of a step that names none, in minutes. */
const STEP_MINUTES_MAX = 8;

/** The step fetches packages. */
const DOWNLOADS = { downloads: true };

const KILLS = 50;
const PROCESSES_SECONDS = 10;
const NETWORK_SECONDS = 45;
const POSTGRES_FAULTS = 8;
const REPLICA_KILLS = 30;
const REPLICA_CUTS = 100;

/** All steps in the order in which each lane takes them. */
export function steps(root) {
  return [
    node("addon", ["npm", "run", "build:addon"], { needs: ["components"] }),
    // A build would remove what the steps beside it run.
    node("node-test", ["npm", "test", "--", "--no-build"], {
      needs: ["addon", "ts", "runtimes", "postgres"],
      minutes: 15,
    }),

    rust("components", rustComponents()),
    rust("fmt", ["cargo", "fmt", "--all", "--check"]),
    // Clippy lints what it compiles here, benchmarks too.
    rust("rust-build", cargo("test", "--profile", PROFILE, "--all-targets", "--no-run"), {
      after: ["addon"],
    }),
    rust("rust-test", cargo(...testRunner(), "--no-fail-fast"), {
      needs: ["postgres", "rust-build"],
      minutes: 15,
    }),
    rust("rust-doc", cargo("test", "--profile", PROFILE, "--doc")),
    rust("fuzz", ["npm", "run", "fuzz", "--", "--quick"]),

    light("install", npmCi(root, "."), DOWNLOADS),
    light("ts", ["npm", "run", "build:ts"], { needs: ["install"] }),
    light("runtimes", npmCi(root, "__test__/runtime"), DOWNLOADS),
    light("postgres", postgres(), DOWNLOADS),
    // Biome colours its output without a terminal too.
    light("lint", ["npm", "run", "lint", "--", "--colors=off"], { needs: ["install"] }),
    light("types", ["npm", "run", "test:types"], { needs: ["install", "runtimes"] }),
    light("studio-packages", npmCi(root, "studio"), DOWNLOADS),
    light("studio", ["npm", "run", "build:studio"], { needs: ["studio-packages"] }),
    light("peers", npmCi(root, "__test__/peers"), DOWNLOADS),
    light("bundler-packages", npmCi(root, "__test__/bundlers"), DOWNLOADS),
    light("integration-packages", npmCi(root, "__test__/integrations"), DOWNLOADS),
    light("next-packages", npmCi(root, "__test__/next"), DOWNLOADS),
    light("chromium", chromium(), DOWNLOADS),
    light("python", python(), DOWNLOADS),

    light("crash", ["npm", "run", "test:crash", "--", "--kills", `${KILLS}`], {
      needs: ["addon", "ts"],
    }),
    light(
      "replica",
      [
        ...["npm", "run", "test:replica", "--"],
        ...["--kills", `${REPLICA_KILLS}`, "--cuts", `${REPLICA_CUTS}`],
      ],
      { needs: ["addon", "ts"] },
    ),
    light("faults", ["npm", "run", "test:faults", "--", "--faults", `${POSTGRES_FAULTS}`], {
      needs: ["addon", "ts", "postgres"],
    }),
    light("network", ["npm", "run", "test:network", "--", "--seconds", `${NETWORK_SECONDS}`], {
      needs: ["addon", "ts"],
    }),
    light(
      "processes",
      ["npm", "run", "test:processes", "--", "--seconds", `${PROCESSES_SECONDS}`],
      { needs: ["addon", "ts"] },
    ),
    light("archive-s3", ["node", "__test__/archive/run.mjs"], {
      needs: ["addon", "ts", "python"],
    }),
    light("bucket-s3", ["node", "__test__/bucket/run.mjs"], {
      needs: ["addon", "ts", "python"],
    }),
    light("http-schema", ["node", "__test__/schema/run.mjs"], {
      needs: ["addon", "ts", "python"],
    }),
    light("clients", ["node", "__test__/peers/run.mjs"], {
      needs: ["addon", "ts", "runtimes", "peers", "postgres"],
    }),
    light("matrix", ["node", "__test__/peers/matrix.mjs"], {
      needs: ["addon", "ts", "runtimes"],
    }),

    // The longest first, so that the lanes end at about the same time.
    either("conformance", ["npm", "run", "test:runtime"], {
      needs: ["addon", "ts", "runtimes", "postgres"],
    }),
    either("studio-test", ["npm", "run", "test:studio"], {
      needs: ["addon", "ts", "studio", "chromium"],
      minutes: 15,
    }),
    either("integrations", ["node", "__test__/integrations/run.mjs", "--quick"], {
      needs: ["addon", "ts", "runtimes", "integration-packages"],
    }),
    either("bundlers", ["node", "__test__/bundlers/run.mjs"], {
      needs: ["addon", "ts", "runtimes", "bundler-packages"],
    }),
    either("next", ["node", "__test__/next/run.mjs"], {
      needs: ["install", "addon", "ts", "next-packages"],
    }),
  ];
}

const node = (name, command, more) => step("node", name, command, more);
const rust = (name, command, more) => step("rust", name, command, more);
const light = (name, command, more) => step("light", name, command, more);
const either = (name, command, more) => step("either", name, command, more);

function step(lane, name, command, more = {}) {
  const { needs = [], after = [], minutes = STEP_MINUTES_MAX, downloads = false } = more;
  return { lane, name, command, needs, after, minutes, downloads };
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

function cargo(...command) {
  return ["cargo", ...command, ...FLAGS];
}

function testRunner() {
  return works("cargo", ["nextest", "--version"])
    ? ["nextest", "run", "--cargo-profile", PROFILE]
    : ["test", "--profile", PROFILE];
}

function works(command, args) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}
