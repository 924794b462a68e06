// Duty: the configurations of docs/bundlers.md, run: an application in, a program out.

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rollup } from "rollup";
import * as vite from "vite";
import webpack from "webpack";
import { bun } from "../runtime/binaries.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const page = readFileSync(join(here, "..", "..", "docs", "bundlers.md"), "utf8");
const esbuild = join(here, "node_modules", "esbuild", "bin", "esbuild");

/**
 * Every way to bundle. `build(project, out)` bundles `app.mjs` of the project into the folder `out` and
 * answers the program's file. `carries`: the addon is in what comes out. `runtime`: none is Node.js,
 * null the program itself.
 */
export const bundles = [
  { name: "esbuild, ES module", build: byCommand("npx esbuild", "--format=esm", "app.mjs") },
  { name: "esbuild, CommonJS", build: byCommand("npx esbuild", "--format=cjs", "app.cjs") },
  { name: "rollup, ES module", build: (...at) => withRollup("es", "app.mjs", ...at) },
  { name: "rollup, CommonJS", build: (...at) => withRollup("cjs", "app.cjs", ...at) },
  { name: "vite, SSR with noExternal", build: withVite },
  { name: "webpack, CommonJS", build: (...at) => withWebpack(false, ...at) },
  { name: "webpack, ES module", build: (...at) => withWebpack(true, ...at) },
  {
    name: "bun build for Node.js",
    carries: true,
    build: byCommand("bun build", "--target=node", "app.js"),
  },
  {
    name: "bun build",
    runtime: bun,
    carries: true,
    build: byCommand("bun build", "--target=bun", "app.js"),
  },
  {
    name: "bun build --compile",
    runtime: null,
    carries: true,
    build: byCommand("bun build", "--compile", "app"),
  },
];

/** The line of the page that starts with the command and has the flag. */
function byCommand(command, flag, name) {
  return (project, out) => {
    const line = page.split("\n").find((one) => one.startsWith(command) && one.includes(flag));
    const args = line.slice(command.length).trim().replace("=dist", `=${out}`).split(" ");
    const [file, first] =
      command === "bun build" ? [bun(), ["build"]] : [process.execPath, [esbuild]];
    const { status, stdout, stderr } = spawnSync(file, [...first, ...args], {
      cwd: project,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`${line}\n${stdout}${stderr}`);
    return join(out, name);
  };
}

/** The block of the page that begins with the file's name, as the file's default export. */
async function configuration(name) {
  const [, source] = new RegExp(`\`\`\`js\\n(// ${name}\\n.*?)\`\`\``, "s").exec(page);
  // Below this folder, where the plugins are installed.
  const file = join(here, "node_modules", `.${process.pid}-${name}`);
  writeFileSync(file, source);
  return (await import(pathToFileURL(file).href)).default;
}

async function withRollup(format, name, project, out) {
  const file = join(out, name);
  const { input, output, ...options } = await configuration("rollup.config.mjs");
  const bundle = await rollup({ ...options, input: join(project, input), onLog: () => {} });
  await bundle.write({ ...output, file, format });
  await bundle.close();
  return file;
}

async function withVite(project, out) {
  const { build, ...options } = await configuration("vite.config.mjs");
  await vite.build({
    ...options,
    root: project,
    configFile: false,
    logLevel: "error",
    build: { ...build, outDir: out, emptyOutDir: false },
  });
  return join(out, "app.mjs");
}

async function withWebpack(module, project, out) {
  const { output, ...options } = await configuration("webpack.config.mjs");
  const filename = module ? "app.mjs" : output.filename;
  const made = {
    ...options,
    context: project,
    output: {
      ...output,
      path: out,
      filename,
      ...(module && { module: true, chunkFormat: "module" }),
    },
    ...(module && { experiments: { outputModule: true } }),
  };
  return await new Promise((resolve, reject) => {
    webpack(made, (error, stats) => {
      if (error) reject(error);
      else if (stats.hasErrors()) reject(new Error(stats.toString("errors-only")));
      else resolve(join(out, filename));
    });
  });
}
