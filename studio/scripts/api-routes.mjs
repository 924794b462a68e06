// Duty: writes src/api/routes.ts from the OpenAPI document.
//
//   node scripts/api-routes.mjs           writes the file
//   node scripts/api-routes.mjs --check   fails if it is not what would be written

import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

const FILE = fileURLToPath(new URL("../src/api/routes.ts", import.meta.url));
const HEAD = `// Written by scripts/api-routes.mjs from the OpenAPI document; do not edit.

/** The routes of the API of a database. */
export type Path =
`;

const DOCUMENT = new URL("../../crates/server/src/api/openapi.json", import.meta.url);
const { paths } = JSON.parse(readFileSync(DOCUMENT, "utf8"));
const routes = Object.keys(paths).filter((path) => path.startsWith("/api/"));
const text = `${HEAD}${routes.map((path) => `  | "${path.slice("/api".length)}"`).join("\n")};\n`;
if (!process.argv.includes("--check")) writeFileSync(FILE, text);
else if (readFileSync(FILE, "utf8") !== text) {
  console.error("src/api/routes.ts is stale: run `npm --prefix studio run types`");
  process.exitCode = 1;
}
