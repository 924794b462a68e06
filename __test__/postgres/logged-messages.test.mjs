// Duty: with log.messages an archive of a database on PostgreSQL has the messages of each moment, of direct writers
// and of leaders, and without it none.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { archived, restoredMessages } from "../archive/messages.mjs";
import { folderOfTests } from "../cli/running.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { open } from "../kit/server.mjs";

const inFolder = folderOfTests();
const NOTHING = { waiting: [], dead: [] };
/** Longer than a test. */
const FAR_MS = 3_600_000;

let server;
before(async () => {
  server = await sharedPostgres();
});

/** Takes the next message, and fails it for good. */
async function fail(queue, why) {
  const message = await queue.receive();
  assert.equal(await message.nack({ error: new Error(why) }), true);
}

for (const [mode, more] of Object.entries({ directly: "", "by its leader": "&lead=logged" })) {
  test(`a restore has the messages of its moment of a database that is written ${mode}`, async () => {
    const url = server.url({ more });
    const name = (what) => inFolder(`${what} ${mode}`);
    const kv = await open(url, { log: { messages: true } });
    const queue = kv.queue("mail");
    // Before the snapshot, which must have them.
    await queue.enqueue("early dies", { priority: 9, backoffSchedule: [] });
    await fail(queue, "early");
    await queue.enqueue("early", { delay: FAR_MS });
    await queue.enqueue("gone", { priority: 9 });
    assert.equal(await (await queue.receive()).ack(), true);
    const target = name("target");
    const archive = await kv.archive({ to: target });
    await archived(kv, archive);
    const early = { waiting: ["early"], dead: [["early dies", "early"]] };
    const begun = (await kv.get(["last"])).versionstamp;
    // Behind it, so that only the log has them.
    const waits = { queue: "mail", delay: FAR_MS };
    const [both, next] = await Promise.all([
      kv.atomic().set(["with"], 1).enqueue("with an entry", waits).commit(),
      queue.enqueue("dies", { priority: 8, backoffSchedule: [] }),
    ]);
    const sent = both.versionstamp > next.versionstamp ? both : next;
    await fail(queue, "late");
    const { id } = await queue.enqueue("deleted", { delay: FAR_MS });
    const whole = (await kv.set(["whole"], 1)).versionstamp;
    assert.equal(await queue.delete(id), true);
    await queue.enqueue("handled", { priority: 9 });
    const handled = await queue.receive();
    const held = (await kv.set(["held"], 1)).versionstamp;
    assert.equal(await handled.ack(), true);
    const [oldest] = (await queue.dead.list()).messages;
    assert.equal(await queue.dead.requeue(oldest.id), true);
    await archived(kv, archive);
    await kv.close();
    const entry = "with an entry";
    const late = [...early.dead, ["dies", "late"]];
    for (const [at, expected] of [
      [begun, early],
      [sent.versionstamp, { waiting: ["dies", "early", entry], dead: early.dead }],
      [whole, { waiting: ["deleted", "early", entry], dead: late }],
      [held, { waiting: ["early", "handled", entry], dead: late }],
      [undefined, { waiting: ["early", "early dies", entry], dead: [["dies", "late"]] }],
    ]) {
      assert.deepEqual(await restoredMessages(target, name(`at ${at}`), at), expected, at);
    }
  });
}

test("another process turns the option on under a leader, which logs from there on", async () => {
  const url = server.url();
  const leader = await open(`${url}&lead=under`, { log: true });
  const queue = leader.queue("mail");
  await queue.enqueue("before", { delay: FAR_MS });
  const other = await open(url, { log: { messages: true } });
  const target = inFolder("under");
  const archive = await other.archive({ to: target });
  // The snapshot is taken, so that only the log has what follows.
  await archived(leader, archive);
  const { versionstamp } = await queue.enqueue("after", { delay: FAR_MS });
  await archived(leader, archive);
  await archive.stop();
  const { waiting } = await restoredMessages(target, inFolder("under restored"), versionstamp);
  assert.deepEqual(waiting, ["after", "before"]);
});

test("without the option an archive has no messages", async () => {
  const kv = await open(server.url(), { log: true });
  const target = inFolder("without");
  const queue = kv.queue("mail");
  await queue.enqueue("early", { delay: FAR_MS });
  const archive = await kv.archive({ to: target });
  await queue.enqueue("late", { delay: FAR_MS });
  await archived(kv, archive);
  await kv.close();
  assert.deepEqual(await restoredMessages(target, inFolder("without restored")), NOTHING);
});
