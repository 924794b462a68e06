// Describes the machine of a measurement, and chooses the folder of the databases.

import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { quantile } from "./measure.mjs";

/** The file system number of Linux's tmpfs, where a sync costs nothing and proves nothing. */
const TMPFS_MAGIC = 0x01021994;
const SYNC_SAMPLES = 200;
const PAGE_BYTES = 4096;
const GIB = 2 ** 30;

/** On the disk of the checkout: the temporary directory of a system is often in memory. */
export const DEFAULT_DIRECTORY = fileURLToPath(new URL("./.data", import.meta.url));

/** A new empty directory for databases inside `base`. */
export function dataDirectory(base) {
  const directory = join(base, `run-${process.pid}`);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  if (statfsSync(directory).type === TMPFS_MAGIC) {
    process.stderr.write(`Warning: ${base} is on tmpfs; writes are not durable there.\n`);
  }
  return directory;
}

/** p50 of writing a page and syncing it, in microseconds. */
export function syncMicroseconds(directory) {
  const path = join(directory, "sync-probe");
  const file = openSync(path, "w");
  const page = Buffer.alloc(PAGE_BYTES, 1);
  const samples = [];
  for (let n = 0; n < SYNC_SAMPLES; n++) {
    const start = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    samples.push((performance.now() - start) * 1000);
  }
  closeSync(file);
  rmSync(path);
  return Math.round(quantile(samples, 0.5));
}

/** One line: processor, cores, memory, system, Node version, cost of a sync, load before the run. */
export function machineLine(directory) {
  const model = cpus()[0]?.model.trim() || "unknown processor";
  const memory = Math.round(totalmem() / GIB);
  return (
    `${availableParallelism()} cores (${model}), ${memory} GiB, ${process.platform} ${process.arch}, ` +
    `Node.js ${process.versions.node}, fdatasync p50 ${syncMicroseconds(directory)} µs, ` +
    `load before the run ${loadavg()[0].toFixed(1)}`
  );
}
