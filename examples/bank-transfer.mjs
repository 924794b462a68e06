// Duty: move money between accounts without creating or losing any, beside concurrent transfers. Both
// balances are read, both are checked, both are written in one commit.
//
//   node examples/bank-transfer.mjs [database file]

import { openKv } from "openkv";

const ACCOUNTS = 5;
const TRANSFERS = 100;
const OPENING_BALANCE = 1_000n;

/** After so many lost races in a row something is wrong with more than luck. */
const ATTEMPTS_MAX = 1_000;

const kv = await openKv(process.argv[2] ?? ":memory:");
let conflicts = 0;

const accountKey = (id) => ["accounts", id];

/** Moves `amount` from one account to another. Throws when the money or an account is not there. */
async function transfer(from, to, amount) {
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
    const [source, target] = await kv.getMany([accountKey(from), accountKey(to)]);
    if (source.value === null || target.value === null) {
      throw new Error(`no such account: ${source.value === null ? from : to}`);
    }
    if (source.value < amount) {
      throw new Error(`account ${from} holds ${source.value}, not ${amount}`);
    }
    const { ok } = await kv
      .atomic()
      .check(source, target)
      .set(source.key, source.value - amount)
      .set(target.key, target.value + amount)
      .commit();
    if (ok) {
      return;
    }
    // Another writer changed one of the balances in between: read them again.
    conflicts++;
  }
  throw new Error(`gave up after ${ATTEMPTS_MAX} conflicts`);
}

async function total() {
  let sum = 0n;
  for await (const { value } of kv.list({ prefix: ["accounts"] })) {
    sum += value;
  }
  return sum;
}

for (let id = 0; id < ACCOUNTS; id++) {
  await kv.set(accountKey(id), OPENING_BALANCE);
}
console.log(`${ACCOUNTS} accounts hold ${await total()} in all.`);

const jobs = Array.from({ length: TRANSFERS }, (_, job) => {
  const from = job % ACCOUNTS;
  const to = (from + 1 + (job % (ACCOUNTS - 1))) % ACCOUNTS;
  return transfer(from, to, BigInt(1 + job));
});
const results = await Promise.allSettled(jobs);
const moved = results.filter((result) => result.status === "fulfilled").length;
console.log(`${TRANSFERS} transfers at once: ${moved} made, ${TRANSFERS - moved} refused.`);
console.log(`${conflicts} attempts met another transfer and were tried again.`);
console.log(`${ACCOUNTS} accounts hold ${await total()} in all.`);

const [{ value: all }] = await kv.getMany([accountKey(0)]);
await transfer(0, 1, all + 1n).catch((error) => console.log(`Refused: ${error.message}.`));
kv.close();
