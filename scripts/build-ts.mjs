// Duty: compile js/ to dist/, and drop what an earlier compilation left there of deleted sources.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const compiler = join(root, "node_modules", "typescript", "bin", "tsc");

/** Compiles the TypeScript. Exits with the compiler's code when it fails. */
export function buildTypeScript() {
  if (!existsSync(compiler)) {
    console.error("The TypeScript compiler is not installed. Run `npm install` first.");
    process.exit(1);
  }
  const { status } = spawnSync(process.execPath, [compiler, "-p", "tsconfig.json"], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) {
    process.exit(status ?? 1);
  }
  dropOrphans(join(root, "dist"), join(root, "js"));
}

/** Deletes every compiled file that has no source any more; dist/native/ is the addon's. */
function dropOrphans(compiled, sources) {
  for (const entry of readdirSync(compiled, { withFileTypes: true })) {
    const path = join(compiled, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== "native") {
        dropOrphans(path, join(sources, entry.name));
      }
    } else if (entry.name.endsWith(".js")) {
      if (!existsSync(join(sources, entry.name.replace(/\.js$/, ".ts")))) {
        rmSync(path);
      }
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  buildTypeScript();
}
