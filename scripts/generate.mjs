// Duty: writes the files that are generated from declarations in the code. CI compares each of them.
//
//   npm run generate

import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
/** js/native/contract.ts and the tables of js/native/contract.md. */
const TABLES = ["test", "--no-default-features", "--quiet", "--test", "generated"];

run("cargo", TABLES, { OPENKV_GENERATE: "1" });
run(process.execPath, ["scripts/features.mjs"], {});

function run(program, args, env) {
  const { status, error } = spawnSync(program, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
