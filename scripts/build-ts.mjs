// Duty: compiles js/ to dist/ as CommonJS, and js/index.ts with its imports to dist/esm/ as ES
// modules for bundlers; the subpaths of the package, js/drivers/, js/otel/ and js/testing/, to both forms side by
// side, with declarations; deletes compiled files whose sources are gone. scripts/build-studio.mjs builds
// dist/studio/.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const esm = join(root, "dist", "esm");
const studio = join(root, "dist", "studio");
const binding = join(root, "dist", "native", "binding.js");
const compiler = join(root, "node_modules", "typescript", "bin", "tsc");

/** The folders of js/ whose files are entries of the package beside its main one. */
const SUBPATHS = ["drivers", "otel", "testing"];
/** The ending of a compiled file. */
const COMPILED = /\.(?:js|mjs|d\.ts|d\.mts)$/;

/** Compiles the TypeScript. Exits with the compiler's code when it fails. */
export function buildTypeScript() {
  if (!existsSync(compiler)) {
    console.error("The TypeScript compiler is not installed. Run `npm install` first.");
    process.exit(1);
  }
  compile("tsconfig.json");
  compile("tsconfig.esm.json");
  compileSubpaths("tsconfig.subpaths.json");
  dropOrphans(join(root, "dist"), join(root, "js"));
  dropOrphans(esm, join(root, "js"));
  finishModules();
  finishExports(join(root, "dist"));
}

function compile(project, ...flags) {
  const { status } = spawnSync(process.execPath, [compiler, "-p", project, ...flags], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) {
    process.exit(status ?? 1);
  }
}

/**
 * Compiles the subpaths to `.js` and `.mjs`, without comments, and their declarations for both. They import
 * openkv by its name, which a file finds only below the package.json with that name: so their modules are
 * not in dist/esm/, which has one of its own.
 */
function compileSubpaths(project) {
  const out = join(root, "dist", "modules");
  const code = ["--declaration", "false", "--isolatedDeclarations", "false", "--removeComments"];
  compile(project, "--emitDeclarationOnly");
  compile(project, ...code);
  compile(
    project,
    ...code,
    ...["--module", "esnext", "--moduleResolution", "bundler"],
    "--outDir",
    out,
  );
  for (const folder of SUBPATHS) {
    const compiled = join(root, "dist", folder);
    const declarations = readdirSync(compiled).filter((name) => name.endsWith(".d.ts"));
    for (const name of declarations) copyModule(join(compiled, name), compiled);
    for (const name of readdirSync(join(out, folder)))
      copyModule(join(out, folder, name), compiled);
  }
  rmSync(out, { recursive: true });
}

/** Copies a file with the ending of a module, with which it also imports the others. */
function copyModule(file, folder) {
  const name = basename(file).replace(/\.(js|ts)$/, ".m$1");
  const text = readFileSync(file, "utf8").replace(/( from "\.[^"]*)\.js";$/gm, '$1.mjs";');
  writeFileSync(join(folder, name), text);
}

/**
 * Turns the compiler's output in dist/esm/ into ES modules: adds their package.json, full paths,
 * their loader.
 */
function finishModules() {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const loader = readFileSync(join(root, "scripts", "native-loader.mjs"), "utf8");
  mkdirSync(join(esm, "native"), { recursive: true });
  writeFileSync(join(esm, "native", "load.js"), loader.replace("__OPENKV_VERSION__", version));
  writeFileSync(join(esm, "package.json"), '{ "type": "module", "sideEffects": false }\n');
  for (const name of readdirSync(esm, { recursive: true })) {
    if (!name.endsWith(".js")) continue;
    const text = readFileSync(join(esm, name), "utf8");
    const full = text.replace(/( from "\.[^"]*?)(?:\.js)?";$/gm, '$1.js";');
    if (full !== text) writeFileSync(join(esm, name), full);
  }
}

/**
 * Descriptors that inherit nothing: a program with `get` or `value` on Object.prototype can load the
 * package too.
 */
function finishExports(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (path !== esm && path !== studio) finishExports(path);
    } else if (entry.name.endsWith(".js")) {
      const text = readFileSync(path, "utf8");
      const bare = text
        .replace('"__esModule", { value', '"__esModule", { __proto__: null, value')
        .replaceAll(
          "{ enumerable: true, get: function",
          "{ __proto__: null, enumerable: true, get: function",
        );
      if (bare !== text) writeFileSync(path, bare);
    }
  }
}

/** Deletes every compiled file without a source, except the addon's loader in dist/native/. */
function dropOrphans(compiled, sources) {
  for (const entry of readdirSync(compiled, { withFileTypes: true })) {
    const path = join(compiled, entry.name);
    if (entry.isDirectory()) {
      if (path !== esm && path !== studio) {
        dropOrphans(path, join(sources, entry.name));
      }
    } else if (COMPILED.test(entry.name) && path !== binding) {
      if (!existsSync(join(sources, entry.name.replace(COMPILED, ".ts")))) {
        rmSync(path);
      }
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  buildTypeScript();
}
