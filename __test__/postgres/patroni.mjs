// A failover that Patroni decides on, under load: `npm run test:patroni`. A script, because Patroni is not
// a part of PostgreSQL and not on every platform (Debian: `patroni` and `python3-pysyncobj`).
//
// Two nodes and a witness agree by Raft. The node of the primary dies; the other one is promoted once its
// lock has expired. Nothing that was acknowledged may be lost, and nothing may be done twice.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { freePort } from "../kit/port.mjs";
import { killTree } from "../kit/postgres/processes.mjs";
import { findBinaries, newServerFolder, own } from "../kit/postgres/programs.mjs";
import { until } from "../kit/time.mjs";
import { startLoad } from "./load.mjs";

const HOST = "127.0.0.1";
const USER = "postgres";
const COMMITS = 500;
/** The lock of a primary expires after this many seconds. */
const TTL_S = 6;

async function startCluster() {
  const cluster = new Cluster();
  try {
    await cluster.start();
    return cluster;
  } catch (error) {
    cluster.close();
    throw error;
  }
}

class Cluster {
  #folder = newServerFolder();
  #nodes = [];
  #witness;

  async start() {
    const rafts = [];
    for (let n = 0; n < 3; n++) rafts.push(`${HOST}:${await freePort()}`);
    const raftOf = (n) => ({
      data_dir: this.#path(`raft-${n}`),
      self_addr: rafts[n],
      partner_addrs: rafts.filter((_, other) => other !== n),
    });
    const witness = this.#write("witness.yml", { raft: raftOf(2) });
    this.#witness = this.#spawn("patroni_raft_controller", witness);
    for (const [n, name] of ["a", "b"].entries()) {
      const [port, rest] = [await freePort(), await freePort()];
      const data = join(this.#path(`node-${name}`), "data");
      const raft = raftOf(n);
      const settings = this.#write(`${name}.yml`, settingsOf({ name, port, rest, data, raft }));
      this.#nodes.push({ name, port, rest, data, patroni: this.#spawn("patroni", settings) });
    }
    await until(async () => {
      const roles = (await this.#members()).map(({ role }) => role);
      return roles.includes("leader") && roles.includes("sync_standby");
    }, "a primary and a synchronous standby");
  }

  /** The members of the cluster, as any node that answers knows them. */
  async #members() {
    for (const { rest } of this.#nodes) {
      try {
        const answer = await fetch(`http://${HOST}:${rest}/cluster`);
        return (await answer.json()).members ?? [];
      } catch {
        // It is starting, or dead.
      }
    }
    return [];
  }

  url(more) {
    const hosts = this.#nodes.map(({ port }) => `${HOST}:${port}`).join(",");
    return `postgres://${USER}@${hosts}/postgres?kv=shop${more}`;
  }

  /** The machine of the primary dies. */
  async killPrimary() {
    const primary = (await this.#members()).find(({ role }) => role === "leader");
    killNode(this.#nodes.find(({ name }) => name === primary.name));
  }

  close() {
    for (const node of this.#nodes) killNode(node);
    this.#witness?.kill("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  }

  #spawn(program, settings) {
    const options = ["--reuid=postgres", "--regid=postgres", "--init-groups"];
    const [command, args] =
      process.getuid() === 0
        ? ["setpriv", [...options, "--pdeathsig", "KILL", program, settings]]
        : [program, [settings]];
    const stdio = ["ignore", "ignore", process.env.PATRONI_LOG ? "inherit" : "ignore"];
    const child = spawn(command, args, { cwd: this.#folder, stdio });
    child.once("error", (error) => {
      throw error;
    });
    return child;
  }

  #path(name) {
    const path = join(this.#folder, name);
    mkdirSync(path, { mode: 0o700 });
    own(path);
    return path;
  }

  /** Settings as JSON, which is YAML. */
  #write(name, settings) {
    const path = join(this.#folder, name);
    writeFileSync(path, JSON.stringify(settings));
    own(path);
    return path;
  }
}

function settingsOf({ name, port, rest, data, raft }) {
  const trust = ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"];
  const user = { username: USER };
  return {
    scope: "openkv",
    name,
    raft,
    restapi: { listen: `${HOST}:${rest}`, connect_address: `${HOST}:${rest}` },
    bootstrap: {
      dcs: { ttl: TTL_S, loop_wait: 1, retry_timeout: 2, synchronous_mode: true },
      initdb: [{ encoding: "UTF8" }, { locale: "C" }, "data-checksums"],
    },
    postgresql: {
      listen: `${HOST}:${port}`,
      connect_address: `${HOST}:${port}`,
      data_dir: data,
      bin_dir: findBinaries(),
      pgpass: join(data, "..", "pgpass"),
      pg_hba: trust,
      authentication: { superuser: user, replication: user },
      parameters: { unix_socket_directories: "", restart_after_crash: "off" },
    },
  };
}

/** Kills Patroni first, which would start PostgreSQL again. */
function killNode({ patroni, data }) {
  patroni.kill("SIGKILL");
  const file = join(data, "postmaster.pid");
  if (existsSync(file)) killTree(Number(readFileSync(file, "utf8").split("\n")[0]));
}

for (const [name, more, options] of [
  ["direct writers", "", {}],
  ["a leader", "&lead=one", { processes: 1, inFlight: 32 }],
]) {
  const cluster = await startCluster();
  try {
    const load = await startLoad(cluster.url(more), options);
    await load.progress(COMMITS);
    await cluster.killPrimary();
    await load.progress(COMMITS);
    await load.stop();
    await load.check(cluster.url(""));
    const counts = `${load.acknowledged.size} acknowledged, ${load.refused.size} refused`;
    console.log(`${name}: ${counts}, ${load.unknown.size} unknown; 0 lost, 0 done twice`);
  } finally {
    cluster.close();
  }
}
