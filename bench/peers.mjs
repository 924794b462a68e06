// The measured stores: their names, their runtimes, their adapters.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/**
 * kind `kv`: the adapter opens an object with the Deno KV API. kind `sync`: it opens the plain
 * synchronous store described in peers/better-sqlite3.mjs. `package`: where its version is read.
 */
export const PEERS = [
  { name: "openkv", title: "openkv", kind: "kv", runtime: "node", package: "../package.json" },
  { name: "deno", title: "Deno built in", kind: "kv", runtime: "deno", package: "deno" },
  {
    name: "deno-kv",
    title: "@deno/kv",
    kind: "kv",
    runtime: "node",
    package: "@deno/kv",
    // On a file, 0.14.0 delivered no watch event, and closing a store that listened to its queue
    // ended the process with an uncaught "db not found".
    without: ["watch", "queue"],
  },
  {
    name: "better-sqlite3",
    title: "better-sqlite3 + node:v8",
    kind: "sync",
    runtime: "node",
    package: "better-sqlite3",
  },
  {
    name: "lmdb",
    title: "lmdb",
    kind: "sync",
    runtime: "node",
    package: "lmdb",
    // Beside values as people store them; with the other set only when it is asked for.
    sets: ["realistic"],
  },
];

/** Families that a synchronous store can run; the others need versions, events or queues. */
const SYNC_FAMILIES = ["get", "set", "list", "large"];

export function canRun(peer, workload) {
  if (peer.kind === "sync") return SYNC_FAMILIES.includes(workload.family);
  return !peer.without?.includes(workload.family);
}

/** The installed version, or undefined. */
export function versionOf(peer) {
  const manifest = peer.package.startsWith("..")
    ? here(peer.package)
    : here(`./node_modules/${peer.package}/package.json`);
  if (!existsSync(manifest)) return undefined;
  return JSON.parse(readFileSync(manifest, "utf8")).version;
}

/** Program and arguments that run a script of this folder under the peer's runtime. */
export function commandOf(peer, script, nodeArguments = []) {
  if (peer.runtime === "node") return [process.execPath, [...nodeArguments, script]];
  const program = here(`./node_modules/deno/deno${process.platform === "win32" ? ".exe" : ""}`);
  return [program, ["run", "--quiet", "--allow-all", "--unstable-kv", "--no-config", script]];
}
