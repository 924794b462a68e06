// Duty: servers of this machine for the tests of this folder, closed afterwards.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { openKv, serve } from "../../index.mjs";

export const accessToken = "an access token".replaceAll(" ", "-");
export const adminToken = "an admin token".replaceAll(" ", "-");

const servers = [];
const handles = [];
let made;
let count = 0;

/** A folder of this test file's own. */
export function folder() {
  made ??= mkdtempSync(join(tmpdir(), "openkv-server-"));
  return made;
}

export function freshPath() {
  return join(folder(), `${count++}.sqlite3`);
}

/** A server of one database. */
export async function serveFile(options) {
  return start({ path: freshPath(), accessToken, ...options });
}

export async function start(options) {
  const server = await serve({ listen: "127.0.0.1:0", ...options });
  servers.push(server);
  return server;
}

/** A handle on a server's database. */
export async function connect(server, token = accessToken, path = "") {
  const kv = await openKv(server.url + path, { accessToken: token });
  handles.push(kv);
  return kv;
}

after(async () => {
  for (const kv of handles) kv[Symbol.dispose ?? Symbol.for("nodejs.dispose")]();
  await Promise.all(servers.map((server) => server.close()));
  if (made !== undefined) rmSync(made, { recursive: true, force: true });
});
