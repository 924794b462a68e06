// Duty: the databases of the suites: in memory a new one for each call; on a file and over the URL of a
// server of openkv one for all, with a new base for each call.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { serve } from "openkv";

const runtime = globalThis.Deno ? "Deno" : process.versions.bun ? "Bun" : "Node.js";
if ((process.env.OPENKV_TEST_RUNTIME ?? runtime) !== runtime) {
  throw new Error(`${process.env.OPENKV_TEST_RUNTIME} was to run this, and ${runtime} does`);
}

const accessToken = "the-token-of-the-suites";
let made = 0;
let folder;
let serving;

/** The places in which a suite can run, by the name that its results have. */
export const places = {
  "on a file": async () => {
    const path = newPath();
    // What a power loss leaves is none of the drivers' concern.
    return () => ({ path, open: { durability: "normal" }, base: newBase() });
  },
  "in memory": async () => () => ({ path: ":memory:" }),
  "over a URL": async () => {
    serving ??= serve({ path: newPath(), listen: "127.0.0.1:0", accessToken });
    const { url } = await serving;
    return () => ({ path: url, open: { accessToken }, base: newBase() });
  },
};

/** For each place its name, and a function that answers the options of a new database in it. */
export async function databases() {
  const names = process.env.OPENKV_TEST_PLACES?.split(",") ?? Object.keys(places);
  return await Promise.all(names.map(async (name) => [name, await places[name]()]));
}

const newBase = () => `database-${made++}`;

/** A path in a temporary folder, where no file is yet. */
export function newPath() {
  folder ??= mkdtempSync(join(tmpdir(), "openkv-integrations-"));
  return join(folder, `${made++}.sqlite3`);
}

/** Ends the server and removes the files; the drivers have been closed. */
export async function end() {
  await (await serving)?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
