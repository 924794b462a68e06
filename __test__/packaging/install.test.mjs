// Duty: the packed tarballs, installed into an empty folder, are a working package: import and
// require give the same classes, types resolve, the command runs, nothing runs at installation.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { pack } from "../../scripts/pack.mjs";
import { packageName, platforms } from "../../scripts/platforms.mjs";
import { newFolder } from "../kit/folder.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = newFolder("packaging");
const project = join(folder, "project");
const installed = join(project, "node_modules", "openkv");
let main;
let platform;

before(() => {
  const packed = pack({ out: join(folder, "tarballs") });
  main = packed.find(({ name }) => name === "openkv");
  platform = packed.find(({ name }) => existsSync(join(root, "npm", name.split("/")[1] ?? "")));
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "name": "project", "private": true }\n');
  install(project, [main.file, platform.file]);
});
function install(cwd, tarballs) {
  const args = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...tarballs];
  const shell = process.platform === "win32";
  const { status, stderr } = spawnSync("npm", args, { cwd, encoding: "utf8", shell });
  assert.equal(status, 0, stderr);
}

/** Runs a program in the project's folder and returns what it printed. */
function run(name, source, { cwd = project } = {}) {
  writeFileSync(join(cwd, name), source);
  const { status, stdout, stderr } = spawnSync(process.execPath, [name], { cwd, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

test("the tarballs hold what they should and nothing else", (t) => {
  const studio = main.files.filter((path) => path.startsWith("dist/studio/"));
  const compiled = main.files.filter((path) => path.startsWith("dist/") && !studio.includes(path));
  const pages = main.files.filter((path) => /^(?:docs|examples)\//.test(path));
  assert.deepEqual(
    main.files.filter((path) => !path.startsWith("dist/") && !pages.includes(path)),
    [
      ...["CHANGELOG.md", "LICENSE", "README.md", "index.cjs", "index.d.mts"],
      ...["index.d.ts", "index.js", "index.mjs", "package.json"],
    ],
  );
  assert.ok(
    pages.every((path) => /^(?:docs\/[\w-]+\.md|examples\/[\w-]+\.mjs)$/.test(path)),
    `${pages}`,
  );
  for (const path of compiled.filter(
    (path) => !["dist/native/binding.js", "dist/esm/package.json"].includes(path),
  )) {
    const source = path.replace(/^dist\/(?:esm\/)?/, "js/").replace(/\.(?:m?js|d\.m?ts)$/, ".ts");
    assert.ok(existsSync(join(root, source)), `${path} has no source`);
  }
  assert.ok(compiled.includes("dist/index.js"));
  assert.ok(compiled.includes("dist/native/binding.js"));
  assert.ok(compiled.includes("dist/esm/index.js"));
  // A clone has the studio once it is built; a release does not exist without it (scripts/pack.mjs).
  assert.equal(studio.length > 0, existsSync(join(root, "dist", "studio", "index.html")));
  for (const path of studio) {
    assert.match(path, /^dist\/studio\/(?:index\.html|[\w-]+\.(?:js|css|svg))(?:\.gz)?$/);
  }
  assert.equal(platform.files.length, 5);
  assert.equal(platform.files.filter((path) => path.endsWith(".node")).length, 1);
  for (const { name, bytes, unpackedBytes } of [main, platform]) {
    const kib = (size) => `${Math.round(size / 1024)} KiB`;
    t.diagnostic(`${name}: ${kib(bytes)} packed, ${kib(unpackedBytes)} unpacked`);
  }
});

test("the licences of all that is compiled in travel with the addon", () => {
  const text = readFileSync(
    join(project, "node_modules", platform.name, "THIRD-PARTY-NOTICES.txt"),
    "utf8",
  );
  const locked = readFileSync(join(root, "Cargo.lock"), "utf8");
  for (const crate of ["hyper", "napi", "ring", "rusqlite", "rustls", "tokio"]) {
    const [, version] = new RegExp(`^name = "${crate}"\nversion = "(.+)"`, "m").exec(locked);
    assert.ok(text.includes(`\n- ${crate} ${version}: `), crate);
  }
  assert.match(text, /SQLite .* public domain/);
  assert.match(text, /Permission is hereby granted, free of charge/);
  assert.doesNotMatch(text, /proptest/, "tests are not compiled in");
});

test("the published manifest installs without running anything", () => {
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  assert.equal(manifest.scripts, undefined);
  assert.equal(manifest.devDependencies, undefined);
  assert.deepEqual(Object.keys(manifest.dependencies), ["commander"]);
  assert.deepEqual(
    manifest.optionalDependencies,
    Object.fromEntries(platforms.map((each) => [packageName(each), manifest.version])),
  );
  const lock = JSON.parse(readFileSync(join(project, "package-lock.json"), "utf8"));
  for (const [path, entry] of Object.entries(lock.packages)) {
    assert.equal(entry.hasInstallScript, undefined, path);
  }
});

test("the command is installed and runs", () => {
  const bin = join(project, "node_modules", ".bin", "openkv");
  const shell = process.platform === "win32";
  const { status, stdout, stderr } = spawnSync(bin, ["--version"], { encoding: "utf8", shell });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
});

test("import and require give the same objects", () => {
  const output = run(
    "identity.mjs",
    `import { createRequire } from "node:module";
     import * as imported from "openkv";
     const required = createRequire(import.meta.url)("openkv");
     const names = Object.keys(required).sort();
     const same = names.every((name) => imported[name] === required[name]);
     const missing = Object.keys(imported).filter((name) => !(name in required));
     console.log(JSON.stringify({ names, same, missing }));`,
  );
  const { names, same, missing } = JSON.parse(output);
  assert.ok(same);
  assert.deepEqual(
    missing.filter((name) => name !== "default" && name !== "module.exports"),
    [],
  );
  for (const name of ["openKv", "Kv", "KvU64", "AtomicOperation"]) {
    assert.ok(names.includes(name), name);
  }
});

test("an ES module stores and a CommonJS module reads, on one file", () => {
  run(
    "write.mjs",
    `import { openKv, KvU64 } from "openkv";
     const kv = await openKv("./kv.sqlite3");
     await kv.atomic().set(["a"], new Map([["b", 1n]])).sum(["n"], 41n).sum(["n"], 1n).commit();
     kv.close();`,
  );
  const output = run(
    "read.cjs",
    `const { openKv, Kv, KvU64 } = require("openkv");
     (async () => {
       const kv = await openKv("./kv.sqlite3");
       const [a, n] = await kv.getMany([["a"], ["n"]]);
       console.log(kv instanceof Kv, a.value.get("b"), n.value instanceof KvU64, n.value.value);
       await kv.close();
     })();`,
  );
  assert.equal(output, "true 1n true 42n");
});

test("the types resolve for ES modules and CommonJS", () => {
  const source = `
    import { openKv, Kv, KvU64 } from "openkv";
    export async function main(): Promise<bigint> {
      const kv: Kv = await openKv(":memory:");
      const entry = await kv.get<KvU64>(["n"]);
      await kv.close();
      return entry.value === null ? 0n : entry.value.value;
    }`;
  writeFileSync(join(project, "consumer.mts"), source);
  writeFileSync(join(project, "consumer.cts"), source);
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      ...[compiler, "--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"],
      ...["--typeRoots", join(root, "node_modules", "@types"), "--types", "node"],
      ...["--lib", "es2023,esnext.disposable", "consumer.mts", "consumer.cts"],
    ],
    { cwd: project, encoding: "utf8" },
  );
  assert.equal(status, 0, stdout);
});

test("without its platform package the error says what was tried and what to do", () => {
  const lonely = join(folder, "lonely");
  mkdirSync(lonely);
  writeFileSync(join(lonely, "package.json"), '{ "name": "lonely", "private": true }\n');
  install(lonely, [main.file]);
  const output = run(
    "load.cjs",
    `const open = async () => require("openkv").openKv(":memory:");
     open().catch((error) => console.log(error.code, error.message));`,
    { cwd: lonely },
  );
  assert.match(output, /^ERR_OPENKV_ADDON openkv could not load its native addon/);
  assert.ok(output.includes(`${platform.name}: not installed`), output);
  assert.match(output, /delete node_modules and the lock file, then install again/);
});

test("an addon of another release is refused by name", () => {
  const path = join(project, "node_modules", platform.name, "package.json");
  const text = readFileSync(path, "utf8");
  writeFileSync(path, JSON.stringify({ ...JSON.parse(text), version: "0.0.1" }));
  try {
    const output = run(
      "mixed.cjs",
      `const open = async () => require("openkv").openKv(":memory:");
       open().catch((error) => console.log(error.message));`,
    );
    assert.match(output, /is version 0\.0\.1, but openkv is version \d+\.\d+\.\d+/);
  } finally {
    writeFileSync(path, text);
  }
});
