// Files with bytes missing or changed: a typed error or the right answer, never a panic, an abort
// or a hang.
//
// What can be promised is less than one might wish: SQLite's pages carry no checksums. Damage to
// the structure of the file is found when it is read; a changed bit within a stored key or value
// may go unnoticed, and the log's checksums end it at the first damaged commit, as if the later
// ones had not been finished.

import assert from "node:assert/strict";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Random } from "../processes/crash/random.mjs";
import { openProbe } from "../processes/probe.mjs";
import { content } from "./child/content.mjs";
import { assertWhole, newDirectory, startExaminer } from "./child/start.mjs";

const PAGE = 4096;
const WAL_HEADER = 32;
const WAL_FRAME = 24 + PAGE;
/** Damaged copies of each kind. */
const TRIALS = 60;
const SEED = process.env.OPENKV_TEST_SEED ?? "1";

/** A whole file, closed, with everything in the main file. */
async function closedFile(t) {
  const path = join(newDirectory(t), "kv.sqlite3");
  const examiner = startExaminer(t);
  await examiner.create(path);
  await examiner.end();
  assert.equal(existsSync(`${path}-wal`), false, "closing leaves one file");
  return path;
}

/** The file of a killed process, with everything in the log. */
async function killedFile(t) {
  const path = join(newDirectory(t), "kv.sqlite3");
  const examiner = startExaminer(t);
  await examiner.stayOpen(path);
  examiner.child.kill();
  await examiner.child.ended;
  return path;
}

/** Copies of `path` (and its log), each damaged by `damage`; what examining them found. */
async function trials(t, path, count, damage) {
  const directory = newDirectory(t);
  const examiner = startExaminer(t);
  const answers = [];
  for (let trial = 0; trial < count; trial++) {
    const copy = join(directory, `${trial}`, "kv.sqlite3");
    mkdirSync(join(directory, `${trial}`));
    copyFileSync(path, copy);
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`);
    const what = damage(copy, new Random(SEED, t.name, trial));
    const before = `${copy}.before`;
    copyFileSync(copy, before); // examining it writes
    answers.push({ ...(await examiner.examine(copy)), what, before });
  }
  await examiner.end();
  const failed = answers.filter(({ open, errors }) => open !== null || errors.length > 0).length;
  const silent = answers.filter(
    ({ open, errors, wrong, missing, extra }) =>
      open === null && errors.length === 0 && wrong + missing + extra > 0,
  ).length;
  t.diagnostic(
    `${count} files: ${failed} with errors, ${silent} different without, ` +
      `${count - failed - silent} as if nothing had happened`,
  );
  return answers;
}

/** Flips 1 to 3 bits at places that `at` chooses. */
function flip(file, random, at) {
  const bytes = readFileSync(file);
  const places = [];
  for (let left = random.between(1, 3); left > 0; left--) {
    const place = at(bytes.length);
    bytes[place] ^= 1 << random.between(0, 7);
    places.push(place);
  }
  writeFileSync(file, bytes);
  return places;
}

test("bits flipped in the file's header", async (t) => {
  const path = await closedFile(t);
  await trials(t, path, TRIALS, (copy, random) => flip(copy, random, () => random.between(0, 99)));
});

test("bits flipped in the heads of pages: reported by an error or the integrity check", async (t) => {
  const path = await closedFile(t);
  const answers = await trials(t, path, TRIALS, (copy, random) =>
    flip(copy, random, (size) => random.between(1, size / PAGE - 1) * PAGE + random.between(0, 11)),
  );
  assert.ok(
    answers.some(({ errors }) => errors.some(({ code }) => code === "CORRUPT")),
    "some damage was found",
  );
  await assertFound(answers);
});

/**
 * Entries that are missing or different without an error are at most those whose own bytes were
 * changed.
 */
async function assertFound(answers) {
  const probe = openProbe();
  for (const { open, errors, missing, wrong, what, before } of answers) {
    if (open !== null || errors.length > 0 || missing + wrong <= what.length) continue;
    const found = await probe.damage(before).catch((error) => [error.message]);
    assert.notDeepEqual(
      found,
      [],
      `bytes ${what} made ${missing} entries miss and ${wrong} differ, unnoticed`,
    );
  }
  probe.close();
}

test("bits flipped in the first page, which has the schema", async (t) => {
  const path = await closedFile(t);
  await trials(t, path, TRIALS, (copy, random) =>
    flip(copy, random, () => random.between(100, PAGE - 1)),
  );
});

test("bits flipped anywhere: each changes at most its entry, or is reported", async (t) => {
  const path = await closedFile(t);
  const answers = await trials(t, path, TRIALS * 2, (copy, random) =>
    flip(copy, random, (size) => random.between(0, size - 1)),
  );
  await assertFound(answers);
});

test("the file truncated anywhere", async (t) => {
  const path = await closedFile(t);
  const { size } = statSync(path);
  await trials(t, path, TRIALS, (copy, random) => {
    const left = random.oneIn(2)
      ? random.between(1, size - 1)
      : random.between(1, size / PAGE - 1) * PAGE;
    truncateSync(copy, left);
    return [left];
  });
});

test("pages of zeros", async (t) => {
  const path = await closedFile(t);
  await trials(t, path, TRIALS / 2, (copy, random) => {
    const bytes = readFileSync(copy);
    const page = random.between(0, bytes.length / PAGE - 1);
    writeFileSync(copy, bytes.fill(0, page * PAGE, (page + 1) * PAGE));
    return [page];
  });
});

test("pages exchanged", async (t) => {
  const path = await closedFile(t);
  await trials(t, path, TRIALS / 2, (copy, random) => {
    const bytes = readFileSync(copy);
    const [a, b] = [0, 0].map(() => random.between(1, bytes.length / PAGE - 1));
    const page = Buffer.from(bytes.subarray(a * PAGE, (a + 1) * PAGE));
    bytes.copyWithin(a * PAGE, b * PAGE, (b + 1) * PAGE);
    page.copy(bytes, b * PAGE);
    writeFileSync(copy, bytes);
    return [a, b];
  });
});

/** What a damaged log leaves is a beginning of what was committed, whole, without errors. */
function assertBeginning({ open, errors, ok, wrong, missing, extra, prefix, what }) {
  if (open !== null) return; // nothing but the log's header was left: not a database yet
  assert.deepEqual(
    { errors, wrong, extra, prefix },
    { errors: [], wrong: 0, extra: 0, prefix: true },
    `at ${what}`,
  );
  assert.equal(ok + missing, content().length);
}

test("bits flipped in the log of a killed process: the commits before remain", async (t) => {
  const path = await killedFile(t);
  const answers = await trials(t, path, TRIALS, (copy, random) =>
    flip(`${copy}-wal`, random, (size) => {
      if (random.oneIn(4)) return random.between(0, WAL_HEADER - 1);
      const frame = WAL_HEADER + random.between(0, (size - WAL_HEADER) / WAL_FRAME - 1) * WAL_FRAME;
      return frame + (random.oneIn(2) ? random.between(0, 23) : random.between(24, WAL_FRAME - 1));
    }),
  );
  answers.forEach(assertBeginning);
});

test("the log of a killed process truncated anywhere: the commits before remain", async (t) => {
  const path = await killedFile(t);
  const { size } = statSync(`${path}-wal`);
  const answers = await trials(t, path, TRIALS, (copy, random) => {
    const left = random.between(0, size);
    truncateSync(`${copy}-wal`, left);
    return [left];
  });
  answers.forEach(assertBeginning);
});

test("the log of a killed process unchanged: every commit remains", async (t) => {
  const path = await killedFile(t);
  const [answer] = await trials(t, path, 1, () => []);
  assertWhole(answer, content().length);
});

test("the log of a killed process removed: the commits in the main file remain", async (t) => {
  const path = await killedFile(t);
  const answers = await trials(t, path, 1, (copy) => rmSync(`${copy}-wal`));
  answers.forEach(assertBeginning);
});

test("the log replaced by that of another database", async (t) => {
  const [path, other] = [await killedFile(t), await killedFile(t)];
  const answers = await trials(t, path, 1, (copy) => copyFileSync(`${other}-wal`, `${copy}-wal`));
  answers.forEach(assertBeginning);
});
