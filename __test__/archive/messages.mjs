// Duty: restores whose messages are compared.

import assert from "node:assert/strict";
import { openKv } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";

/** Restores an archive, and answers the values of the messages that wait, are handled or are dead. */
export async function restoredMessages(target, file, at) {
  const moment = at === undefined ? [] : ["--at", at];
  const { code, err } = await openkv("restore", target, file, ...moment);
  assert.equal(code, 0, err);
  const kv = await openKv(file);
  const queue = kv.queue("mail");
  const { messages } = await queue.peek();
  const letters = await queue.dead.list();
  const dead = letters.messages.map(({ value, error }) => [value, error.message]);
  await kv.close();
  return { waiting: messages.map(({ value }) => value).toSorted(), dead };
}

/** Waits until the archive has the last commit of the database. */
export async function archived(kv, archive) {
  const { versionstamp } = await kv.set(["last"], 0);
  for (;;) {
    const status = await archive.status();
    if (status.versionstamp >= versionstamp) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
