// Duty: creates the tarballs to publish: openkv itself, and a platform package for every available
// addon.
//
//   node scripts/pack.mjs [--out <dir>] [--addons <dir>] [--all]
//
// The published manifest differs from the repository's in three things: it has the platform
// packages as optionalDependencies, and neither scripts nor devDependencies. They cannot stand in
// the repository's manifest: before a release they are on no registry, and `npm ci` refuses a lock
// file without them (docs/decisions/0001-addon-and-packages.md).
//
// --addons names a folder with openkv.<platform>.node files (default dist/native); --all fails
// unless it holds every platform's and the studio is built, which is what a release needs.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { NOTICES_FILE, notices } from "./notices.mjs";
import { addonFile, packageName, platforms } from "./platforms.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Packs into `out` and returns one `{ name, file, bytes, unpackedBytes, files }` for each tarball,
 * the platform packages first: they must be published before the package that depends on them.
 */
export function pack({ out, addons = join(root, "dist", "native"), all = false }) {
  const missing = platforms.filter((platform) => !existsSync(join(addons, addonFile(platform))));
  if (all && missing.length > 0) {
    const names = missing.map(addonFile).join(", ");
    throw new Error(`not every platform's addon is in ${addons}: missing ${names}`);
  }
  if (all && !existsSync(join(root, "dist", "studio", "index.html"))) {
    throw new Error("the studio is not built: run `npm run build:studio`");
  }
  mkdirSync(out, { recursive: true });
  const staging = mkdtempSync(join(tmpdir(), "openkv-pack-"));
  try {
    const packed = platforms
      .filter((platform) => !missing.includes(platform))
      .map((platform) => npmPack(stagePlatform(platform, addons, staging), out));
    packed.push(npmPack(stageMain(staging), out));
    return packed;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function stagePlatform(platform, addons, staging) {
  const folder = join(staging, platform.name);
  cpSync(join(root, "npm", platform.name), folder, { recursive: true });
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  cpSync(join(addons, addonFile(platform)), join(folder, addonFile(platform)));
  writeFileSync(join(folder, NOTICES_FILE), notices(platform.rust));
  return folder;
}

/** The files of the repository that the package openkv has, in paths from its root. */
export function packedFiles() {
  const [{ files }] = npm(root, ["pack", "--dry-run", "--json", "--ignore-scripts"]);
  return files.map(({ path }) => path).filter((path) => !path.endsWith(".node"));
}

function stageMain(staging) {
  const folder = join(staging, "openkv");
  for (const path of packedFiles()) cpSync(join(root, path), join(folder, path));
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  delete manifest.scripts;
  delete manifest.devDependencies;
  manifest.files = manifest.files.filter((pattern) => !pattern.endsWith(".node"));
  manifest.optionalDependencies = Object.fromEntries(
    platforms.map((platform) => [packageName(platform), manifest.version]),
  );
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  return folder;
}

function npmPack(folder, out) {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", resolve(out)];
  const [{ name, filename, files, unpackedSize }] = npm(folder, args);
  // For a scoped package, npm reports another file name than the one that it writes.
  const file = join(resolve(out), filename.replace("@", "").replace("/", "-"));
  const paths = files.map((entry) => entry.path).sort();
  return { name, file, bytes: statSync(file).size, unpackedBytes: unpackedSize, files: paths };
}

function npm(cwd, args) {
  const { status, stdout, stderr, error } = spawnSync("npm", args, {
    cwd,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  if (status !== 0) {
    throw new Error(`npm ${args.join(" ")} failed: ${error?.message ?? stderr}`);
  }
  return JSON.parse(stdout);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: "target/npm" },
      addons: { type: "string" },
      all: { type: "boolean" },
    },
  });
  for (const { name, file, bytes } of pack(values)) {
    console.log(`${name}: ${file} (${(bytes / 1024).toFixed(0)} KiB)`);
  }
}
