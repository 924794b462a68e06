// Duty: runs the conformance cases, unchanged, under Node, Bun and Deno.
//
//   node run.mjs                                  openkv, on each of VARIANTS
//   bun run.mjs, deno run -A run.mjs              openkv, each case on a file and on one other variant in turn:
//                                                 what differs by runtime is above the binding
//   deno run -A --unstable-kv run.mjs --oracle    Deno's own KV, which the cases describe
//
//   --oracle         run against Deno.openKv; a case with `denoDiffers` must fail there
//   --slow           with --oracle: also the cases that Deno needs a minute for (`denoSlow`)
//   --only words     only cases whose "shelf: name" has these words
//   --variant v      only one of VARIANTS
//   --verbose        name every case, with its time
//
// Ends with the line "N passed, N failed, N skipped"; exit code 1 when something failed.

import { join } from "node:path";
import process from "node:process";
import { newFolder } from "../kit/folder.mjs";
import { Context, Skip } from "./context.mjs";
import { loadSubject, runtime } from "./subject.mjs";
import { DIFFERS, runsOn, shelves, VARIANTS } from "./suite.mjs";

/** What Deno opens without a server. */
const DENO_VARIANTS = ["memory", "file"];
/** A case that takes longer hangs. */
const CASE_MS_MAX = 20_000;
/** Deno takes one sync per write: 500 writes on a busy disk are many seconds. */
const ORACLE_CASE_MS_MAX = 60_000;
/** With --slow, Deno's once-a-minute sweeps decide. */
const SLOW_CASE_MS_MAX = 150_000;
/** Cases in flight: enough to overlap their waits, few enough to keep the guard honest. */
const CASES_AT_ONCE = 12;

const options = parse(process.argv.slice(2));
const subject = await loadSubject(options.oracle);
const folder = newFolder("conformance");
const totals = { passed: 0, failed: 0, skipped: 0 };
const asNoted = [];
const started = Date.now();

process.on("unhandledRejection", (error) => {
  report("FAIL", "unhandled rejection", String(error?.stack ?? error));
  totals.failed++;
});

const tasks = plan();
const together = tasks.filter((task) => !task.case.alone);
const alone = tasks.filter((task) => task.case.alone);
await Promise.all(Array.from({ length: CASES_AT_ONCE }, () => drain(together)));
await drain(alone);

if (options.oracle) console.log(`${asNoted.length} differ from Deno as noted`);
const seconds = ((Date.now() - started) / 1000).toFixed(1);
console.log(`${subject.name} on ${runtime}, ${seconds} s`);
console.log(
  `${totals.passed} passed, ${totals.failed} failed` +
    (totals.skipped ? `, ${totals.skipped} skipped` : ""),
);
process.exit(totals.failed ? 1 : 0);

function parse(args) {
  const value = (name) => {
    const at = args.indexOf(name);
    return at === -1 ? undefined : args[at + 1];
  };
  return {
    oracle: args.includes("--oracle"),
    slow: args.includes("--slow"),
    verbose: args.includes("--verbose"),
    only: value("--only"),
    variants: value("--variant") ? [value("--variant")] : null,
  };
}

function plan() {
  const tasks = [];
  const inTurn = runtime !== "node" && !options.oracle && options.variants === null;
  for (const variant of options.variants ?? (options.oracle ? DENO_VARIANTS : VARIANTS)) {
    for (const { shelf, cases } of shelves) {
      for (const [position, each] of cases.entries()) {
        const id = `${shelf}: ${each.name}`;
        if (!runsOn(each, variant, shelf)) continue;
        if (inTurn && variant !== "file" && variant !== variantOf(position, each, shelf)) continue;
        if (options.only && !id.includes(options.only)) continue;
        tasks.push({ id, variant, case: each, number: tasks.length });
      }
    }
  }
  return tasks;
}

/** The variant beside a file on which a case runs where not all do. */
function variantOf(position, each, shelf) {
  const others = VARIANTS.filter((variant) => variant !== "file" && runsOn(each, variant, shelf));
  return others[position % others.length];
}

async function drain(queue) {
  for (let task = queue.shift(); task; task = queue.shift()) await runTask(task);
}

async function runTask(task) {
  const label = `${task.variant.padEnd(8)} ${task.id}`;
  const slow = task.case.denoSlow;
  if (options.oracle && slow && !options.slow) {
    totals.skipped++;
    if (options.verbose) report("skip", label, slow);
    return;
  }
  const begun = Date.now();
  const patience = slow ? SLOW_CASE_MS_MAX : ORACLE_CASE_MS_MAX;
  const error = await outcome(task, options.oracle ? patience : CASE_MS_MAX);
  const differs = DIFFERS[task.variant];
  if (error instanceof Skip) {
    totals.skipped++;
    report("skip", label, error.message);
  } else if (options.oracle && task.case.denoDiffers && !error?.hung) {
    if (error) {
      asNoted.push(task.id);
      totals.passed++;
      if (options.verbose) report("differs", label, String(error.message ?? error));
    } else {
      totals.failed++;
      report("FAIL", label, "denoDiffers is stale: Deno passes this case");
    }
  } else if (task.case[differs]) {
    if (error && !error.hung) {
      totals.passed++;
    } else {
      totals.failed++;
      report("FAIL", label, error?.message ?? `${differs} is stale: the case passes`);
    }
  } else if (error) {
    totals.failed++;
    report("FAIL", label, String(options.verbose ? error.stack : (error.message ?? error)));
  } else {
    totals.passed++;
    if (options.verbose) report("ok", label, `${Date.now() - begun} ms`);
  }
}

/** What the case threw, or null; it is cut off after `limit` ms. */
async function outcome(task, limit) {
  const t = new Context({
    subject,
    variant: task.variant,
    folder: join(folder, `${task.number}`),
    oracle: options.oracle,
  });
  let timer;
  const guard = new Promise((resolve) => {
    const hung = Object.assign(new Error(`hung for ${limit} ms`), { hung: true });
    timer = setTimeout(() => resolve(hung), limit);
  });
  const ran = (async () => task.case.run(t))().then(
    () => null,
    (error) => error ?? new Error("threw nothing"),
  );
  const error = await Promise.race([ran, guard]);
  clearTimeout(timer);
  try {
    await t.closeAll();
  } catch (closing) {
    return error ?? closing;
  }
  return error;
}

function report(verdict, label, detail) {
  console.log(`${verdict} ${label}\n     ${detail.replaceAll("\n", "\n     ")}`);
}
