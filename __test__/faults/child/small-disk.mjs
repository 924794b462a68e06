// A small disk: a file system of a few MiB if one can be mounted, otherwise a limit on the size of
// files, which fails with another error at the same point.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { newDirectory } from "./start.mjs";

/** By default. Removing the ballast makes room. */
const SIZES = { diskKib: 4096, ballastKib: 1024 };
/** What `ulimit -f` of a POSIX shell counts in. */
const ULIMIT_BLOCK_BYTES = 512;

/**
 * @returns {{
 *   how: string,
 *   path: string,
 *   ballast?: string,
 *   command: (argv: string[]) => string[],
 * }} where the file goes, what can be removed to make room, what the command is to be wrapped in
 */
export function smallDisk(t, { diskKib, ballastKib } = SIZES) {
  const undo = [];
  const directory = newDirectory(t, undo);
  const disk = join(directory, "disk");
  mkdirSync(disk);
  const path = join(disk, "kv.sqlite3");
  const mount = ["-t", "tmpfs", "-o", `size=${diskKib}k`, "tmpfs", disk];
  if (spawnSync("mount", mount).status === 0) {
    undo.push(() => execFileSync("umount", ["--lazy", disk]));
    const ballast = join(disk, "ballast");
    writeFileSync(ballast, Buffer.alloc(ballastKib * 1024));
    return { how: "a small tmpfs", path, ballast, command: (argv) => argv };
  }
  return limitedFiles(disk, diskKib);
}

/** The second of the two, whatever may be mounted: its errors are those of a failing disk. */
export function limitedFiles(directory, diskKib = SIZES.diskKib) {
  const blocks = (diskKib * 1024) / ULIMIT_BLOCK_BYTES;
  const limited = `ulimit -f ${blocks}; exec "$@"`;
  return {
    how: "a limit on file sizes",
    path: join(directory, "kv.sqlite3"),
    command: (argv) => ["sh", "-c", limited, "sh", ...argv],
  };
}
