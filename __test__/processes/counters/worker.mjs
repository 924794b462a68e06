// One process of counters.mjs: transactions on counters and accounts that all processes share.

import { args, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

const { path, id, transactions, counters, accounts } = args;
const kv = await openKv(path);
const options = { maxRetries: Infinity };

/** Adds one to a counter, the long way: read, add, write. */
const count = (n) =>
  kv.transaction(async (tx) => {
    const { value } = await tx.get(["counter", n]);
    tx.set(["counter", n], (value ?? 0) + 1);
  }, options);

/** Moves money, if there is enough of it. */
const transfer = (from, to, amount) =>
  kv.transaction(async (tx) => {
    const [source, target] = await tx.getMany([
      ["account", from],
      ["account", to],
    ]);
    if (from === to || source.value < amount) return;
    tx.set(source.key, source.value - amount).set(target.key, target.value + amount);
  }, options);

/** Writes down how much there is in all: every note must tell the same. */
const audit = () =>
  kv.transaction(async (tx) => {
    let total = 0;
    for await (const { value } of tx.list({ prefix: ["account"] })) total += value;
    tx.sum(["total", total], 1n);
  }, options);

for (let n = 0; n < transactions; n++) {
  const jobs = [count(n % counters), transfer((n + id) % accounts, (n * 3) % accounts, n % 7)];
  if (n % 8 === 0) jobs.push(audit());
  await Promise.all(jobs);
}
await kv.close();
tell("done");
