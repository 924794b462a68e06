// Duty: writes the manifests and README files of the platform packages in npm/, from the table in
// platforms.mjs and the version in the root manifest. Run it after changing either:
//
//   node scripts/platform-packages.mjs            write them
//   node scripts/platform-packages.mjs --check    fail when one differs from what would be written

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { NOTICES_FILE } from "./notices.mjs";
import { addonFile, packageName, platforms } from "./platforms.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Every file of every platform package except the addon, by its path in npm/. */
export function platformFiles() {
  const main = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const files = new Map();
  for (const platform of platforms) {
    const manifest = `${JSON.stringify(manifestOf(platform, main), null, 2)}\n`;
    files.set(`${platform.name}/package.json`, manifest);
    files.set(`${platform.name}/README.md`, readmeOf(platform));
  }
  return files;
}

function manifestOf(platform, main) {
  const { os, cpu, libc } = platform;
  return {
    name: packageName(platform),
    version: main.version,
    description: `The native addon of openkv for ${platform.name}`,
    license: main.license,
    author: main.author,
    homepage: main.homepage,
    repository: { ...main.repository, directory: `npm/${platform.name}` },
    bugs: main.bugs,
    engines: main.engines,
    os: [os],
    cpu: [cpu],
    ...(libc === undefined ? {} : { libc: [libc] }),
    main: addonFile(platform),
    files: [addonFile(platform), NOTICES_FILE],
  };
}

function readmeOf(platform) {
  return [
    `# ${packageName(platform)}`,
    "",
    `The native addon of [openkv](https://github.com/openkv/openkv) for \`${platform.rust}\`.`,
    "Install `openkv`: it brings the one of these packages that fits the machine.",
    "",
  ].join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const check = process.argv.includes("--check");
  for (const [name, text] of platformFiles()) {
    const path = join(root, "npm", name);
    if (!check) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    } else if (readFileSync(path, "utf8") !== text) {
      console.error(`npm/${name} is out of date: run node scripts/platform-packages.mjs`);
      process.exitCode = 1;
    }
  }
}
