// Duty: installs PostgreSQL for the tests on Debian and Ubuntu, as root or by sudo without a password;
// elsewhere it says what to install.

import { spawnSync } from "node:child_process";
import process from "node:process";
import { MISSING } from "../../__test__/kit/postgres/programs.mjs";

/** The version that the tests were written with; where it is missing, the one of the distribution. */
const PACKAGES = ["postgresql-15", "postgresql"];

const asRoot = process.getuid?.() === 0 ? [] : ["sudo", "-n"];
// The package would otherwise start a server of its own.
const settings = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"];

const isInstalled =
  apt("update") &&
  PACKAGES.some((name) => apt("install", "--yes", "--no-install-recommends", name));
if (!isInstalled) {
  console.error(MISSING);
  process.exit(1);
}

function apt(...args) {
  const [command, ...rest] = [...asRoot, ...settings, "apt-get", ...args];
  return spawnSync(command, rest, { stdio: "inherit" }).status === 0;
}
