// Duty: the line that tells how far a long command is: a bar as soon as it is known how much there is.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

const { Progress } = createRequire(import.meta.url)("../../build/cli/progress.js");

/** What is written to the terminal while `draw` runs, where there is one. */
function drawn(terminal, draw) {
  const { isTTY, write } = process.stderr;
  const lines = [];
  process.stderr.isTTY = terminal;
  process.stderr.write = (text) => lines.push(text) > 0;
  try {
    draw();
  } finally {
    process.stderr.isTTY = isTTY;
    process.stderr.write = write;
  }
  return lines;
}

test("a bar appears once the total is known", () => {
  const lines = drawn(true, () => {
    const progress = new Progress("indexed", undefined, "entries", 0);
    progress.update(512, 512, 1000);
    progress.expect(2048);
    progress.update(1024, 1024, 2000);
  });
  assert.match(lines[0], /indexed {2}512 entries {2}512\/s$/);
  assert.match(lines[1], /indexed █{12}░{12} 50% {2}1,024 entries {2}512\/s {2}2 s left$/);
});

test("nothing is drawn where there is no terminal", () => {
  const draw = () => new Progress("indexed", 5, "entries", 0).update(1, 1, 1000);
  assert.deepEqual(drawn(undefined, draw), []);
});

// A long line wrapped, and each of the next ones left a line of it on the screen.
test("a line is no longer than the terminal is wide", () => {
  const { columns } = process.stderr;
  const widthOn = (width) => {
    process.stderr.columns = width;
    const [line] = drawn(true, () =>
      new Progress("imported", 4e6, "entries", 0).update(1e6, 1e6, 100_000),
    );
    return line.replace("\r\u001b[2K", "").length;
  };
  try {
    assert.deepEqual([widthOn(40), widthOn(80), widthOn(undefined)], [39, 79, 79]);
    assert.ok(widthOn(200) > 79);
  } finally {
    process.stderr.columns = columns;
  }
});
