// Duty: send mail from a named queue: urgent mail first, no reminder twice. A failed message is
// retried; a dead letter is kept, inspected and requeued when the cause is removed.
//
//   node examples/named-queue.mjs [database file]

import { openKv } from "openkv";

const kv = await openKv(process.argv[2] ?? ":memory:");
const mail = kv.queue("mail", { deadRetention: 7 * 86_400_000 });

const sent = [];
const unknown = new Set(["nobody"]);
let hiccups = 1;

/** Sends one mail. A message whose handler throws comes again, as its backoffSchedule says. */
async function send({ to, text }, { attempts }) {
  if (unknown.has(to)) throw new RangeError(`there is no ${to}`);
  if (hiccups-- > 0) throw new Error("the network is down");
  sent.push(`${text} to ${to}${attempts > 1 ? ` at attempt ${attempts}` : ""}`);
}

/** Waits until so many are through and nothing else is due. */
async function through(count) {
  for (;;) {
    const { pending, delayed, processing } = await mail.stats();
    if (sent.length >= count && pending + delayed + processing === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const retries = { backoffSchedule: [5, 5] };
await mail.enqueue({ to: "ann", text: "news" }, retries);
// While a reminder waits, another one adds nothing.
for (let i = 0; i < 3; i++) {
  await mail.enqueue({ to: "bob", text: "a reminder" }, { deduplicationKey: "bob", ...retries });
}
await mail.enqueue({ to: "nobody", text: "news" }, retries);
await mail.enqueue({ to: "eve", text: "an alarm" }, { priority: 9, ...retries });
const { pending } = await mail.stats();
console.log(`${pending} mails wait.`);

// Receive one message: the most urgent one. It is ours until its lock expires.
const first = await mail.receive({ lockDuration: 30_000 });
console.log(`First comes ${first.value.text} to ${first.value.to}.`);
await first.nack({ delay: 0, error: new Error("not by hand") });

// The others, and this one again, by a listener; any number of processes may listen.
const stop = new AbortController();
const listening = mail.listen(send, {
  concurrency: 1,
  signal: stop.signal,
  onError: (error, { value, attempts }) => {
    console.log(`Attempt ${attempts} for ${value.to} failed: ${error.message}.`);
  },
});
await through(3);
console.log(`Sent: ${sent.toSorted().join("; ")}.`);

const { messages } = await mail.dead.list();
for (const { id, value, error, attempts } of messages) {
  console.log(`Dead after ${attempts} attempts: ${value.text} to ${value.to} (${error.message}).`);
  unknown.delete(value.to);
  await mail.dead.requeue(id);
}
await through(4);
console.log(`Sent at last: ${sent.at(-1)}.`);

stop.abort();
await listening;
kv.close();
