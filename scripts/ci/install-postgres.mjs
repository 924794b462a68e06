// Duty: installs PostgreSQL for the tests on Debian and Ubuntu; elsewhere it says what to install.

import process from "node:process";
import { MISSING } from "../../__test__/kit/postgres/programs.mjs";
import { installOneOf } from "./apt.mjs";

/** The version that the tests were written with; where it is missing, the one of the distribution. */
if (!installOneOf("postgresql-15", "postgresql")) {
  console.error(MISSING);
  process.exit(1);
}
