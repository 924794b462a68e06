// A database file of a test's own.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The path of a file that does not exist yet, in a directory that goes away with the test `t`. */
export function newPath(t) {
  const directory = mkdtempSync(join(tmpdir(), "openkv-test-"));
  t.after(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }));
  return join(directory, "kv.sqlite3");
}
