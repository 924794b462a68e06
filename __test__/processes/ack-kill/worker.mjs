// A worker whose effects, following message and acknowledgement are one commit, in an operation or in a
// transaction. It says once that it works, and waits to be killed.

import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

const kv = await openKv(args.path, args.options);
listen();
let said = false;

/** Counts the effect of a step of job `n`, in one of the two ways. */
async function work(step, n, message, next) {
  if (!said) tell("works");
  said = true;
  const key = [step, n];
  if (n % 2 === 0) {
    const operation = kv.atomic().sum(key, 1).sum(["all", step], 1).ack(message);
    if (next !== undefined) operation.enqueue(n, next);
    await operation.commit();
    return;
  }
  await kv
    .transaction(
      async (tx) => {
        const before = (await tx.get(key)).value ?? 0;
        tx.set(key, before + 1)
          .sum(["all", step], 1)
          .ack(message);
        if (next !== undefined) tx.enqueue(n, next);
      },
      { maxRetries: Infinity },
    )
    .catch((error) => {
      // Another worker has the message.
      if (error.messages?.length !== 1) throw error;
    });
}

const options = { concurrency: 8, lockDuration: args.lockMs };
const next = { queue: "second", backoffSchedule: args.backoff };
await Promise.all([
  kv.queue("first").listen((n, message) => work("first", n, message, next), options),
  kv.queue("second").listen((n, message) => work("second", n, message), options),
]);
