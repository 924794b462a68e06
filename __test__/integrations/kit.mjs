// Duty: the databases of the suites: a new one for each call, on a file, in memory, and over the URL of a
// server of openkv.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "openkv";

const accessToken = "the-token-of-the-suites";
let databases = 0;
let folder;
let serving;

/** The places in which every suite runs, by the name that its results have. */
export const places = {
  "on a file": async () => ({ path: newPath() }),
  "in memory": async () => ({ path: ":memory:" }),
  // One server for all, so a key of its own for each.
  "over a URL": async () => {
    serving ??= serve({ path: newPath(), listen: "127.0.0.1:0", accessToken });
    const { url } = await serving;
    return { path: url, open: { accessToken }, base: `database-${databases++}` };
  },
};

/** A path in a temporary folder, where no file is yet. */
export function newPath() {
  folder ??= mkdtempSync(join(tmpdir(), "openkv-integrations-"));
  return join(folder, `${databases++}.sqlite3`);
}

/** Ends the server and removes the files; the drivers have been closed. */
export async function end() {
  await (await serving)?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
