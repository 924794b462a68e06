// Duty: real PostgreSQL servers for tests: start, stop, kill, restart, freeze and promote them.
//
// A server listens on loopback only, lives in a temporary folder, and ends with the process that
// started it. `sharedPostgres()` is for tests that only need some server: scripts/test.mjs starts one
// for all test files of a run. Tests that stop or break their server start one of their own.

import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  closeSync,
  cpSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { freePort } from "./port.mjs";
import { killTree, signalTree } from "./postgres/processes.mjs";
import { commandLine, newServerFolder, own, run } from "./postgres/programs.mjs";
import { until } from "./time.mjs";

/** The user that `initdb` makes; every connection from loopback is trusted. */
const SUPERUSER = "postgres";
const HOST = "127.0.0.1";
/** As which name the standby is synchronous. */
const STANDBY = "standby";

/** Tells test files of the server that their runner has started: its port. */
const SHARED = "OPENKV_TEST_POSTGRES_PORT";
/** A folder that `initdb` has made. Each new server copies it, which is faster. */
const TEMPLATE = "OPENKV_TEST_POSTGRES_TEMPLATE";

/** Settings of each server. Tests of durability turn fsync on. */
const SETTINGS = { listen_addresses: HOST, unix_socket_directories: "", fsync: "off" };

/** How much of the log of a server that does not start is shown, in characters. */
const LOG_CHARS_MAX = 4000;

const running = new Set();
const folders = new Set();

const removeAll = () => {
  for (const server of running) server.kill();
  for (const folder of folders) remove(folder);
};
// Deno runs each file of tests apart, and tells of its end by this event only.
if (globalThis.Deno) globalThis.addEventListener("unload", removeAll);
else process.on("exit", removeAll);

/**
 * Starts a server. `settings` go into postgresql.conf, `files` (names and texts) beside it.
 * `standby: true` adds a synchronous standby, `server.standby`.
 */
export async function startPostgres({ settings = {}, files = {}, standby = false } = {}) {
  const server = new PostgresServer();
  await server.create({ ...SETTINGS, ...settings });
  for (const [name, text] of Object.entries(files)) server.write(name, text);
  await server.start();
  if (standby) server.standby = await standbyOf(server, settings);
  return server;
}

let shared;

/** The server that all test files of a run share, or, without a runner, one of this process. */
export function sharedPostgres() {
  const port = process.env[SHARED];
  shared ??= port ? Promise.resolve(new PostgresServer(Number(port))) : startPostgres();
  return shared;
}

/** For runners of tests: starts the shared server; answers the environment that tells of it. */
export async function postgresForAll() {
  const { port } = await sharedPostgres();
  return { [SHARED]: `${port}`, [TEMPLATE]: await template() };
}

let made;

function template() {
  made ??= process.env[TEMPLATE] ? Promise.resolve(process.env[TEMPLATE]) : makeTemplate();
  return made;
}

async function makeTemplate() {
  const data = join(newFolder(), "data");
  const options = ["-A", "trust", "-E", "UTF8", "--locale=C", "--data-checksums", "--no-sync"];
  await run("initdb", "-D", data, "-U", SUPERUSER, ...options);
  return data;
}

async function standbyOf(primary, settings) {
  const standby = new PostgresServer();
  await standby.createAsCopyOf(primary, { ...SETTINGS, ...settings, cluster_name: STANDBY });
  await standby.start();
  await primary.sql(`ALTER SYSTEM SET synchronous_standby_names = '${STANDBY}'`);
  await primary.sql("SELECT pg_reload_conf()");
  const isSynchronous = async () =>
    (await primary.sql("SELECT sync_state FROM pg_stat_replication")) === "sync";
  await until(isSynchronous, "the standby is synchronous");
  return standby;
}

class PostgresServer {
  /** The synchronous standby, if there is one. */
  standby;
  #folder;
  #child;

  constructor(port) {
    this.port = port;
  }

  /** Makes the folder of the data, from the template. */
  async create(settings) {
    const source = await template();
    await this.#place(settings, async (data) => {
      // Root keeps the owner of the files only by `cp -a`.
      if (process.platform === "win32") return cpSync(source, data, { recursive: true });
      const { status, stderr } = spawnSync("cp", ["-a", source, data], { encoding: "utf8" });
      if (status !== 0) throw new Error(`cp of ${source}: ${stderr}`);
    });
  }

  /** Makes the folder of the data, as a standby of `primary`. */
  async createAsCopyOf(primary, settings) {
    const from = ["-h", HOST, "-p", `${primary.port}`, "-U", SUPERUSER];
    await this.#place(settings, (data) =>
      run("pg_basebackup", ...from, "-D", data, "-R", "-X", "stream", "-c", "fast"),
    );
  }

  async #place(settings, fill) {
    this.#folder = newFolder();
    await fill(this.#data);
    this.port = await freePort();
    this.configure({ port: this.port, ...settings });
  }

  get #data() {
    return join(this.#folder, "data");
  }

  /** Adds settings, which apply from the next start on. */
  configure(settings) {
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    appendFileSync(join(this.#data, "postgresql.conf"), lines.join(""));
  }

  /** Writes a file beside postgresql.conf, which the server and no other user can read. */
  write(name, text) {
    const path = join(this.#data, name);
    rmSync(path, { force: true });
    writeFileSync(path, text, { mode: 0o600 });
    own(path);
  }

  /** Has the server read its settings and certificates again. */
  async reload() {
    await run("pg_ctl", "-D", this.#data, "reload");
  }

  /** Starts the server and waits until it answers. */
  async start() {
    const [command, args] = commandLine("postgres", ["-D", this.#data], { onParentsDeath: "QUIT" });
    const log = openSync(join(this.#folder, "log"), "a");
    const child = spawn(command, args, { cwd: this.#folder, stdio: ["ignore", log, log] });
    closeSync(log);
    child.unref();
    this.#child = child;
    running.add(this);
    const ended = () => child.exitCode ?? child.signalCode;
    await until(() => ended() !== null || this.#isReady(), "PostgreSQL is ready");
    if (ended() !== null) {
      running.delete(this);
      throw new Error(`PostgreSQL ended by ${ended()}: ${this.log().slice(-LOG_CHARS_MAX)}`);
    }
  }

  /** What `pg_ctl -w start` waits for. */
  #isReady() {
    try {
      const lines = readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n");
      return Number(lines[0]) === this.#child.pid && /^(ready|standby)/.test(lines[7] ?? "");
    } catch {
      return false;
    }
  }

  /** Stops the server: "smart" waits for its clients, "fast" ends them, "immediate" crashes. */
  async stop(mode = "fast") {
    await run("pg_ctl", "-D", this.#data, "-w", "-m", mode, "stop");
    running.delete(this);
  }

  async restart(mode = "fast") {
    await this.stop(mode);
    await this.start();
  }

  /** Kills all processes of the server at once. */
  kill() {
    killTree(this.#child.pid);
    running.delete(this);
  }

  /** Stops all processes of the server where they are, until `thaw`. Not on Windows. */
  freeze() {
    signalTree(this.#child.pid, "SIGSTOP");
  }

  thaw() {
    signalTree(this.#child.pid, "SIGCONT");
  }

  /** Makes a standby a primary. */
  async promote() {
    await run("pg_ctl", "-D", this.#data, "-w", "promote");
  }

  /**
   * Waits until the standby shows what this server has: a commit waits until the standby has it on its disk, not
   * until it shows it.
   */
  async standbyCatchesUp() {
    const end = await this.sql("SELECT pg_current_wal_lsn()");
    const shows = `SELECT pg_last_wal_replay_lsn() >= '${end}'`;
    await until(async () => (await this.standby.sql(shows)) === "t", "the standby shows it");
  }

  /** Runs SQL; answers rows as lines and columns between `|`. */
  async sql(text, { database = "postgres", user = SUPERUSER } = {}) {
    const to = ["-h", HOST, "-p", `${this.port}`, "-U", user, "-d", database];
    const printed = await run(
      "psql",
      "-X",
      "-A",
      "-t",
      "-q",
      "-v",
      "ON_ERROR_STOP=1",
      ...to,
      "-c",
      text,
    );
    return printed.trimEnd();
  }

  /** Creates a PostgreSQL database; answers its name. */
  async newDatabase() {
    const name = freshName();
    await this.sql(`CREATE DATABASE ${name}`);
    return name;
  }

  /**
   * The URL of an openkv database that nobody has used, or of one by its name `kv`. `also` are other
   * servers to try, `more` is added to the parameters.
   */
  url({ kv = freshName(), user = SUPERUSER, database = "postgres", also = [], more = "" } = {}) {
    const hosts = [this, ...also].map(({ port }) => `${HOST}:${port}`).join(",");
    return `postgres://${user}@${hosts}/${database}?kv=${kv}${more}`;
  }

  /** All that the server has logged. */
  log() {
    return readFileSync(join(this.#folder, "log"), "utf8");
  }

  /** Ends the server and its standby, and removes their folders. */
  close() {
    this.standby?.close();
    if (running.has(this)) this.kill();
    folders.delete(this.#folder);
    remove(this.#folder);
  }
}

function freshName() {
  return `t${randomBytes(8).toString("hex")}`;
}

function newFolder() {
  const folder = newServerFolder();
  folders.add(folder);
  return folder;
}

function remove(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
}
