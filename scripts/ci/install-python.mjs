// Duty: installs Python with its environments on Debian and Ubuntu, as root or by sudo without a
// password; elsewhere it says what to install.

import { spawnSync } from "node:child_process";
import process from "node:process";

const asRoot = process.getuid?.() === 0 ? [] : ["sudo", "-n"];

if (!(apt("update") && apt("install", "--yes", "--no-install-recommends", "python3-venv"))) {
  console.error("The tests of the HTTP API need Python 3.10 or newer with the module venv.");
  process.exit(1);
}

function apt(...args) {
  const [command, ...rest] = [
    ...asRoot,
    "env",
    "DEBIAN_FRONTEND=noninteractive",
    "apt-get",
    ...args,
  ];
  return spawnSync(command, rest, { stdio: "inherit" }).status === 0;
}
