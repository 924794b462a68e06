// Duty: a server in a separate process, for tests that kill it: takes options in JSON as its
// argument; prints its URL when it listens. A line on its standard input closes it.

import { serve } from "../../index.mjs";

const server = await serve(JSON.parse(process.argv[2]));
console.log(server.url);
process.stdin.once("data", async () => {
  await server.close();
  process.stdin.destroy();
});
process.stdin.once("end", () => process.exit());
