// Duty: handles, and servers on a free port of this machine, for the tests of a file; they are closed
// when a suite of databases.mjs or all tests of the file have run, the handles first.

import { after } from "node:test";
import { openKv, serve } from "../../index.mjs";

const handles = [];
const servers = [];

after(closeAll);

/** Closes what has been opened so far. */
export async function closeAll() {
  for (const kv of handles.splice(0)) kv[Symbol.dispose ?? Symbol.for("nodejs.dispose")]();
  await Promise.all(servers.splice(0).map((server) => server.close()));
}

export async function open(path, options) {
  const kv = await openKv(path, options);
  handles.push(kv);
  return kv;
}

export async function startServer(options) {
  const server = await serve({ listen: "127.0.0.1:0", ...options });
  servers.push(server);
  return server;
}
