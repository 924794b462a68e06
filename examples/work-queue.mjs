// Duty: a work queue whose effects happen exactly once. A queue delivers at least once: after a
// crash or a failure a message may come again. The nonce pattern makes a second delivery harmless:
// the sender stores a nonce with the message, and the handler's effects and the nonce's removal are
// one commit that checks the nonce.
//
//   node examples/work-queue.mjs [database file]

import { randomUUID } from "node:crypto";
import { openKv } from "openkv";

const ORDERS = 20;
const FAILING = new Set([3, 14]);

const kv = await openKv(process.argv[2] ?? ":memory:");
let deliveries = 0;
let repeats = 0;

/** The order and its message are stored together, or neither is. */
async function placeOrder(id, amount) {
  const nonce = randomUUID();
  await kv
    .atomic()
    .check({ key: ["nonces", nonce], versionstamp: null })
    .set(["nonces", nonce], true)
    .set(["orders", id], { amount, state: "placed" })
    .enqueue(
      { nonce, id, amount },
      { backoffSchedule: [10, 10, 10], keysIfUndelivered: [["undelivered", id]] },
    )
    .commit();
}

async function handle({ nonce, id, amount }) {
  deliveries++;
  const seen = await kv.get(["nonces", nonce]);
  if (seen.value === null) {
    repeats++;
    return;
  }
  await kv
    .atomic()
    .check(seen)
    .delete(seen.key)
    .set(["orders", id], { amount, state: "paid" })
    .sum(["revenue"], BigInt(amount))
    .commit();
  // Some handlers fail after their work is done, so their messages are delivered again.
  if (FAILING.has(id)) {
    throw new Error(`order ${id}: failing on purpose, after the commit`);
  }
}

/** The queue tells nobody that it is empty; the orders tell that they are all paid. */
async function allPaid() {
  let paid = 0;
  for await (const { value } of kv.list({ prefix: ["orders"] })) {
    paid += value.state === "paid" ? 1 : 0;
  }
  return paid === ORDERS;
}

const listening = kv.listenQueue(handle);

for (let id = 0; id < ORDERS; id++) {
  await placeOrder(id, 10 + id);
}
console.log(`Placed ${ORDERS} orders; ${FAILING.size} handlers will fail and be reported as such.`);

while (!(await allPaid()) || repeats < FAILING.size) {
  await new Promise((resolve) => setTimeout(resolve, 20));
}
console.log(`${deliveries} deliveries, of which ${repeats} came a second time and did nothing.`);
console.log(`Revenue: ${(await kv.get(["revenue"])).value}, each order counted once.`);

kv.close();
await listening;
console.log("The listener ended with the database.");
