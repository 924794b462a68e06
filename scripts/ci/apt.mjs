// Duty: installs packages on Debian and Ubuntu, as root or by sudo without a password.

import { spawnSync } from "node:child_process";
import process from "node:process";

const asRoot = process.getuid?.() === 0 ? [] : ["sudo", "-n"];
// The package of a server would otherwise start one.
const settings = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"];

/** Installs the first of these packages that can be installed; returns whether one was. */
export function installOneOf(...packages) {
  return (
    apt("update") &&
    packages.some((name) => apt("install", "--yes", "--no-install-recommends", name))
  );
}

function apt(...args) {
  const [command, ...rest] = [...asRoot, ...settings, "apt-get", ...args];
  return spawnSync(command, rest, { stdio: "inherit" }).status === 0;
}
