// Duty: the programs of PostgreSQL: where they are, as which user they run, and how they are called.

import { execFile, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";

/** Oldest version that the tests run on. */
const MAJOR_MIN = 15;

/** PostgreSQL's programs refuse to run as root, and run as this user instead. */
const USER = "postgres";

/** A hang guard for one call of a program. */
const PROGRAM_MS_MAX = 120_000;

export const MISSING = `\
These tests need PostgreSQL ${MAJOR_MIN} or newer, and found none (pg_config --bindir, PGBIN).
Install it:
  Debian, Ubuntu   sudo apt-get install postgresql-${MAJOR_MIN} (or a newer one that apt-cache lists)
  macOS            brew install postgresql@${MAJOR_MIN}, and its bin folder in PATH
  Windows          the installer of postgresql.org, and PGBIN=its bin folder`;

const isRoot = process.getuid?.() === 0;
const suffix = process.platform === "win32" ? ".exe" : "";
let found;

/** The folder of the programs, where there is one. */
export function findBinaries() {
  found ??= candidates().find(isNewEnough);
  return found;
}

function candidates() {
  const config = spawnSync("pg_config", ["--bindir"], { encoding: "utf8" });
  return [process.env.PGBIN, config.stdout?.trim()].filter(Boolean);
}

function isNewEnough(folder) {
  const path = join(folder, `postgres${suffix}`);
  if (!existsSync(path)) return false;
  const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8" });
  return Number(/(\d+)/.exec(stdout ?? "")?.[1]) >= MAJOR_MIN;
}

/**
 * Command and arguments of a program, as a user that PostgreSQL accepts. On Linux the program gets
 * `onParentsDeath` when its parent dies, so that a killed test leaves no server behind.
 */
export function commandLine(name, args, { onParentsDeath } = {}) {
  const folder = findBinaries();
  if (folder === undefined) throw new Error(MISSING);
  const program = join(folder, name + suffix);
  const options = [];
  if (isRoot) options.push(`--reuid=${USER}`, `--regid=${USER}`, "--init-groups");
  if (onParentsDeath && process.platform === "linux") options.push("--pdeathsig", onParentsDeath);
  return options.length === 0 ? [program, args] : ["setpriv", [...options, program, ...args]];
}

/** Runs a program until it ends; answers what it printed. Rejects with that if it fails. */
export async function run(name, ...args) {
  const [command, all] = commandLine(name, args);
  // The current folder may be one that the other user cannot enter.
  const options = { cwd: tmpdir(), timeout: PROGRAM_MS_MAX, maxBuffer: 1 << 26 };
  const { stdout } = await promisify(execFile)(command, all, options);
  return stdout;
}

/** A new folder that belongs to the user of the programs. The caller removes it. */
export function newServerFolder() {
  const folder = mkdtempSync(join(tmpdir(), "openkv-postgres-"));
  own(folder);
  return folder;
}

/** Makes a file or folder that of the user of the programs. */
export function own(path) {
  if (isRoot) chownSync(path, idOf("-u"), idOf("-g"));
}

function idOf(which) {
  return Number(spawnSync("id", [which, USER], { encoding: "utf8" }).stdout);
}
