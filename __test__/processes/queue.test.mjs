// Queue messages go to whichever process listens, once, whatever happens to the others.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HANG_MS, guard, sleep } from "../kit/time.mjs";
import { newPath } from "./peer/file.mjs";
import { startPeer } from "./peer/start.mjs";
import { openKv } from "./target.mjs";

/** A message's lock: hidden from other consumers for this long after the last sign of life. */
const LOCK_MS = 5000;

/** Listens on `kv`; `handled` grows, `next` resolves with it at the next delivery. */
function listenOn(t, kv) {
  const handled = [];
  let wake = () => {};
  const ended = kv.listenQueue((message) => {
    handled.push(message);
    wake();
  });
  t.after(async () => {
    kv[Symbol.dispose]();
    await ended;
  });
  const next = async (what) => {
    const before = handled.length;
    const delivered = new Promise((resolve) => (wake = resolve));
    if (handled.length === before) await guard(delivered, HANG_MS, what);
  };
  return { handled, next };
}

test("a message of another process is handled here", async (t) => {
  const path = newPath();
  const kv = await openKv(path);
  const { handled, next } = listenOn(t, kv);
  const peer = await startPeer(t, path);
  for (let n = 0; n < 5; n++) {
    const delivered = next("a message of another process");
    await peer.do("enqueue", { message: { n } });
    await delivered;
  }
  assert.deepEqual(
    handled,
    [0, 1, 2, 3, 4].map((n) => ({ n })),
  );
});

test("a delayed message of a process that is gone is handled here", async (t) => {
  const path = newPath();
  const kv = await openKv(path);
  const { handled, next } = listenOn(t, kv);
  const peer = await startPeer(t, path);
  const delivered = next("the delayed message");
  const enqueued = Date.now();
  await peer.do("enqueue", { message: "later", options: { delay: 700 } });
  peer.child.kill();
  await delivered;
  assert.deepEqual(handled, ["later"]);
  assert.ok(Date.now() - enqueued >= 700, "not before its time");
});

test("many messages over several processes: each is handled by one of them", async (t) => {
  const path = newPath();
  const kv = await openKv(path);
  t.after(() => kv[Symbol.dispose]());
  const peers = await Promise.all([startPeer(t, path), startPeer(t, path), startPeer(t, path)]);
  for (const peer of peers) await peer.do("handle", { ms: 3 });
  const messages = Array.from({ length: 300 }, (_, n) => n);
  await Promise.all(messages.map((n) => kv.enqueue(n)));

  const handled = [];
  const listening = peers.map(async ({ hear }) => {
    while (handled.length < messages.length) {
      handled.push((await hear((said) => "handled" in said, "a message")).handled);
    }
  });
  await Promise.race(listening); // the others wait for messages that do not come
  listening.forEach((waiting) => waiting.catch(() => {}));
  assert.deepEqual(
    handled.sort((a, b) => a - b),
    messages,
  );
});

test("a handler that outlasts the lock keeps its message to itself", async (t) => {
  const path = newPath();
  const busy = await startPeer(t, path);
  const idle = await startPeer(t, path);
  await busy.do("handle", { ms: LOCK_MS + 3000 });
  await busy.do("enqueue", { message: "long" });
  await busy.hear((said) => said.began === "long", "the handler begins");
  await idle.do("handle", { ms: 0 });
  await busy.hear((said) => said.handled === "long", "the handler ends");

  // The listener that was idle all the while still takes what comes, and nothing came twice.
  await busy.do("close");
  await idle.do("enqueue", { message: "next" });
  await idle.hear((said) => said.handled === "next", "the other process handles the next message");
  assert.deepEqual(
    idle.heard.filter((said) => "began" in said && said.began === "long"),
    [],
  );
  assert.deepEqual(
    busy.heard.filter((said) => "began" in said),
    [],
  );
});

test("the message of a consumer that is killed goes to another process", async (t) => {
  const path = newPath();
  const doomed = await startPeer(t, path);
  await doomed.do("handle", { ms: 10 * HANG_MS });
  await doomed.do("enqueue", { message: "orphan" });
  await doomed.hear((said) => said.began === "orphan", "the handler begins");
  const heir = await startPeer(t, path);
  await heir.do("handle", { ms: 0 });
  await sleep(100);
  assert.deepEqual(heir.heard, [], "the lock is still held");

  doomed.child.kill();
  await heir.hear((said) => said.handled === "orphan", "the message is delivered again");
  assert.deepEqual(
    heir.heard.filter((said) => "began" in said),
    [{ began: "orphan" }],
  );
});

test("a message whose consumer closes its handle is not lost", async (t) => {
  const path = newPath();
  const leaving = await startPeer(t, path);
  await leaving.do("handle", { ms: 200 });
  await leaving.do("enqueue", { message: "m" });
  await leaving.hear((said) => said.began === "m", "the handler begins");
  await leaving.do("close");
  await leaving.hear((said) => said.handled === "m", "the handler ends after close()");
  const { code } = await guard(leaving.child.ended, HANG_MS, "the process ends by itself");
  assert.equal(code, 0);
});
