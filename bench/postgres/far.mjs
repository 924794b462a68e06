// A way to a server on this machine, as if it were far: each piece of data takes some time, in either
// direction. Tells its parent the port.

import { connect, createServer } from "node:net";
import process from "node:process";

const HOST = "127.0.0.1";
const { port, delayMs } = JSON.parse(process.argv[2]);

const listener = createServer((near) => {
  const far = connect(port, HOST);
  pass(near, far);
  pass(far, near);
});
listener.listen(0, HOST, () => process.send(listener.address().port));
process.once("disconnect", () => process.exit());

function pass(from, to) {
  from.setNoDelay(true);
  from.on("data", (bytes) => setTimeout(() => to.write(bytes), delayMs));
  from.on("error", () => {});
  from.on("close", () => setTimeout(() => to.destroy(), delayMs));
}
