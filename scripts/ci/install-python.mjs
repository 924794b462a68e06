// Duty: installs Python with its environments on Debian and Ubuntu; elsewhere it says what to install.

import process from "node:process";
import { installOneOf } from "./apt.mjs";

if (!installOneOf("python3-venv")) {
  console.error("The tests of the HTTP API need Python 3.10 or newer with the module venv.");
  process.exit(1);
}
