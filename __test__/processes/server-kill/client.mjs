// A client that writes, enqueues, consumes and watches, and tells of all of it.

import { sleep } from "../../kit/time.mjs";
import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

/** Far longer than a server is away, and handlers now and then take longer. */
const LOCK_MS = 5000;
const LANES = 4;

const { url, accessToken, id } = args;
const kv = await openKv(url, { accessToken, timeout: 30_000 });
const say = (event, rest) => tell(JSON.stringify({ event, ...rest }));
let stopped = false;
listen(
  (line) => (stopped ||= line === "stop"),
  () => kv.close(),
);

/** Does something of which nobody may know whether it has happened. */
async function attempt(call, event, of) {
  try {
    await call();
    say(event, { of });
  } catch (error) {
    if (error.code !== "OUTCOME_UNKNOWN" && error.code !== "UNAVAILABLE") throw error;
    say("unknown", { of });
  }
}

async function write(lane) {
  for (let n = 0; !stopped; n++) {
    await attempt(() => kv.set(["k", id, lane, n], n), "committed", `${id}/${lane}/${n}`);
  }
}

const queue = kv.queue("work");

async function enqueue() {
  for (let n = 0; !stopped; n++) {
    const of = `${id}/${n}`;
    const options = { backoffSchedule: [0, 0, 0, 0, 0] };
    await attempt(() => queue.enqueue({ of, long: n % 40 === 7 }, options), "enqueued", of);
    await sleep(5);
  }
}

async function watch() {
  for await (const [{ value }] of kv.watch([["last"]])) say("saw", { value });
}

const consuming = queue.listen(
  async ({ of, long }) => {
    say("begin", { of });
    await sleep(long ? LOCK_MS * 1.2 : Math.random() * 20);
    say("end", { of });
  },
  { concurrency: 8, lockDuration: LOCK_MS },
);
const watching = watch();
await Promise.all([enqueue(), ...Array.from({ length: LANES }, (_, lane) => write(lane))]);
say("stopped");
await Promise.all([consuming, watching]);
