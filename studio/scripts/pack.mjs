// Duty: compresses the built files, and fails if they are larger than a page of the server may be.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

/** All files of the studio together, compressed. */
const COMPRESSED_BYTES_MAX = 350 * 1024;

const folder = fileURLToPath(new URL("../../dist/studio/", import.meta.url));
let total = 0;
for (const name of readdirSync(folder).sort()) {
  const bytes = readFileSync(join(folder, name));
  const compressed = gzipSync(bytes, { level: 9 });
  writeFileSync(join(folder, `${name}.gz`), compressed);
  total += compressed.length;
  console.log(`${name}: ${kib(bytes.length)}, compressed ${kib(compressed.length)}`);
}
console.log(`studio: compressed ${kib(total)} of at most ${kib(COMPRESSED_BYTES_MAX)}`);
if (total > COMPRESSED_BYTES_MAX) process.exit(1);

function kib(bytes) {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}
