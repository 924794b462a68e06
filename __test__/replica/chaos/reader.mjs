// Duty: a process with a replica that checks what its handle sees: its own writes, never an older
// state than before, and, after a strong read, nothing older than that. It tells of each fault and
// of its reads, and is killed at any moment.

import { openKv } from "../../../index.mjs";
import { sleep } from "../../kit/time.mjs";
import { args, listen, tell } from "../../processes/child.mjs";

/** A loop without a pause would leave the others of a small machine no processor. */
const PAUSE_MS = 2;
const TIMEOUT_MS = 10_000;

const { url, replica, accessToken, life } = args;
listen();
const kv = await openKv(url, {
  accessToken,
  replica,
  consistency: "eventual",
  timeout: TIMEOUT_MS,
});
await kv.replica.ready();
tell("ready");

const own = ["own", life];
/** The newest that this handle has seen of the counter of the others. */
let seen = 0;

for (let next = 1; ; next++) {
  const written = await reachable(kv.set(own, next));
  const entries = await reachable(kv.getMany([own, ["count"]]));
  if (entries !== undefined) {
    const [mine, count] = entries;
    if (written !== undefined) expectAtLeast(next, mine.value, "its own write");
    look(count, "what it read before");
    look(kv.getSync(["count"]), "what it read before, synchronously");
  }
  const strong = await reachable(kv.get(["count"], { consistency: "strong" }));
  if (strong !== undefined) look(strong, "what it read before, strongly");
  tell("read");
  await sleep(PAUSE_MS);
}

/** The answer, or undefined if nobody could be reached: then nothing is known of a write. */
async function reachable(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error.code !== "UNAVAILABLE" && error.code !== "OUTCOME_UNKNOWN") {
      tell(`fault in ${life}: ${error.stack}`);
    }
    return undefined;
  }
}

function look({ value }, what) {
  expectAtLeast(seen, value, what);
  seen = Math.max(seen, value);
}

function expectAtLeast(least, found, what) {
  if (!(found >= least)) tell(`fault in ${life}: it misses ${what}: ${found} after ${least}`);
}
