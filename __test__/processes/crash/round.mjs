// One round: writers run on a file and are killed with SIGKILL; the file is opened again and
// verified.

import { guard, sleep } from "../../kit/time.mjs";
import { startChild } from "../children.mjs";
import { openKv } from "../target.mjs";
import { verify } from "./verify.mjs";

const WRITER = new URL("writer.mjs", import.meta.url);

/** Nothing in a round takes long; this catches hangs. */
const HANG_MS = 60_000;

/** Numbers of steps that one round may use up. */
const STEPS_PER_ROUND = 1_000_000;

/**
 * @typedef {object} File what is kept of a file between its rounds
 * @property {string} path
 * @property {import("./model.mjs").Model} model
 * @property {number} rounds so far
 * @property {boolean} consumed whether some writers also handle messages
 * @property {"full" | "normal"} durability
 * @property {object} probe
 *
 * @param {File} file
 * @param {import("./random.mjs").Random} random
 * @returns {Promise<string>} how the writers were killed
 */
export async function round(file, random) {
  const { model } = file;
  const style = random.pick([
    "opening",
    "running",
    "running",
    "running",
    "after commits",
    "one by one",
  ]);
  const count = style === "one by one" || random.oneIn(4) ? random.between(2, 3) : 1;
  const writers = Array.from({ length: count }, (_, writer) => startWriter(file, writer, random));

  await killAll(writers, style, random);
  const killed = Date.now();
  for (const { child } of writers) {
    const { code, signal } = await child.ended;
    if (signal !== "SIGKILL")
      model.fault(`a writer ended by itself: code ${code}, signal ${signal}`);
    if (child.stderr !== "") model.fault(`a writer said on stderr: ${child.stderr}`);
  }
  file.rounds++;

  const untouched = writers.every(({ opened }) => !opened.yes) && model.untouched;
  const probeFirst = random.oneIn(2);
  if (probeFirst && !untouched) await check(file, "before it was opened again");
  const kv = await guard(
    openKv(file.path, { durability: file.durability }),
    HANG_MS,
    "opening the file again",
  );
  await guard(verify(kv, model, killed, random), HANG_MS, "reading the file");
  if (!probeFirst && random.oneIn(2)) await check(file, "while it was open again");
  await kv.close();
  if (!probeFirst) await check(file, "after it was opened again and closed");
  return style;
}

function startWriter(file, writer, random) {
  const opened = { yes: false };
  let resolve;
  opened.or = new Promise((r) => (resolve = r));
  const commits = { count: 0, stopAt: Infinity, stop: () => {} };
  const args = {
    path: file.path,
    durability: file.durability,
    seed: file.model.seed,
    writer: `w${writer}`,
    lanes: random.pick([1, 3, 8, 8, 16]),
    first: file.rounds * STEPS_PER_ROUND,
    consume: file.consumed && writer === 0,
    slow: random.oneIn(4),
  };
  const onLine = (line) => {
    if (line === "R") {
      opened.yes = true;
      return resolve();
    }
    file.model.hear(line);
    if (line[0] === "A" && ++commits.count === commits.stopAt) commits.stop();
  };
  const child = startChild(WRITER, args, { onLine });
  child.ended.then(resolve, resolve);
  return { child, opened, commits };
}

async function killAll(writers, style, random) {
  const kill = () => writers.forEach(({ child }) => child.kill());
  if (style === "opening") {
    await sleep(random.between(0, 90));
    return kill();
  }
  const opened = Promise.all(writers.map((writer) => writer.opened.or));
  await guard(opened, HANG_MS, "writers open the file");
  if (style === "one by one") {
    for (const { child } of writers) {
      await sleep(random.between(10, 60));
      child.kill();
    }
  } else if (style === "after commits") {
    // From within the handler of the line: the sooner after it, the better.
    const [{ commits, child }] = writers;
    const enough = new Promise((resolve) => {
      commits.stopAt = commits.count + random.between(1, 500);
      commits.stop = () => resolve(kill());
    });
    await guard(Promise.race([enough, child.ended]), HANG_MS, "a writer commits");
    kill();
  } else {
    await sleep(random.between(0, 150));
    kill();
  }
}

async function check(file, when) {
  for (const what of await file.probe.damage(file.path))
    file.model.fault(`damaged ${when}: ${what}`);
}
