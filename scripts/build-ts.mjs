// Duty: makes the JavaScript of the package from js/. rolldown joins the modules to one file each: dist/index.js
// and the command dist/cli/openkv.js as CommonJS, dist/esm/index.js for bundlers. tsc checks the types, and compiles
// the subpaths of the package, js/drivers/, js/otel/ and js/testing/, to both forms with declarations, and every
// module by itself to build/, for the tests of single modules. scripts/build-studio.mjs builds dist/studio/.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const modules = join(root, "build");
const compiler = join(root, "node_modules", "typescript", "bin", "tsc");

/** The folders of js/ whose files are entries of the package beside its main one. */
const SUBPATHS = ["drivers", "otel", "testing"];

/** The files of the package as CommonJS, by their sources: each has the same place in dist/ as in js/. */
const ENTRIES = ["index", "cli/openkv", "native/find-addon"];

/** What is loaded when the program runs: modules of Node.js, of other packages, the addon, package.json. */
const EXTERNAL = [/^node:/, "commander", /\/binding\.js$/, /\/package\.json$/];

/** Of every file: strict mode, no property of `exports` beside its exports, and the names of the modules as comments. */
const OUTPUT = {
  codeSplitting: false,
  strict: true,
  generatedCode: { symbols: false },
  comments: { jsdoc: false },
};

/** Builds the JavaScript. Exits with the compiler's code when it fails. */
export async function buildTypeScript() {
  if (!existsSync(compiler)) {
    console.error("The TypeScript compiler is not installed. Run `npm install` first.");
    process.exit(1);
  }
  rmSync(modules, { recursive: true, force: true });
  compile("tsconfig.json");
  writeFileSync(
    join(modules, "native", "binding.js"),
    'module.exports = require("../../dist/native/binding.js");\n',
  );
  removeCompiled();
  compileSubpaths("tsconfig.subpaths.json");
  await bundle();
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

/** Removes what an earlier build has made, but for the studio, the addon and its loader. */
function removeCompiled() {
  for (const name of existsSync(dist) ? readdirSync(dist) : []) {
    if (name !== "studio" && name !== "native") rmSync(join(dist, name), { recursive: true });
  }
  rmSync(join(dist, "native", "find-addon.js"), { force: true });
}

/** Joins the modules of each entry. The stack of an error has names and lines that are readable. */
async function bundle() {
  const { rolldown } = await import("rolldown");
  const joinModules = async (entry, plugins, output) => {
    const input = join(root, "js", `${entry}.ts`);
    const options = { input, platform: "node", external: EXTERNAL, plugins };
    const build = await rolldown({ ...options, cwd: root, tsconfig: "tsconfig.json" });
    await build.write({ ...OUTPUT, ...output });
    await build.close();
  };
  for (const entry of ENTRIES) {
    const file = join(dist, `${entry}.js`);
    await joinModules(entry, [withoutInterop], { file, format: "cjs", esModule: false });
  }
  const esm = join(dist, "esm");
  await joinModules("index", [loaderOfBundles], { file: join(esm, "index.js"), format: "esm" });
  writeFileSync(join(esm, "package.json"), '{ "type": "module", "sideEffects": false }\n');
}

/**
 * A module of Node.js is its own default export. The helper of rolldown for that copies its properties, by
 * descriptors that a program with `get` or `value` on Object.prototype spoils.
 */
const withoutInterop = {
  name: "without-interop",
  renderChunk(code) {
    let bare = code.replace(/^\/\/ \\0rolldown\/runtime\.js\n[^]*?^(?=let |const |\/\/ )/m, "");
    for (const [line, module] of bare.matchAll(/^(\w+) = __toESM\(\1\);\n/gm)) {
      bare = bare.replace(line, "").replaceAll(`${module}.default`, module);
    }
    if (/\b__(?:toESM|export|copyProps|defProp)\b/.test(bare)) {
      throw new Error("a helper of rolldown remains");
    }
    return bare;
  },
};

/** The loader of the addon that a bundle of a program needs, in place of js/native/load.ts. */
const loaderOfBundles = {
  name: "loader-of-bundles",
  load(id) {
    if (id !== join(root, "js", "native", "load.ts")) return null;
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const loader = readFileSync(join(root, "scripts", "native-loader.mjs"), "utf8");
    return { code: loader.replace("__OPENKV_VERSION__", version), moduleType: "js" };
  },
};

/**
 * Compiles the subpaths to `.js` and `.mjs`, without comments, and their declarations for both. They import
 * openkv by its name, which a file finds only below the package.json with that name: so their modules are
 * not in dist/esm/, which has one of its own.
 */
function compileSubpaths(project) {
  const out = join(dist, "modules");
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
    const compiled = join(dist, folder);
    const declarations = readdirSync(compiled).filter((name) => name.endsWith(".d.ts"));
    for (const name of declarations) copyModule(join(compiled, name), compiled);
    for (const name of readdirSync(join(out, folder)))
      copyModule(join(out, folder, name), compiled);
    finishExports(compiled);
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
 * Descriptors that inherit nothing: a program with `get` or `value` on Object.prototype can load the
 * package too.
 */
function finishExports(folder) {
  for (const name of readdirSync(folder)) {
    if (!name.endsWith(".js")) continue;
    const text = readFileSync(join(folder, name), "utf8");
    const bare = text
      .replace('"__esModule", { value', '"__esModule", { __proto__: null, value')
      .replaceAll(
        "{ enumerable: true, get: function",
        "{ __proto__: null, enumerable: true, get: function",
      );
    if (bare !== text) writeFileSync(join(folder, name), bare);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildTypeScript();
}
