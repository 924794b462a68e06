// Duty: a restore has the messages of its moment, where the log has messages, and says nothing of locks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { folderOfTests } from "../cli/running.mjs";
import { archived, restoredMessages } from "./messages.mjs";

const inFolder = folderOfTests();

test("a restore has the messages of its moment", async () => {
  const kv = await openKv(inFolder("kv.sqlite3"), { log: { messages: true } });
  const target = inFolder("target");
  const archive = await kv.archive({ to: target });
  // The archive begins with a snapshot, and has no moment before it.
  await archived(kv, archive);
  const queue = kv.queue("mail");
  const sent = await queue.enqueue("handled", { priority: 9 });
  await queue.enqueue("dies", { priority: 8, backoffSchedule: [] });
  const waits = { queue: "mail", delay: 1_000_000 };
  const both = await kv.atomic().set(["with"], 1).enqueue("waits", waits).commit();
  const handled = await queue.receive();
  await archived(kv, archive);
  assert.equal(await handled.ack(), true);
  const dies = await queue.receive();
  assert.equal(await dies.nack({ error: new Error("it says no") }), true);
  await archived(kv, archive);
  // Behind the last snapshot, so that only the log has it.
  const { versionstamp } = await queue.enqueue("late");
  await archived(kv, archive);
  await kv.close();
  for (const [at, waiting, dead] of [
    [sent.versionstamp, ["handled"], []],
    [both.versionstamp, ["dies", "handled", "waits"], []],
    [versionstamp, ["late", "waits"], [["dies", "it says no"]]],
    [undefined, ["late", "waits"], [["dies", "it says no"]]],
  ]) {
    const file = inFolder(`restored at ${at}`);
    assert.deepEqual(await restoredMessages(target, file, at), { waiting, dead }, at);
  }
});

test("a message that was handled at the moment is delivered again", async () => {
  const kv = await openKv(inFolder("held.sqlite3"), { log: { messages: true } });
  const target = inFolder("held");
  const archive = await kv.archive({ to: target });
  await kv.queue("mail").enqueue("held");
  await archived(kv, archive);
  const message = await kv.queue("mail").receive({ lockDuration: 60_000 });
  await archived(kv, archive);
  const file = inFolder("again.sqlite3");
  const { versionstamp } = await kv.get(["last"]);
  assert.deepEqual((await restoredMessages(target, file, versionstamp)).waiting, ["held"]);
  const again = await openKv(file);
  const { value } = await again.queue("mail").receive();
  assert.equal(value, "held");
  await again.close();
  await message.ack();
  await kv.close();
});
