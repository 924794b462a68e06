// `npm run bench`: every workload on every peer, in turns, with one process per trial; prints the
// ratios, for each set of values.
//
// Trials of different peers alternate, so that other load of the machine affects all of them; the
// ratio is that of the medians.

import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "../scripts/build.mjs";
import { installPeers } from "./install.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { canRun, commandOf, PEERS, versionOf } from "./peers.mjs";
import { SETS } from "./data.mjs";
import { FULL, QUICK, WORKLOADS, withSet } from "./plan.mjs";
import { cpuTable, numberTable, ratioTable, score, short, summary } from "./report.mjs";

const USAGE = `node bench/run.mjs [options]
  --quick          a short run: less exact
  --only NAMES     only these workloads, by commas: ${WORKLOADS.map((w) => w.name).join(" ")}
  --values NAMES   only these sets of values, by commas: ${SETS.join(" ")}
  --peers NAMES    only these stores, by commas, or "all": ${PEERS.map((p) => p.name).join(" ")}
  --trials N       trials per store and workload
  --seconds S      measured time of one trial
  --no-build       measure the addon that is built, instead of building the release profile
  --dir DIRECTORY  where the databases are made (default: bench/.data)
  --json FILE      also write every trial to a file
  --cpu            also print processor time per operation
  --cpu-prof DIR   also write a V8 CPU profile of every trial that runs in Node.js`;

/** A trial that takes longer than this hangs. */
const TRIAL_SECONDS_MAX = 180;

const options = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    values: { type: "string" },
    peers: { type: "string" },
    trials: { type: "string" },
    seconds: { type: "string" },
    "no-build": { type: "boolean", default: false },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    json: { type: "string" },
    cpu: { type: "boolean", default: false },
    "cpu-prof": { type: "string" },
    help: { type: "boolean", default: false },
  },
}).values;

if (options.help) {
  console.log(USAGE);
  process.exit(0);
}

/** The entries of `all` that a comma list names, in `all`'s order; unknown names end the run. */
function select(all, list, what) {
  const names = list.split(",").map((name) => name.trim());
  const unknown = names.filter((name) => !all.some((entry) => entry.name === name));
  if (unknown.length > 0) {
    console.error(`No ${what} is called ${unknown.join(", ")}.\n\n${USAGE}`);
    process.exit(2);
  }
  return all.filter((entry) => names.includes(entry.name));
}

const sets = options.values
  ? select(
      SETS.map((name) => ({ name })),
      options.values,
      "set of values",
    ).map(({ name }) => name)
  : SETS;
const named = options.only ? select(WORKLOADS, options.only, "workload") : WORKLOADS;
const workloads = sets.flatMap((set) => named.flatMap((row) => withSet(row, set) ?? []));
const peers =
  options.peers === undefined || options.peers === "all"
    ? PEERS
    : select(PEERS, options.peers, "store");
/** The stores of a workload; some are measured with all sets of values only when they are named. */
const runnersOf = (workload) =>
  peers.filter(
    (peer) =>
      canRun(peer, workload) && (options.peers || !peer.sets || peer.sets.includes(workload.set)),
  );

const plan = { ...(options.quick ? QUICK : FULL) };
if (options.trials) plan.trials = Number(options.trials);
if (options.seconds) plan.ms = Number(options.seconds) * 1000;

const measuresOpenkv = peers.some((peer) => peer.name === "openkv");
const addon = options["no-build"] ? "as it was built" : "release profile";
if (measuresOpenkv && !options["no-build"]) {
  process.stderr.write("Building the release profile, which takes minutes the first time.\n");
  await build({ profile: "release" });
}
installPeers();

/** One trial in a process of its own; its result, or `{ error }`. */
function runTrial(peer, workload, directory) {
  const script = fileURLToPath(new URL("./trial.mjs", import.meta.url));
  const folder = options["cpu-prof"];
  const profile = folder
    ? ["--cpu-prof", "--cpu-prof-dir", join(folder, `${workload.name}-${peer.name}`)]
    : [];
  const [program, args] = commandOf(peer, script, profile);
  const { family, name, set } = workload;
  const trial = [peer.name, peer.kind, family, name, set, directory];
  const child = spawn(program, [...args, ...trial, JSON.stringify(plan)], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, DENO_NO_UPDATE_CHECK: "1", DENO_NO_PACKAGE_JSON: "1" },
  });
  let out = "";
  let errors = "";
  child.stdout.on("data", (data) => (out += data));
  child.stderr.on("data", (data) => (errors += data));
  const guard = setTimeout(() => child.kill("SIGKILL"), TRIAL_SECONDS_MAX * 1000);
  return new Promise((settle) => {
    child.on("close", (code, signal) => {
      clearTimeout(guard);
      const line = out.trimEnd().split("\n").at(-1);
      if (code === 0 && line.startsWith("{")) settle(JSON.parse(line));
      else settle({ error: errors.trim() || out.trim() || `ended by ${signal ?? code}` });
    });
  });
}

const progress = process.stderr.isTTY
  ? (text) => process.stderr.write(`\r\x1b[2K${text}`)
  : () => {};

const directory = dataDirectory(resolve(options.dir));
const machine = machineLine(directory);
const trials = [];
const total =
  plan.trials * workloads.reduce((sum, workload) => sum + runnersOf(workload).length, 0);

for (let round = 0; round < plan.trials; round++) {
  for (const workload of workloads) {
    const runners = runnersOf(workload);
    // Each round starts with another peer, so that no peer always follows the same one.
    for (let n = 0; n < runners.length; n++) {
      const peer = runners[(n + round) % runners.length];
      progress(`[${trials.length + 1}/${total}] ${workload.name} (${workload.set}): ${peer.title}`);
      const own = join(directory, `${trials.length}`);
      mkdirSync(own);
      const result = await runTrial(peer, workload, own);
      rmSync(own, { recursive: true, force: true });
      trials.push({
        workload: workload.name,
        set: workload.set,
        peer: peer.name,
        round,
        ...result,
      });
      if (result.error) {
        progress("");
        process.stderr.write(`${workload.name} on ${peer.title} failed:\n${result.error}\n`);
      }
    }
  }
}
progress("");
rmSync(directory, { recursive: true, force: true });

const results = workloads.map((workload) => {
  const byPeer = {};
  const cpuByPeer = {};
  for (const peer of peers) {
    const own = trials.filter(
      (t) =>
        t.workload === workload.name && t.set === workload.set && t.peer === peer.name && !t.error,
    );
    byPeer[peer.name] = summary(own.map((t) => t.value));
    const cpu = own.map((t) => t.cpuMicroseconds).filter((n) => n !== undefined);
    cpuByPeer[peer.name] = summary(cpu);
  }
  return { workload, byPeer, cpuByPeer };
});

const command = `npm run bench${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(" ")}` : ""}`;
const versions = peers.map((peer) => `${peer.title} ${versionOf(peer) ?? "?"}`).join(", ");
const setup =
  `${plan.trials} trials of ${plan.ms / 1000} s each, interleaved; median (min – max); ` +
  "file database, WAL, synchronous=FULL, fresh values.";

console.log(`Command: \`${command}\``);
console.log(`Machine: ${machine}.`);
console.log(`Stores: ${versions}.${measuresOpenkv ? ` openkv's addon: ${addon}.` : ""}`);
console.log(`${setup}\n`);
for (const set of sets) {
  const own = results.filter(({ workload }) => workload.set === set);
  const shown = peers.filter((peer) => own.some(({ byPeer }) => byPeer[peer.name] !== undefined));
  console.log(`Values: ${set}.\n`);
  if (measuresOpenkv) {
    const { met, missed } = score(own, shown);
    console.log("Ratio of medians, openkv ÷ the other; in brackets the target.\n");
    console.log(`${ratioTable(own, shown)}\n`);
    console.log(`${met} of ${met + missed} targets met.\n`);
  }
  console.log(`${numberTable(own, shown)}\n`);
  if (options.cpu) console.log(`${cpuTable(own, shown)}\n`);
}

const extras = trials.filter((t) => t.failed || t.deliveredTwice);
for (const t of extras) {
  const what = t.failed ? `${short(t.failed)} commits threw` : `${t.deliveredTwice} came twice`;
  console.log(`\nNote: ${t.workload} on ${t.peer}, trial ${t.round + 1}: ${what}.`);
}

if (options.json) {
  writeFileSync(
    options.json,
    `${JSON.stringify({ command, machine, versions, addon, plan, trials }, null, 2)}\n`,
  );
}
if (trials.some((t) => t.error)) process.exitCode = 1;
