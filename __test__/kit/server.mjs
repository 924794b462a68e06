// Duty: handles, and servers on a free port of this machine, for the tests of a file; they are closed
// when its tests have run, the handles first.

import { after } from "node:test";
import { openKv, serve } from "../../index.mjs";

const handles = [];
const servers = [];

after(async () => {
  for (const kv of handles) kv[Symbol.dispose ?? Symbol.for("nodejs.dispose")]();
  await Promise.all(servers.map((server) => server.close()));
});

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
