// A consumer that tells of the beginning and the end of each message, and waits to be killed.

import { sleep } from "../../kit/time.mjs";
import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

const kv = await openKv(args.path, args.options);
listen();
const say = (event, n) => tell(JSON.stringify({ event, n, at: Date.now() }));
await kv.queue("work").listen(
  async (n) => {
    say("begin", n);
    await sleep(20);
    say("end", n);
  },
  { concurrency: 4, lockDuration: args.lockMs },
);
