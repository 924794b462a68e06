// Measures databases on PostgreSQL against pgbench on the same server: a primary and a synchronous
// standby, fsync on, all on this machine.
//
//   node bench/postgres.mjs [--rounds 5] [--seconds 3]
//
// Each round runs every measurement once, so that other load of the machine affects all of them.
// Prints the medians and their ratios. "naive" is a transaction for each operation: BEGIN, SELECT …
// FOR UPDATE, UPDATE, COMMIT, by 64 connections on one row; "pushed down" is one UPDATE of n = n + 1. A
// leader is a process with `lead=` in its URL. "at 5 ms": behind a way that delays each message by 2.5 ms
// in either direction. "standby 2 ms away": the same between the standby and the primary, 1 ms in either
// direction, so that each COMMIT takes 2 ms longer. Measures the addon that is built: run `npm run build:addon -- --profile release`
// before.

import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findBinaries } from "../__test__/kit/postgres/programs.mjs";
import { startPostgres } from "../__test__/kit/postgres.mjs";
import { until } from "../__test__/kit/time.mjs";
import { median, quantile } from "./measure.mjs";

const FAR = fileURLToPath(new URL("./postgres/far.mjs", import.meta.url));
const LOAD = fileURLToPath(new URL("./postgres/load.mjs", import.meta.url));
/** Rows that pgbench's reads and writes choose from, and keys of openkv's. */
const ROWS = 10_000;
const VALUE_BYTES = 100;
const MS_PER_SECOND = 1000;
const US_PER_MS = 1000;
const NAME_WIDTH = 40;
/** How long a message takes to the far server, and as long back. */
const DELAY_MS = 2.5;
/** The same from the standby to the primary. */
const STANDBY_DELAY_MS = 1;

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "3" },
  },
});
const seconds = Number(options.seconds);
const rounds = Number(options.rounds);

const SCRIPTS = {
  naive: `BEGIN;
SELECT n FROM bench_counter WHERE id = 1 FOR UPDATE;
UPDATE bench_counter SET n = n + 1 WHERE id = 1;
COMMIT;
`,
  pushed: `UPDATE bench_counter SET n = n + 1 WHERE id = 1;
`,
  upsert: `\\set k random(1, ${ROWS})
INSERT INTO bench_rows VALUES (:k, repeat('x', ${VALUE_BYTES})::bytea)
  ON CONFLICT (k) DO UPDATE SET v = excluded.v;
`,
  select: `\\set k random(1, ${ROWS})
SELECT v FROM bench_rows WHERE k = :k;
`,
};

const TABLES = `
CREATE TABLE bench_counter (id int PRIMARY KEY, n bigint NOT NULL);
INSERT INTO bench_counter VALUES (1, 0);
CREATE TABLE bench_rows (k int PRIMARY KEY, v bytea NOT NULL);
INSERT INTO bench_rows SELECT k, repeat('x', ${VALUE_BYTES})::bytea
  FROM generate_series(1, ${ROWS}) AS k;
ANALYZE;
`;

const folder = mkdtempSync(join(tmpdir(), "openkv-bench-postgres-"));
const server = await startPostgres({ standby: true, settings: { fsync: "on" } });
const far = await startFar(DELAY_MS);
const farStandby = await startFar(STANDBY_DELAY_MS);
try {
  await server.sql(TABLES);
  for (const [name, text] of Object.entries(SCRIPTS)) writeFileSync(join(folder, name), text);
  report(await measureAll());
} finally {
  far.process.disconnect();
  farStandby.process.disconnect();
  server.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Starts a way to the server that delays each message. */
async function startFar(delayMs) {
  const job = JSON.stringify({ port: server.port, delayMs });
  const child = fork(FAR, [job]);
  const [port] = await once(child, "message");
  return { process: child, port };
}

/** Has the standby reach the primary at that port, and waits until commits wait for it again. */
async function moveStandby(port) {
  const { standby } = server;
  const way = `host=127.0.0.1 port=${port} user=postgres application_name=standby`;
  await standby.sql(`ALTER SYSTEM SET primary_conninfo = '${way}'`);
  await standby.sql("SELECT pg_reload_conf()");
  const reached = async () =>
    (await standby.sql("SELECT conninfo FROM pg_stat_wal_receiver")).includes(`port=${port}`) &&
    (await server.sql("SELECT sync_state FROM pg_stat_replication")) === "sync";
  await until(reached, `the standby is at port ${port}`);
}

/** Operations a second of pgbench, and the median time of one, in ms. */
function pgbench(script, clients, { port } = server) {
  const threads = Math.min(clients, availableParallelism());
  const target = ["-h", "127.0.0.1", "-p", `${port}`, "-U", "postgres", "postgres"];
  const load = ["-c", `${clients}`, "-j", `${threads}`, "-T", `${seconds}`, "-l"];
  const args = ["-n", "-M", "prepared", "-f", join(folder, script), ...load, ...target];
  const logs = mkdtempSync(join(folder, "log-"));
  const { status, stdout, stderr } = spawnSync(join(findBinaries(), "pgbench"), args, {
    cwd: logs,
    encoding: "utf8",
  });
  const perSecond = Number(/tps = ([\d.]+)/.exec(stdout)?.[1]);
  if (status !== 0 || !(perSecond > 0)) throw new Error(`pgbench: ${stdout}${stderr}`);
  const lines = readdirSync(logs).flatMap((name) =>
    readFileSync(join(logs, name), "utf8").trimEnd().split("\n"),
  );
  // Client, transaction, time in µs, …
  const times = lines.map((line) => Number(line.split(" ")[2]) / US_PER_MS);
  return { perSecond, p50Ms: quantile(times, 0.5) };
}

/** Operations a second of openkv in some processes, and the median time of one, in ms. */
async function openkv(what, { processes = 1, inFlight, leads = false, port = server.port }) {
  const url = server
    .url({ more: leads ? "&lead=bench" : "" })
    .replace(`:${server.port}`, `:${port}`);
  const job = JSON.stringify({ url, what, inFlight, seconds, keys: ROWS, bytes: VALUE_BYTES });
  const results = await Promise.all(
    Array.from({ length: processes }, () => {
      const child = fork(LOAD, [job]);
      return new Promise((resolve, reject) => {
        child.once("message", resolve);
        child.once("exit", (code) => reject(new Error(`a process ended with ${code}`)));
      });
    }),
  );
  const count = results.reduce((sum, result) => sum + result.count, 0);
  const elapsedMs = Math.max(...results.map((result) => result.elapsedMs));
  const p50Ms = median(results.map((result) => result.p50Ms));
  return { perSecond: (count * MS_PER_SECOND) / elapsedMs, p50Ms };
}

async function measureAll() {
  const measurements = {
    naive: () => pgbench("naive", 64),
    "upsert, 1 client": () => pgbench("upsert", 1),
    "upsert, 64 clients": () => pgbench("upsert", 64),
    "select, 1 client": () => pgbench("select", 1),
    "select, 32 clients": () => pgbench("select", 32),
    "sums of one key, 4 × 16": () => openkv("sum", { processes: 4, inFlight: 16 }),
    "sums of one key, 4 × 500": () => openkv("sum", { processes: 4, inFlight: 500 }),
    "single sets": () => openkv("set", { processes: 1, inFlight: 1 }),
    "gets, 1 in flight": () => openkv("get", { processes: 1, inFlight: 1 }),
    "gets, 500 in flight": () => openkv("get", { processes: 1, inFlight: 500 }),
    "leader, sums of one key, 64": () => openkv("sum", { inFlight: 64, leads: true }),
    "leader, sums of one key, 2,000": () => openkv("sum", { inFlight: 2000, leads: true }),
    "leader, sets, 2,000": () => openkv("set", { inFlight: 2000, leads: true }),
    "leader, single sets": () => openkv("set", { inFlight: 1, leads: true }),
    "naive at 5 ms": () => pgbench("naive", 64, far),
    "pushed down at 5 ms": () => pgbench("pushed", 64, far),
    "leader at 5 ms, sums of one key, 64": () =>
      openkv("sum", { inFlight: 64, leads: true, port: far.port }),
    "leader at 5 ms, sums of one key, 2,000": () =>
      openkv("sum", { inFlight: 2000, leads: true, port: far.port }),
  };
  const beyond = {
    "standby 2 ms away, upsert, 1 client": () => pgbench("upsert", 1),
    "standby 2 ms away, naive": () => pgbench("naive", 64),
    "standby 2 ms away, leader, single sets": () => openkv("set", { inFlight: 1, leads: true }),
    "standby 2 ms away, leader, sums, 64": () => openkv("sum", { inFlight: 64, leads: true }),
    "standby 2 ms away, leader, sums, 2,000": () => openkv("sum", { inFlight: 2000, leads: true }),
  };
  const names = Object.keys({ ...measurements, ...beyond });
  const results = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, measure] of Object.entries(measurements)) results[name].push(await measure());
    await moveStandby(farStandby.port);
    for (const [name, measure] of Object.entries(beyond)) results[name].push(await measure());
    await moveStandby(server.port);
  }
  return results;
}

function report(results) {
  const middle = (name, field) => median(results[name].map((result) => result[field]));
  for (const name of Object.keys(results)) {
    const perSecond = Math.round(middle(name, "perSecond"));
    console.log(
      `${name.padEnd(NAME_WIDTH)} ${perSecond}/s, p50 ${middle(name, "p50Ms").toFixed(3)} ms`,
    );
  }
  const rates = [
    ["sums of one key, 4 × 16", "naive"],
    ["sums of one key, 4 × 500", "naive"],
    ["gets, 1 in flight", "select, 1 client"],
    ["gets, 500 in flight", "select, 32 clients"],
    ["leader, sums of one key, 64", "naive"],
    ["leader, sums of one key, 2,000", "naive"],
    ["leader, sets, 2,000", "upsert, 64 clients"],
    ["leader at 5 ms, sums of one key, 64", "naive at 5 ms"],
    ["leader at 5 ms, sums of one key, 2,000", "naive at 5 ms"],
    ["leader at 5 ms, sums of one key, 2,000", "pushed down at 5 ms"],
    ["standby 2 ms away, leader, sums, 64", "standby 2 ms away, naive"],
    ["standby 2 ms away, leader, sums, 2,000", "standby 2 ms away, naive"],
  ];
  console.log();
  for (const [ours, theirs] of rates) {
    const ratio = middle(ours, "perSecond") / middle(theirs, "perSecond");
    console.log(`${ours} / ${theirs}: ${ratio.toFixed(2)} of the rate`);
  }
  const waits = [
    ["single sets", "upsert, 1 client"],
    ["leader, single sets", "upsert, 1 client"],
    ["standby 2 ms away, leader, single sets", "standby 2 ms away, upsert, 1 client"],
  ];
  for (const [ours, theirs] of waits) {
    const ratio = middle(ours, "p50Ms") / middle(theirs, "p50Ms");
    console.log(`${ours} / ${theirs}: ${ratio.toFixed(2)} of the p50`);
  }
}
