// Duty: a process of a test that is killed: a server, or a replica. It prints a line when it is ready.

import process from "node:process";
import { openKv, serve } from "../../index.mjs";

const [role, ...given] = process.argv.slice(2);
if (role === "server") {
  const [path, listen, accessToken] = given;
  await serve({ path, listen, accessToken });
} else {
  const [url, replica, accessToken] = given;
  const kv = await openKv(url, { replica, accessToken, timeout: 20_000 });
  await kv.replica.ready();
}
console.log("ready");
setInterval(() => {}, 1000);
