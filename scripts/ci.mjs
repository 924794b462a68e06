// Duty: runs all CI checks (`npm run ci`).
//
//   npm run ci                           everything
//   npm run ci -- --only types,fmt       some steps, by name, whatever they need having been done
//   npm run ci -- --list                 the names
//   npm run ci -- --patience 1           every hang guard as tight as an idle machine allows
//
// A step's output is printed when it ends. All steps run even after a failure, but for those that
// need the failed one; the output of the first that failed is repeated at the very end.

import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { mayFailOnce } from "./ci/flaky.mjs";
import { endAll, runStep } from "./ci/run-step.mjs";
import { steps } from "./ci/steps.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const MINUTE_MS = 60_000;

/** The whole run's hang guard, in minutes. */
const TOTAL_MINUTES_MAX = 19;

/** The widths of the names of a lane and of a step in a table, in characters. */
const LANE_CHARS = 8;
const STEP_CHARS = 20;

/** Length of the part of the first failure that is repeated at the end, in characters. */
const REPEATED_CHARS_MAX = 12_000;

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    list: { type: "boolean" },
    // The guards only end hanging steps: on a busy host, a correct change must not fail.
    patience: { type: "string", default: "3" },
  },
});
const patience = Number(values.patience);
const all = steps(root);
const wanted = select(all, values.only);
if (values.list) {
  console.log(all.map((step) => `${step.lane.padEnd(LANE_CHARS)}${step.name}`).join("\n"));
  process.exit(0);
}

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    endAll();
    process.exit(130);
  });
}

const started = Date.now();
const stopAt = started + patience * TOTAL_MINUTES_MAX * MINUTE_MS;
const results = new Map();
/** The end of each step: `promise` resolves when `tell` is called. */
const ends = new Map(wanted.map((step) => [step.name, makeEnd()]));
let firstFailure;
/** The steps that no lane has begun, for whichever lane is free first. */
const either = wanted.filter((step) => step.lane === "either");
await Promise.all(["node", "rust", "light"].map((lane) => runLane(lane).then(runEither)));
report();
process.exit(firstFailure === undefined ? 0 : 1);

function select(known, only) {
  if (only === undefined) {
    return known;
  }
  const names = only.flatMap((list) => list.split(","));
  for (const name of names) {
    if (!known.some((step) => step.name === name)) {
      const names = known.map((step) => step.name).join(", ");
      console.error(`There is no step "${name}"; there are ${names}.`);
      process.exit(1);
    }
  }
  return known.filter((step) => names.includes(step.name));
}

function makeEnd() {
  let tell;
  const promise = new Promise((resolve) => {
    tell = resolve;
  });
  return { promise, tell };
}

async function runLane(lane) {
  for (const step of wanted.filter((candidate) => candidate.lane === lane)) {
    await take(step);
  }
}

async function runEither() {
  for (let step = either.shift(); step !== undefined; step = either.shift()) {
    await take(step);
  }
}

/** Runs a step once those that it needs, or comes after, have ended. */
async function take(step) {
  await Promise.all([...step.needs, ...step.after].map((other) => ends.get(other)?.promise));
  const broken = step.needs.filter((need) => results.get(need)?.ok === false);
  if (broken.length > 0) {
    const end = `not run: needs ${broken.join(", ")}`;
    record(step, { ok: false, end, output: "", seconds: 0 });
    return;
  }
  console.log(`... ${step.name}: ${step.command?.join(" ") ?? "nothing to do"}`);
  let result = await runStep(step, root, guardOf(step));
  if (!result.ok && step.lane !== "rust" && mayFailOnce([step.name])) {
    console.log(`\n*** ${step.name}: ${result.end}; it is run once more ***\n${result.output}\n`);
    const second = await runStep(step, root, guardOf(step));
    const end = second.ok ? "passed when run once more" : second.end;
    result = { ...second, end, seconds: result.seconds + second.seconds };
  }
  record(step, result);
}

/** The time limit of a step: its own guard, or the rest of the total. */
function guardOf(step) {
  return Math.max(0, Math.min(patience * step.minutes * MINUTE_MS, stopAt - Date.now()));
}

function record(step, result) {
  results.set(step.name, { ...result, endedAt: (Date.now() - started) / 1000 });
  ends.get(step.name).tell();
  if (!result.ok) {
    firstFailure ??= { step, result };
  }
  const rule = result.ok ? "---" : "***";
  console.log(`\n${rule} ${step.name}: ${result.end}, ${result.seconds.toFixed(1)} s ${rule}`);
  if (result.output !== "") {
    console.log(`${result.output}\n`);
  }
}

function report() {
  console.log("\nSeconds of each step, and of the run at its end:");
  for (const { name, lane } of wanted) {
    const { seconds, endedAt, end } = results.get(name);
    const [took, at] = [seconds, endedAt].map((time) => time.toFixed(1).padStart(7));
    console.log(`  ${lane.padEnd(LANE_CHARS)}${name.padEnd(STEP_CHARS)} ${took} ${at}  ${end}`);
  }
  console.log(`  whole run${((Date.now() - started) / 1000).toFixed(1).padStart(34)}`);
  if (firstFailure !== undefined) {
    const { step, result } = firstFailure;
    console.log(`\nFirst failure: ${step.name}, ${result.end}`);
    console.log(result.output.slice(-REPEATED_CHARS_MAX));
  }
  const failed = wanted.filter(({ name }) => !results.get(name).ok).length;
  console.log(`\nCI: ${wanted.length - failed} steps passed, ${failed} failed`);
}
