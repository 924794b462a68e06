// Duty: installs Chromium for the tests of the studio on Debian; elsewhere it says what to install.

import process from "node:process";
import { MISSING } from "../../__test__/kit/chromium.mjs";
import { installOneOf } from "./apt.mjs";

if (!installOneOf("chromium")) {
  console.error(MISSING);
  process.exit(1);
}
