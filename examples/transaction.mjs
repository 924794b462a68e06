// Duty: book seats so that no seat is sold twice and no row is sold beyond its limit, however many
// buyers come at once. The function of a transaction reads and writes as if no other writer existed;
// after a conflict it runs again.
//
//   node examples/transaction.mjs [database file]

import { openKv } from "openkv";

const ROWS = ["front", "back"];
const SEATS = 5;
const BUYERS = 20;

const kv = await openKv(process.argv[2] ?? ":memory:");
let runs = 0;

/** Books the first free seat of a row, and has the ticket sent. Null when the row is full. */
async function book(row, buyer) {
  const { value: seat } = await kv.transaction(
    async (tx) => {
      runs++;
      // Another booking in this row is a conflict, also one of a seat that was free.
      const taken = await tx.count({ prefix: ["seats", row] });
      if (taken === SEATS) return null;
      tx.set(["seats", row, taken + 1], buyer);
      tx.sum(["sold"], 1n);
      // The message is there with the booking, or not at all.
      tx.enqueue({ buyer, row, seat: taken + 1 }, { queue: "tickets" });
      return taken + 1;
    },
    { maxRetries: Number.POSITIVE_INFINITY },
  );
  return seat;
}

/** Two people change places. What the function throws undoes everything. */
async function swap(one, other) {
  await kv.transaction(async (tx) => {
    const [mine, theirs] = await tx.getMany([one, other]);
    tx.set(one, theirs.value).set(other, mine.value);
    if (mine.value === null || theirs.value === null) throw new Error("one of the seats is free");
  });
}

const seats = await Promise.all(
  Array.from({ length: BUYERS }, (_, i) => book(ROWS[i % ROWS.length], `buyer ${i}`)),
);
const booked = seats.filter((seat) => seat !== null).length;
console.log(`${BUYERS} buyers at once: ${booked} booked, ${BUYERS - booked} found the row full.`);
console.log(
  `Sold: ${(await kv.get(["sold"])).value}. Tickets to send: ${
    (await kv.queue("tickets").stats()).pending
  }.`,
);
console.log(`The function ran ${runs} times, ${runs - BUYERS} of them after a conflict.`);

const [front, back] = [
  ["seats", "front", 1],
  ["seats", "back", 1],
];
const before = (await kv.getMany([front, back])).map(({ value }) => value);
await swap(front, back);
const after = (await kv.getMany([back, front])).map(({ value }) => value);
console.log(`Swapped: ${before.join() === after.join()}.`);
await swap(front, ["seats", "front", 99]).catch(({ message }) =>
  console.log(`Refused: ${message}.`),
);
kv.close();
