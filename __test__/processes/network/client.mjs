// A client behind a bad link: transfers between accounts, follows every transfer, sends and handles
// messages, and tells the parent of all of it.

import { sleep } from "../../kit/time.mjs";
import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";
import { ACCOUNTS, LANES, LOCK_MS } from "./plan.mjs";

const { url, accessToken, id } = args;
const say = (event, rest) => tell(JSON.stringify({ event, ...rest }));
let stopped = false;
const kv = await openKv(url, { accessToken, timeout: 30_000 });
listen(
  (line) => (stopped ||= line === "stop"),
  () => kv.close(),
);

/**
 * Reports how a call ended. A transaction may run out of retries under this contention, and a call
 * may have happened or not; any other error ends this process.
 */
async function attempt(call, event, of) {
  try {
    await call();
    say(event, { of });
  } catch (error) {
    if (!["OUTCOME_UNKNOWN", "UNAVAILABLE", "CONFLICT"].includes(error.code)) throw error;
    say(error.code === "CONFLICT" ? "refused" : "unknown", { of });
  }
}

const pick = (count) => Math.floor(Math.random() * count);

/** Moves an amount, and logs the transfer and the turn that each account has reached by it. */
async function transfer(of) {
  const from = pick(ACCOUNTS);
  const to = (from + 1 + pick(ACCOUNTS - 1)) % ACCOUNTS;
  const amount = 1 + pick(10);
  await kv.transaction(async (tx) => {
    const [source, target] = await tx.getMany([
      ["account", from],
      ["account", to],
    ]);
    const turns = [source.value.turn + 1, target.value.turn + 1];
    tx.set(source.key, { balance: source.value.balance - amount, turn: turns[0] });
    tx.set(target.key, { balance: target.value.balance + amount, turn: turns[1] });
    tx.set(["transfer", of], { from, to, amount, turns });
  });
}

async function transfers(lane) {
  for (let n = 0; !stopped; n++) {
    const of = `${id}/${lane}/${n}`;
    await attempt(() => transfer(of), "transferred", of);
  }
}

async function follow() {
  const feed = kv.watch({ prefix: ["transfer"] }, { since: args.since });
  for await (const { changes } of feed) {
    for (const { type, key, versionstamp } of changes) {
      say("followed", { of: key[1], type, versionstamp });
    }
  }
}

const queue = kv.queue("work");

async function enqueue() {
  for (let n = 0; !stopped; n++) {
    const of = `${id}/${n}`;
    const options = { backoffSchedule: [0, 0, 0, 0, 0] };
    await attempt(() => queue.enqueue(of, options), "enqueued", of);
    await sleep(20);
  }
}

const handling = queue.listen(
  async (of) => {
    say("begin", { of });
    await sleep(Math.random() * 50);
    say("end", { of });
  },
  { concurrency: 8, lockDuration: LOCK_MS },
);
const following = follow();
await Promise.all([enqueue(), ...Array.from({ length: LANES }, (_, lane) => transfers(lane))]);
say("stopped");
await Promise.all([handling, following]);
