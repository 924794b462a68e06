// A process that opens, writes and closes files when it is told to. One JSON command a line.

import { listen, tell } from "./child.mjs";
import { openKv } from "./target.mjs";

let kv;
const alive = setInterval(() => {}, 1 << 30);
listen(
  async (line) => {
    const { open } = JSON.parse(line);
    if (open === undefined) {
      await kv.close();
    } else {
      kv = await openKv(open);
      await kv.set([process.pid], 1);
    }
    tell("done");
  },
  () => clearInterval(alive),
);
tell("ready");
