// Faults of databases on PostgreSQL under load, at random: `npm run test:faults -- --faults 200`. The loads are
// clients of three servers, direct writers and a process that leads. After each fault every load goes on;
// at the end nothing that was acknowledged is lost, nothing was done twice, and nothing that was refused
// was done.
//
//   --faults N   how many (default 30)
//   --seed S     which (default: one of the clock); a failing run prints it
//
// Each round has a PostgreSQL server of its own, with a synchronous standby.

import process from "node:process";
import { parseArgs } from "node:util";
import { Cluster, createAt } from "../kit/cluster.mjs";
import { startPostgres } from "../kit/postgres.mjs";
import { sleep } from "../kit/time.mjs";
import { Random } from "../processes/crash/random.mjs";
import { startLoad } from "./load.mjs";

const FAULTS_OF_A_ROUND = 10;
const SERVERS = 3;
/** Commits of each load that must follow a fault. */
const COMMITS_AFTER = 20;
/** Longer than the lease of a leader. */
const STOPPED_MS_MAX = 4500;

const { values: options } = parseArgs({
  options: { faults: { type: "string", default: "30" }, seed: { type: "string" } },
});
const seed = options.seed ?? `${Date.now() % 1_000_000}`;
/** Plays a round with so many faults. */
async function play(round, random, count) {
  const scene = await setUp();
  const done = [];
  try {
    for (const load of scene.loads()) await load.progress(COMMITS_AFTER);
    for (let n = 0; n < count; n++) {
      const [name, fault] = FAULTS[random.between(0, FAULTS.length - 1)];
      done.push(name);
      await fault(scene, random);
      for (const load of scene.loads()) await load.progress(COMMITS_AFTER);
    }
    const counts = [];
    for (const [name, { load, url, killed }] of Object.entries(scene.of)) {
      await load.stop({ killed });
      await load.check(url);
      const { acknowledged, refused, unknown } = load;
      counts.push(`${name} ${acknowledged.size}+${refused.size}+${unknown.size}`);
    }
    console.log(
      `round ${round}: ${done.join(", ")}; acknowledged+refused+unknown: ${counts.join(", ")}`,
    );
  } catch (error) {
    console.error(`round ${round} of seed ${seed}, after ${done.join(", ")}`);
    throw error;
  } finally {
    await scene.close();
  }
}

async function setUp() {
  const postgres = await startPostgres({ standby: true });
  const cluster = await Cluster.create(postgres);
  const servers = [];
  while (servers.length < SERVERS) servers.push(await cluster.start());
  process.env.OPENKV_ACCESS_TOKEN = await createAt(servers, "shop");
  const urls = {
    servers: servers.map(({ url }) => `${url}/shop`).join(","),
    direct: postgres.url(),
    leader: postgres.url({ more: "&lead=one" }),
  };
  const of = {};
  for (const [name, url] of Object.entries(urls)) {
    const processes = name === "leader" ? 1 : 2;
    of[name] = { load: await startLoad(url, { processes, inFlight: 4 }), url, killed: [] };
  }
  return {
    postgres,
    cluster,
    servers,
    of,
    loads: () => Object.values(of).map(({ load }) => load),
    async close() {
      for (const { load } of Object.values(of)) for (const worker of load.workers) worker.kill();
      await cluster.close();
      postgres.close();
    },
  };
}

/** A worker of a load that lives. */
function worker({ load, killed }, random) {
  const alive = load.workers.filter((one) => !killed.includes(one));
  return alive[random.between(0, alive.length - 1)];
}

/** Kills a process of a load, and starts another. */
async function replace(of, random) {
  const dying = worker(of, random);
  of.killed.push(dying);
  dying.kill();
  await dying.ended;
  await of.load.add(of.url, 4);
}

async function stopFor(child, random) {
  child.pause();
  await sleep(random.between(10, STOPPED_MS_MAX));
  child.resume();
}

const FAULTS = Object.entries({
  "sessions terminated": async ({ postgres }) => {
    const others = "pid <> pg_backend_pid() AND backend_type = 'client backend'";
    await postgres.sql(
      `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE ${others}`,
    );
  },
  "primary restarted": ({ postgres }) => postgres.restart("fast"),
  "primary crashed": ({ postgres }) => postgres.restart("immediate"),
  "standby frozen": async ({ postgres }, random) => {
    postgres.standby.freeze();
    await sleep(random.between(10, 3000));
    postgres.standby.thaw();
  },
  "primary frozen": async ({ postgres }, random) => {
    postgres.freeze();
    await sleep(random.between(10, 3000));
    postgres.thaw();
  },
  "server killed": async ({ cluster, servers }, random) => {
    // The others know its URL, so it starts again at the same one.
    const at = random.between(0, servers.length - 1);
    await cluster.kill(servers[at]);
    await sleep(random.between(0, 2000));
    servers[at] = await cluster.start({ port: Number(new URL(servers[at].url).port) });
  },
  "server stopped": async ({ servers }, random) => {
    const { child } = servers[random.between(0, servers.length - 1)];
    child.kill("SIGSTOP");
    await sleep(random.between(10, STOPPED_MS_MAX));
    child.kill("SIGCONT");
  },
  "direct writer killed": ({ of }, random) => replace(of.direct, random),
  "direct writer stopped": ({ of }, random) => stopFor(worker(of.direct, random), random),
  "leader killed": ({ of }, random) => replace(of.leader, random),
  "leader stopped": ({ of }, random) => stopFor(worker(of.leader, random), random),
});

let left = Number(options.faults);
console.log(`seed ${seed}`);
for (let round = 0; left > 0; round++, left -= FAULTS_OF_A_ROUND) {
  await play(round, new Random(seed, round), Math.min(left, FAULTS_OF_A_ROUND));
}
