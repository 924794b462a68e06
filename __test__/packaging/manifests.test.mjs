// Duty: what is written in several places about the packages says the same everywhere.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { CLONE_PROFILE } from "../../scripts/build-addon.mjs";
import { platformFiles } from "../../scripts/platform-packages.mjs";
import { PLATFORM_SCOPE, addonFile, packageName, platforms } from "../../scripts/platforms.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (path) => readFileSync(root + path, "utf8");
const manifest = JSON.parse(read("package.json"));

test("package.json, Cargo.toml and the lock file name one version", () => {
  const [, version] = /^version = "(.+)"$/m.exec(read("Cargo.toml"));
  assert.equal(manifest.version, version);
  const lock = JSON.parse(read("package-lock.json"));
  assert.equal(lock.version, version);
  assert.equal(lock.packages[""].version, version);
});

const LOCKED = [
  "",
  "__test__/bundlers/",
  "__test__/integrations/",
  "__test__/next/",
  "__test__/runtime/",
  "studio/",
];

test("the lock files name no registry", () => {
  for (const folder of LOCKED) {
    const { packages } = JSON.parse(read(`${folder}package-lock.json`));
    for (const [path, entry] of Object.entries(packages))
      assert.equal(entry.resolved, undefined, folder + path);
  }
});

// npm leaves out an optional package that the registry lacks, and `npm ci` then refuses the lock file.
test("the lock files have every optional package", () => {
  for (const folder of LOCKED) {
    const { packages } = JSON.parse(read(`${folder}package-lock.json`));
    const named = Object.values(packages).flatMap(({ optionalDependencies = {} }) =>
      Object.keys(optionalDependencies),
    );
    for (const name of named) {
      const locked = Object.keys(packages).some((path) => path.endsWith(`node_modules/${name}`));
      assert.ok(locked, `${folder}package-lock.json: ${name}`);
    }
  }
});

test("npm/ holds what the platform table says, and nothing else", () => {
  for (const [path, text] of platformFiles()) {
    assert.equal(read(`npm/${path}`), text, `npm/${path}`);
  }
  assert.deepEqual(readdirSync(`${root}npm`).sort(), platforms.map(({ name }) => name).sort());
});

test("every platform asked for has its package", () => {
  assert.deepEqual(platforms.map(({ rust }) => rust).sort(), [
    "aarch64-apple-darwin",
    "aarch64-pc-windows-msvc",
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
  ]);
});

test("the loaders look for the packages and files that the table names", () => {
  const tried = candidates();
  for (const [at, platform] of platforms.entries()) {
    assert.equal(tried[at][0], platform.name);
    assert.equal(addonFile(platform), `openkv.${tried[at][0]}.node`);
  }
  assert.ok(
    read("js/native/find-addon.ts").includes(`const PLATFORM_SCOPE = "${PLATFORM_SCOPE}";`),
  );
});

// Tracers and bundlers find a package by the literal in a call of require().
test("the loader requires every platform package by its literal name", () => {
  const required = [...read("scripts/native-loader.js").matchAll(/require\("(@[^"]+)"\)/g)].map(
    ([, name]) => name,
  );
  const names = platforms.map(packageName).sort();
  assert.deepEqual(required.filter((name) => !name.endsWith("/package.json")).sort(), names);
  const manifests = names.map((name) => `${name}/package.json`);
  assert.deepEqual(required.filter((name) => name.endsWith("/package.json")).sort(), manifests);
});

/** What the loader tries on each platform of the table: a child pretends to be there. */
function candidates() {
  const script = `
    const loader = ${JSON.stringify(`${root}dist/native/binding.js`)};
    const fs = require("node:fs");
    for (const { os, cpu, libc } of ${JSON.stringify(platforms)}) {
      Object.defineProperty(process, "platform", { value: os });
      Object.defineProperty(process, "arch", { value: cpu });
      fs.existsSync = (path) => path.startsWith("/lib/ld-musl") && libc === "musl";
      try { require(loader); }
      catch (error) { console.log(JSON.stringify(error.code + error.message)); }
    }`;
  const { stdout } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => {
      const message = JSON.parse(line);
      assert.match(message, /^ERR_OPENKV_ADDON/);
      const names = message.matchAll(/^ {2}- @openkv\/(\S+): not installed$/gm);
      return [...names].map((match) => match[1]);
    });
}

test("a platform without a package is named as such", () => {
  const script = `
    Object.defineProperty(process, "platform", { value: "freebsd" });
    require(${JSON.stringify(`${root}dist/native/binding.js`)});`;
  const { status, stderr } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, new RegExp(`openkv has no native addon for freebsd ${process.arch}`));
  assert.match(stderr, /published for Linux\s+\(glibc and musl\), macOS and Windows/);
  assert.match(stderr, /code: 'ERR_OPENKV_ADDON'/);
  assert.doesNotMatch(stderr, /delete node_modules/);
});

test("the release workflow builds every platform once", () => {
  const workflow = read(".github/workflows/release.yml");
  for (const { rust } of platforms) {
    const uses = workflow.split("\n").filter((line) => line.includes(`target: ${rust}`));
    assert.equal(uses.length, 1, rust);
  }
});

test("a clone builds the quick profile; releases and benchmarks build the release profile", () => {
  const { scripts } = JSON.parse(read("package.json"));
  const quick = `--profile ${CLONE_PROFILE}`;
  assert.equal(scripts["build:addon"], `node scripts/build-addon.mjs ${quick}`);
  assert.match(read("scripts/build.mjs"), /build\(\{ profile = CLONE_PROFILE \} = \{\}\)/);
  assert.match(read(".github/workflows/release.yml"), /build-addon\.mjs --profile release /);
  assert.match(read("bench/run.mjs"), /build\(\{ profile: "release" \}\)/);
  const profile = (name) => read("Cargo.toml").split(`[profile.${name}]`)[1].split("\n[")[0];
  assert.match(profile("release"), /^lto = "fat"$/m);
  assert.match(profile(CLONE_PROFILE), /^lto = "off"$/m);
});

test("a build without cargo says what to install, and who needs it", () => {
  const { status, stderr } = spawnSync(process.execPath, ["scripts/build-addon.mjs"], {
    cwd: root,
    env: { PATH: "" },
    encoding: "utf8",
  });
  assert.equal(status, 1);
  assert.match(stderr, /cargo was not found/);
  assert.match(stderr, /https:\/\/rustup\.rs/);
  assert.match(stderr, /the package published on npm brings the\s+addon ready-made/);
});
