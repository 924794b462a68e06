// Duty: servers for the tests of this folder, their tokens and files.

import { join } from "node:path";
import { newFolder } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";

export const accessToken = "an access token".replaceAll(" ", "-");
export const adminToken = "an admin token".replaceAll(" ", "-");
export const start = startServer;

let made;
let count = 0;

/** A folder of this test file's own. */
export function folder() {
  made ??= newFolder("server");
  return made;
}

export function freshPath() {
  return join(folder(), `${count++}.sqlite3`);
}

/** A server of one database. */
export async function serveFile(options) {
  return start({ path: freshPath(), accessToken, ...options });
}

/** A handle on a server's database. */
export async function connect(server, token = accessToken, path = "") {
  return open(server.url + path, { accessToken: token });
}
