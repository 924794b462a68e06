// Duty: publishes the tarballs of scripts/pack.mjs, the platform packages first, with provenance.
// Meant for .github/workflows/release.yml.
//
//   node scripts/publish.mjs --from <dir> [--dry-run]
//
// Skips versions that the registry already has, so that an interrupted release can be run again. A
// prerelease (1.2.3-rc.1) gets the tag "next" instead of "latest".

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { packageName, platforms } from "./platforms.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

const { values } = parseArgs({
  options: { from: { type: "string" }, "dry-run": { type: "boolean" } },
});
if (values.from === undefined) {
  fail("--from <dir> must name the folder with the tarballs");
}

// openkv comes last: its platform packages must exist before a user can install it.
const names = [...platforms.map(packageName), "openkv"];
const releases = names.map((name) => ({ name, file: tarball(name) }));
for (const { file } of releases) {
  if (!existsSync(file)) {
    fail(`${file} is missing; nothing was published`);
  }
}
for (const { name, file } of releases) {
  publish(name, file);
}

function tarball(name) {
  return join(values.from, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
}

function publish(name, file) {
  if (npm(["view", `${name}@${version}`, "version"], "ignore").status === 0) {
    console.log(`${name}@${version} is already published`);
    return;
  }
  const tag = version.includes("-") ? "next" : "latest";
  const mode = values["dry-run"] ? ["--dry-run"] : ["--provenance"];
  const { status } = npm(["publish", file, "--access", "public", "--tag", tag, ...mode], "inherit");
  if (status !== 0) {
    fail(`${name}@${version} was not published; what came before it was. Run the release again.`);
  }
  console.log(`${name}@${version} published${values["dry-run"] ? " (dry run)" : ""}`);
}

function npm(args, output) {
  return spawnSync("npm", args, {
    stdio: ["ignore", output, output],
    shell: process.platform === "win32",
  });
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
