// Duty: a free port of this machine, for servers that cannot choose one by themselves. Another
// process may take it before they do.

import { once } from "node:events";
import { createServer } from "node:net";

export async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
