// Duty: when commits may block the JavaScript thread: the budget of a turn, one callback in a turn, the next turn.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { InlineCommits } = require("../../build/native/inline-commits.js");

/** Commits of a thread whose turns end when the test says so. */
function commitsOfThread() {
  const members = [];
  let nowMs = 0;
  const turns = { atTurnEnd: (member) => members.push(member) };
  const commits = new InlineCommits(turns, () => nowMs);
  const endTurn = () => {
    for (const member of members.splice(0)) member.endTurn();
  };
  /** A commit that blocks for so many milliseconds. */
  const busy = (ms) => {
    nowMs += ms;
    return 0;
  };
  return { commits, endTurn, members, busy };
}

/** Lets all microtasks and ticks of this callback run. */
const callback = () => new Promise(setImmediate);

test("small batches commit here, large ones on the writer thread", () => {
  const { commits } = commitsOfThread();
  assert.equal(commits.placeFor(16, 65_536), "here");
  assert.equal(commits.placeFor(17, 1), "writer thread");
  assert.equal(commits.placeFor(1, 65_537), "writer thread");
});

test("a turn has one budget; what exceeds it waits for the next turn", async () => {
  const { commits, endTurn, members, busy } = commitsOfThread();
  commits.block(() => busy(1.1));
  assert.equal(commits.placeFor(1, 1), "next turn");
  let flushed = 0;
  commits.inNextTurn(() => {
    flushed++;
    assert.equal(commits.placeFor(1, 1), "here");
    commits.block(() => busy(0));
  });
  await callback();
  assert.deepEqual([flushed, members.length], [0, 1]);
  endTurn();
  assert.equal(flushed, 1);
  assert.equal(members.length, 1, "the end of the new turn is awaited");
});

test("a second callback of a turn leaves its commits to the writer thread", async () => {
  const { commits, endTurn, busy } = commitsOfThread();
  commits.block(() => busy(0));
  assert.equal(commits.placeFor(1, 1), "here");
  await Promise.resolve();
  assert.equal(commits.placeFor(1, 1), "here", "the same callback");
  await callback();
  assert.equal(commits.placeFor(1, 1), "writer thread");
  endTurn();
  assert.equal(commits.placeFor(1, 1), "here");
});

/** Each budget was followed by a commit on the writer thread: a tick of an immediate runs before its microtasks. */
test("what goes on after a commit in an immediate is in the same callback", async () => {
  const { commits, busy } = commitsOfThread();
  const place = await new Promise((resolve) => {
    setImmediate(() => {
      commits.block(() => busy(0));
      void Promise.resolve()
        .then(() => {})
        .then(() => resolve(commits.placeFor(1, 1)));
    });
  });
  assert.equal(place, "here");
});

test("a commit that the writer thread has got instead does not count", async () => {
  const { commits, members } = commitsOfThread();
  assert.equal(
    commits.block(() => -2),
    -2,
  );
  await callback();
  assert.equal(commits.placeFor(1, 1), "here");
  assert.equal(members.length, 0);
});
