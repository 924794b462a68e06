// Duty: follow values as they change. A watch first tells the present state, then every newer one;
// a slow reader skips states in between but always ends on the last.
//
//   node examples/live-watch.mjs [database file]

import { setTimeout as sleep } from "node:timers/promises";
import { openKv } from "openkv";

const kv = await openKv(process.argv[2] ?? ":memory:");

const PRICE = ["price", "tea"];
const STOCK = ["stock", "tea"];

/** The shop: changes prices and stock, as another process on the same file might. */
async function trade() {
  await kv.set(PRICE, 3.2);
  await sleep(20);
  await kv.atomic().set(PRICE, 3.4).set(STOCK, 40).commit();
  await sleep(20);
  for (let left = 39; left >= 0; left--) {
    await kv.set(STOCK, left);
  }
}

let states = 0;
let last = "";
let trading;
// Breaking out of the loop cancels the watch.
for await (const [price, stock] of kv.watch([PRICE, STOCK])) {
  states++;
  last = `tea costs ${price.value ?? "nothing yet"}, ${stock.value ?? "none"} left`;
  if (states === 1) {
    console.log(`The first state comes at once: ${last}.`);
    trading = trade();
  }
  if (stock.value === 0) {
    break;
  }
}
await trading;
console.log(`The last state was not missed: ${last}.`);
console.log(`42 commits were seen as ${states - 1} further states.`);
kv.close();
