// A worker of the queue "work": it doubles numbers, and other values run until their signals abort. It tells the
// value of each message, and the name of the reason of each abort.

import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

const kv = await openKv(args.path);
listen();
const working = kv.queue("work").listen(
  async (value, message) => {
    tell(String(value));
    if (typeof value === "number") return value * 2;
    await new Promise((_, reject) => {
      message.signal.addEventListener("abort", () => {
        tell(message.signal.reason.name);
        reject(message.signal.reason);
      });
      tell("waits");
    });
  },
  // The lock is not renewed before the test is over.
  { lockDuration: 86_400_000, onError: () => {} },
);
tell("ready");
await working;
