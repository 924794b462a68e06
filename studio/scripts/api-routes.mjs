// Duty: writes src/api/routes.ts from the OpenAPI document of a server.
//
//   node scripts/api-routes.mjs           writes the file
//   node scripts/api-routes.mjs --check   fails if it is not what would be written
//
// The document is that of a server of one file, which the parent folder has built.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { serve } from "../../index.mjs";

const FILE = fileURLToPath(new URL("../src/api/routes.ts", import.meta.url));
const HEAD = `// Written by scripts/api-routes.mjs from the OpenAPI document; do not edit.

/** The routes of the API of a database. */
export type Path =
`;

const folder = mkdtempSync(join(tmpdir(), "openkv-studio-"));
const server = await serve({ path: join(folder, "types.sqlite3"), listen: "127.0.0.1:0" });
try {
  const { paths } = await (await fetch(`${server.url}/openapi.json`)).json();
  const routes = Object.keys(paths).filter((path) => path.startsWith("/api/"));
  const text = `${HEAD}${routes.map((path) => `  | "${path.slice("/api".length)}"`).join("\n")};\n`;
  if (!process.argv.includes("--check")) writeFileSync(FILE, text);
  else if (readFileSync(FILE, "utf8") !== text) {
    console.error("src/api/routes.ts is stale: run `npm --prefix studio run types`");
    process.exitCode = 1;
  }
} finally {
  await server.close();
  rmSync(folder, { recursive: true });
}
