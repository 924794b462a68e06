// Installs the peers if they are missing, so that the root `npm install` does not have to. There is
// no lock file: package.json names exact versions, and a lock file made where the registry lacks
// the binary of another platform would be rejected elsewhere.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const directory = fileURLToPath(new URL("./", import.meta.url));
const readJson = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));

/** Whether each peer is installed in exactly the version that package.json names. */
export function peersAreInstalled() {
  return Object.entries(readJson("./package.json").dependencies).every(([name, version]) => {
    const manifest = `./node_modules/${name}/package.json`;
    return existsSync(new URL(manifest, import.meta.url)) && readJson(manifest).version === version;
  });
}

/** Installs them. Compiling better-sqlite3, if necessary, takes about two minutes. */
export function installPeers() {
  if (peersAreInstalled()) return;
  process.stderr.write(
    "Installing the peers into bench/node_modules (once, up to two minutes) ...\n",
  );
  const result = spawnSync("npm install --no-audit --no-fund", {
    cwd: directory,
    shell: true,
    stdio: ["ignore", process.stderr.fd, process.stderr.fd],
  });
  if (result.status !== 0) {
    throw new Error(
      "the peers could not be installed: run `npm install` in bench/ to see why " +
        "(better-sqlite3 needs a C++ compiler where it has no prebuilt binary)",
    );
  }
}
