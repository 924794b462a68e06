// Two processes that close a file at the same moment leave one file. Each saw the connection of the
// other, and left the log to it: of ten such rounds, eight left a log that nobody was to remove.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { newFolder } from "../kit/folder.mjs";
import { guard } from "../kit/time.mjs";
import { startChild } from "./children.mjs";

const ROUNDS = 20;
const HANG_MS = 30_000;

test("a log is not left by two that close at once", async (t) => {
  const folder = newFolder("close");
  const processes = [0, 1].map(() => {
    let heard;
    const next = () => guard(new Promise((resolve) => (heard = resolve)), HANG_MS, "an answer");
    const ready = next();
    const child = startChild(new URL("closer.mjs", import.meta.url), {}, { onLine: () => heard() });
    t.after(() => child.kill());
    return { child, next, ready };
  });
  await Promise.all(processes.map(({ ready }) => ready));
  const all = (command) =>
    Promise.all(
      processes.map(({ child, next }) => {
        const answer = next();
        child.say(JSON.stringify(command));
        return answer;
      }),
    );
  const left = [];
  for (let round = 0; round < ROUNDS; round++) {
    const path = join(folder, `kv${round}`);
    await all({ open: path });
    await all({});
    assert.ok(existsSync(path));
    if (existsSync(`${path}-wal`)) left.push(round);
  }
  assert.deepEqual(left, []);
});
