// Duty: every file in examples/ runs, says what it promises and leaves what it promises.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";

const examples = fileURLToPath(new URL("../../examples/", import.meta.url));
const folder = newFolder("examples");
/** A hang guard: every example ends in well under a second on an idle machine. */
const EXAMPLE_TIMEOUT_MS = 120_000;

const tested = new Set();

/** Declares the test of one example: its output's lines, and then what its database holds. */
function example(name, check) {
  tested.add(`${name}.mjs`);
  test(name, async () => {
    const path = join(folder, `${name}.sqlite3`);
    const { code, lines, errors } = await run(name, path);
    assert.equal(code, 0, errors);
    await check({ lines, errors, path });
  });
}

function run(name, path) {
  const child = spawn(process.execPath, [join(examples, `${name}.mjs`), path], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: EXAMPLE_TIMEOUT_MS,
  });
  let output = "";
  let errors = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (errors += chunk));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, errors, lines: output.trimEnd().split("\n") }));
  });
}

/** Everything a database holds, as [key, value] pairs in the order of the keys. */
async function contents(path) {
  const kv = await openKv(path);
  const found = [];
  for await (const { key, value } of kv.list({ prefix: [] })) {
    found.push([key, value]);
  }
  await kv.close();
  return found;
}

example("quickstart", ({ lines, errors }) => {
  assert.equal(errors, "");
  assert.deepEqual(lines, [
    "Opened a new database.",
    "Stored and read back: Ada, born in 1815.",
    "Listed: users/ada is Ada.",
    "Listed: users/alan is Alan.",
    "First writer: committed. Second, who had read the same: refused.",
    "Counted 1000 visits.",
    "After its time, the session is gone.",
    "Closed and opened again: Ada Lovelace is still here.",
    "Done. Now read README.md, or the other files in examples/.",
  ]);
});

example("unique-index", async ({ lines, path }) => {
  assert.deepEqual(lines, [
    "insert ada: true",
    "insert a second user with her address: false",
    "insert alan: true",
    "by address: 1",
    "20 logins at once, counted: 20",
    "take alan's address: false",
    "take a free address: true",
    "by the old address: null",
    "by the new address: 1",
    "delete ada: true and again: false",
    "by the new address: null",
  ]);
  // No index entry outlives its record.
  assert.deepEqual(await contents(path), [
    [["users", 2], { id: 2, email: "alan@example.org", logins: 0 }],
    [["users_by_email", "alan@example.org"], 2],
  ]);
});

example("declared-unique-index", async ({ lines, path }) => {
  assert.deepEqual(lines, [
    "insert ada: true",
    "insert a second user with her address: false",
    "insert alan: true",
    "by address: 1",
    "20 logins, counted: 20",
    "take alan's address: false",
    "take a free address: true",
    "by the old address: null",
    "by the new address: 1",
    "delete ada: true and again: false",
    "by the new address: null",
  ]);
  assert.deepEqual(await contents(path), [
    [["users", 2], { id: 2, email: "alan@example.org", logins: 0 }],
  ]);
});

example("declared-one-to-many-index", ({ lines }) => {
  assert.deepEqual(lines, [
    "insert a taken id: false",
    "ada has: 1 2 3 | alan has: 4",
    "holders of task 2: 1",
    "delete task 1: true and again: false",
    "ada has: 3",
  ]);
});

example("one-to-many-index", async ({ lines, path }) => {
  assert.deepEqual(lines, [
    "insert a taken id: false",
    "ada has: 1 2 3 | alan has: 4",
    "20 edits at once, counted: 20",
    "holders of task 2: 1",
    "delete task 1: true and again: false",
    "ada has: 3",
  ]);
  const kept = await contents(path);
  const tasks = kept.filter(([key]) => key[0] === "tasks").map(([, task]) => task);
  const indexed = kept.filter(([key]) => key[0] === "tasks_by_owner").map(([key]) => key.slice(1));
  assert.equal(tasks.length, 3);
  assert.deepEqual(
    new Set(indexed.map(String)),
    new Set(tasks.map(({ owner, id }) => String([owner, id]))),
  );
});

example("bank-transfer", async ({ lines, path }) => {
  assert.equal(lines[0], "5 accounts hold 5000 in all.");
  assert.equal(lines[1], "100 transfers at once: 100 made, 0 refused.");
  assert.match(lines[2], /^\d+ attempts met another transfer and were tried again\.$/);
  assert.equal(lines[3], "5 accounts hold 5000 in all.");
  assert.equal(lines[4], "Refused: account 0 holds 1000, not 1001.");
  const balances = (await contents(path)).map(([, balance]) => balance);
  assert.equal(balances.length, 5);
  assert.equal(
    balances.reduce((sum, balance) => sum + balance),
    5000n,
  );
});

example("work-queue", async ({ lines, path }) => {
  assert.deepEqual(lines, [
    "Placed 20 orders; 2 handlers will fail and be reported as such.",
    "22 deliveries, of which 2 came a second time and did nothing.",
    "Revenue: 390, each order counted once.",
    "The listener ended with the database.",
  ]);
  const kept = await contents(path);
  const orders = kept.filter(([key]) => key[0] === "orders");
  assert.deepEqual(
    orders.map(([, order]) => order),
    Array.from({ length: 20 }, (_, id) => ({ amount: 10 + id, state: "paid" })),
  );
  // No nonce is left behind, and nothing went undelivered.
  assert.equal(kept.length, orders.length + 1);
});

example("transaction", async ({ lines, errors, path }) => {
  assert.equal(errors, "");
  assert.equal(lines[0], "20 buyers at once: 10 booked, 10 found the row full.");
  assert.equal(lines[1], "Sold: 10. Tickets to send: 10.");
  const runs = /^The function ran (\d+) times, (\d+) of them after a conflict\.$/.exec(lines[2]);
  assert.equal(Number(runs?.[1]), 20 + Number(runs?.[2]), lines[2]);
  assert.deepEqual(lines.slice(3), ["Swapped: true.", "Refused: one of the seats is free."]);
  const seats = (await contents(path)).filter(([key]) => key[0] === "seats");
  assert.deepEqual(
    seats.map(([[, row, seat]]) => `${row} ${seat}`),
    [
      ...[1, 2, 3, 4, 5].map((seat) => `back ${seat}`),
      ...[1, 2, 3, 4, 5].map((seat) => `front ${seat}`),
    ],
  );
  assert.equal(new Set(seats.map(([, buyer]) => buyer)).size, 10);
});

example("named-queue", ({ lines, errors }) => {
  assert.equal(errors, "");
  const isFailure = (line) => line.startsWith("Attempt ");
  // The failures of several messages come in the order in which they are due.
  assert.deepEqual(lines.filter(isFailure).sort(), [
    "Attempt 1 for nobody failed: there is no nobody.",
    "Attempt 2 for eve failed: the network is down.",
    "Attempt 2 for nobody failed: there is no nobody.",
    "Attempt 3 for nobody failed: there is no nobody.",
  ]);
  assert.deepEqual(
    lines.filter((line) => !isFailure(line)),
    [
      "4 mails wait.",
      "First comes an alarm to eve.",
      "Sent: a reminder to bob; an alarm to eve at attempt 3; news to ann.",
      "Dead after 3 attempts: news to nobody (there is no nobody).",
      "Sent at last: news to nobody.",
    ],
  );
});

example("live-watch", async ({ lines, path }) => {
  assert.equal(lines[0], "The first state comes at once: tea costs nothing yet, none left.");
  assert.equal(lines[1], "The last state was not missed: tea costs 3.4, 0 left.");
  const further = /^42 commits were seen as (\d+) further states\.$/.exec(lines[2]);
  assert.ok(further !== null && further[1] >= 1 && further[1] <= 42, lines[2]);
  assert.deepEqual(await contents(path), [
    [["price", "tea"], 3.4],
    [["stock", "tea"], 0],
  ]);
});

example("change-feed", async ({ lines, path }) => {
  assert.deepEqual(lines, [
    "Loaded 2 prices.",
    "Followed: tea 4, coffee 5.",
    "Caught up: tea 5.",
    "Not ours: loaded again, 1 price.",
  ]);
  assert.deepEqual(await contents(path), [[["price", "tea"], 5]]);
});

example("ulid-keys", async ({ lines, path }) => {
  assert.deepEqual(lines, [
    "101 lines, in the order in which they were written: true.",
    "The newest two: a later line, line 99",
    "Since the later moment: a later line",
  ]);
  const ids = (await contents(path)).map(([key]) => key[1]);
  assert.equal(new Set(ids).size, 101);
  for (const id of ids) {
    assert.match(id, /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  }
});

example("search", ({ lines, errors }) => {
  assert.equal(errors, "");
  assert.deepEqual(lines, [
    "water salt: Bread, Soup",
    "boiling OR title:bread: Bread, Soup",
    "water NOT leek: Tea",
    "leek: Soup",
    "Boil water. Add salt and [leeks].",
    "kv.search: malformed query at position 10: the quote that starts here is not closed; expected '\"'",
  ]);
});

test("every example has its test", () => {
  const files = readdirSync(examples).filter((file) => file.endsWith(".mjs"));
  assert.deepEqual(new Set(files), tested);
});
