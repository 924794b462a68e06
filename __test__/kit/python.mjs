// Duty: programs of Python packages, in a virtual environment below target/.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Installs the packages of a file of requirements, unless they are there in these versions; returns the folder of
 * their programs. `name` is that of the environment.
 */
export function pythonPrograms(name, requirements) {
  const venv = fileURLToPath(new URL(`../../target/${name}`, import.meta.url));
  const programs = join(venv, "bin");
  const [wanted, installed] = [readFileSync(requirements, "utf8"), join(venv, "installed.txt")];
  if (existsSync(installed) && readFileSync(installed, "utf8") === wanted) return programs;
  const quiet = ["--quiet", "--disable-pip-version-check"];
  for (const [command, ...args] of [
    ["python3", "-m", "venv", "--clear", venv],
    [join(programs, "pip"), "install", ...quiet, "--requirement", requirements],
  ]) {
    const { status, error } = spawnSync(command, args, { stdio: "inherit" });
    if (status !== 0) throw error ?? new Error(`${command} ended with ${status}`);
  }
  writeFileSync(installed, wanted);
  return programs;
}
