// Duty: builds the Rust addon and copies it, with its loader, to dist/native/.
//
//   node scripts/build-addon.mjs [--target <rust triple>] [--profile <cargo profile>] [--zig]
//
// Profiles are those of Cargo.toml: "release" (the default) is what packages and benchmarks use,
// "clone" what `npm install` and CI build, in a third of the time, "dev-addon" builds incrementally.
// --zig builds through cargo-zigbuild (a cross build that links against an old glibc). A build in
// which nothing changed costs what cargo needs to see that: well under a second.

import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { addonFile, platformOfTarget } from "./platforms.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const nativeDir = join(root, "dist", "native");

/** Oldest glibc that the published linux packages run on (RHEL 8, Debian 10, Ubuntu 20.04). */
const GLIBC_MIN = "2.28";

const CARGO_MISSING = `
openkv's addon is written in Rust, and cargo was not found.

  Install Rust from https://rustup.rs (or your system's packages), open a new shell
  so that cargo is on the PATH, and run the same command again.

Only a clone of the repository needs this: the package published on npm brings the
addon ready-made (npm install openkv) and needs neither cargo nor a compiler.
`;

/** The profile of `npm install`, `npm test` and CI. */
export const CLONE_PROFILE = "clone";

/**
 * The profile of what npm gives out, which names no folder of the machine that built it. The others keep its paths, which
 * debuggers follow, and have the flags of `cargo test`: CI tests with the dependencies that are compiled for the addon.
 */
const PUBLISHED_PROFILE = "release";

/** Builds the addon and returns the path of the file in dist/native/. Exits when cargo fails. */
export function buildAddon({ target, profile = PUBLISHED_PROFILE, zig = false } = {}) {
  const triple = target ?? hostTarget();
  const file = addonFile(platformOfTarget(triple));
  const built = compile(triple, target !== undefined, profile, zig);
  mkdirSync(nativeDir, { recursive: true });
  const placed = join(nativeDir, file);
  place(built, placed);
  if (profile === PUBLISHED_PROFILE) {
    refuseMachinePaths(placed);
  }
  place(join(root, "scripts", "native-loader.js"), join(nativeDir, "binding.js"));
  return placed;
}

function hostTarget() {
  const { error, status, stdout, stderr } = spawnSync("rustc", ["-vV"], { encoding: "utf8" });
  if (error?.code === "ENOENT") {
    fail(CARGO_MISSING);
  }
  const host = /^host: (\S+)$/m.exec(stdout ?? "")?.[1];
  if (status !== 0 || host === undefined) {
    fail(`rustc -vV did not name its host.\n${error?.message ?? stderr}`);
  }
  return host;
}

/** Runs cargo and returns the path of the library it reports. */
function compile(triple, cross, profile, zig) {
  // `cargo rustc --crate-type cdylib`, because cargo disables link-time optimisation for a library
  // that is built as cdylib and rlib together.
  const args = ["rustc", "--lib", "--crate-type", "cdylib", "--profile", profile];
  args.push("--message-format", "json-render-diagnostics");
  if (process.env.CI) {
    // Tests and releases use the versions of the lock file; in a local build cargo may update it.
    args.push("--locked");
  }
  if (cross) {
    args.push("--target", zig && triple.endsWith("-linux-gnu") ? `${triple}.${GLIBC_MIN}` : triple);
  }
  const env = environment(triple, profile);
  const { error, status, signal, stdout } = spawnSync(zig ? "cargo-zigbuild" : "cargo", args, {
    cwd: root,
    env,
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: Infinity,
    encoding: "utf8",
  });
  if (error !== undefined || status !== 0) {
    const how = error?.message ?? signal ?? `exit code ${status}`;
    fail(`cargo could not build the addon (${how}).`);
  }
  return libraryIn(stdout);
}

/** The environment of cargo: flags for the target, and for a release none of the paths of this machine. */
function environment(triple, profile) {
  const env = { ...process.env };
  const flags = (env.RUSTFLAGS ?? "").split(" ").filter((flag) => flag !== "");
  if (triple.endsWith("-musl")) {
    // A shared library must use the same C library as the Node process that loads it.
    flags.push("-C", "target-feature=-crt-static");
  }
  if (profile === PUBLISHED_PROFILE) {
    const remapped = machineFolders().map(([from, to]) => [from, to].join("="));
    flags.push(...remapped.map((pair) => `--remap-path-prefix=${pair}`));
    // C code that build scripts compile has the same paths in its messages.
    env.CFLAGS = [env.CFLAGS, ...remapped.map((pair) => `-ffile-prefix-map=${pair}`)]
      .join(" ")
      .trim();
    if (process.platform === "win32") delete env.CFLAGS;
  }
  // Unlike RUSTFLAGS, this permits spaces in folder names.
  env.CARGO_ENCODED_RUSTFLAGS = flags.join("\x1f");
  delete env.RUSTFLAGS;
  return env;
}

/** Folders of this machine that rustc would write into messages, and their replacements. */
function machineFolders() {
  const cargo = process.env.CARGO_HOME ?? join(homedir(), ".cargo");
  const sources = join(cargo, "registry", "src");
  // The name of this folder depends on the registry; it exists once the sources are fetched.
  spawnSync("cargo", ["fetch", "--locked"], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  const registries = existsSync(sources) ? readdirSync(sources) : [];
  return [
    [homedir(), "home"],
    [cargo, "cargo"],
    [root, "openkv"],
    // The last matching prefix is used.
    ...registries.map((registry) => [join(sources, registry), "crates"]),
  ];
}

/** Fails if the addon names a folder of the machine that built it. */
function refuseMachinePaths(file) {
  const bytes = readFileSync(file);
  for (const [folder] of machineFolders()) {
    const at = bytes.indexOf(`${folder}${sep}`);
    if (at >= 0) {
      const found = bytes.toString("latin1", at, at + 200).replace(/[^ -~].*/s, "");
      fail(`${basename(file)} names a folder of this machine: ${found}`);
    }
  }
}

function libraryIn(messages) {
  for (const line of messages.split("\n")) {
    if (!line.startsWith("{")) {
      continue;
    }
    const message = JSON.parse(line);
    const isOwn = message.reason === "compiler-artifact" && message.target.name === "openkv";
    if (isOwn && message.target.kind.includes("cdylib")) {
      const library = message.filenames.find((name) => /\.(so|dylib|dll)$/.test(name));
      if (library !== undefined) {
        return library;
      }
    }
  }
  return fail("cargo built the addon but did not say where it is.");
}

/**
 * Copies a file if its bytes differ, by renaming: a running process keeps the file that it has
 * mapped.
 */
function place(from, to) {
  if (sameBytes(from, to)) {
    return;
  }
  const fresh = `${to}.${process.pid}.new`;
  copyFileSync(from, fresh);
  renameSync(fresh, to);
}

function sameBytes(a, b) {
  try {
    return readFileSync(a).equals(readFileSync(b));
  } catch {
    return false;
  }
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      target: { type: "string" },
      profile: { type: "string", default: PUBLISHED_PROFILE },
      zig: { type: "boolean" },
    },
  });
  const file = basename(buildAddon(values));
  console.log(`built dist/native/${file} (profile ${values.profile})`);
}
