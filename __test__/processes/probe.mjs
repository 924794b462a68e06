// Looks at a database file with a plain SQLite in a process of its own (probe/, a small Rust
// program, built on first use). Never open a file with a second SQLite inside the process that has
// it open through openkv: closing that one would drop the other's POSIX locks.

import { spawn, spawnSync } from "node:child_process";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { fileURLToPath } from "node:url";

const CRATE = fileURLToPath(new URL("probe/", import.meta.url));
const TARGET = fileURLToPath(new URL("../../target/probe/", import.meta.url));

/** Builds the probe if needed and starts it. */
export function openProbe() {
  build();
  const name = process.platform === "win32" ? "probe.exe" : "probe";
  return new Probe(spawn(`${TARGET}debug/${name}`, { stdio: ["pipe", "pipe", "inherit"] }));
}

/** Builds what gives a process another time, if needed: what its environment must have. */
export function shiftedClock(seconds) {
  return { ...clockLibrary(), CLOCK_SHIFT_SECONDS: String(seconds) };
}

/** A clock of several processes that is set forward and back while they run. */
export class SteeredClock {
  #path;
  shiftMs = 0;

  /** `path`: of a new file. */
  constructor(path) {
    this.#path = path;
    /** What the environment of the processes must have. */
    this.env = { ...clockLibrary(), CLOCK_SHIFT_FILE: path };
    this.set(0);
  }

  set(shiftMs) {
    this.shiftMs = shiftMs;
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(shiftMs));
    // The file stays the one that the processes have mapped.
    const file = openSync(this.#path, constants.O_WRONLY | constants.O_CREAT);
    writeSync(file, bytes, 0, bytes.length, 0);
    closeSync(file);
  }
}

function clockLibrary() {
  build("--example", "shifted_clock");
  return { LD_PRELOAD: `${TARGET}debug/examples/libshifted_clock.so` };
}

function build(...what) {
  const command = ["build", "--locked", "--quiet", "--target-dir", TARGET, ...what];
  const build = spawnSync("cargo", command, {
    cwd: CRATE,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (build.error)
    throw new Error("these tests need cargo to build their SQLite probe", { cause: build.error });
  if (build.status !== 0) throw new Error("the SQLite probe does not build");
}

/** What records a process for ./power-loss.mjs; built with the probe. */
export function writeLogLibrary() {
  return `${TARGET}debug/libwrite_log.so`;
}

class Probe {
  #child;
  #partial = "";
  #waiting = [];

  constructor(child) {
    this.#child = child;
    const onExit = () => child.kill();
    process.on("exit", onExit);
    child.on("close", () => {
      process.off("exit", onExit);
      for (const { reject } of this.#waiting) reject(new Error("the SQLite probe died"));
    });
    child.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (this.#partial + text).split("\n");
      this.#partial = lines.pop();
      for (const line of lines) {
        const { rows, error } = JSON.parse(line);
        const { resolve, reject } = this.#waiting.shift();
        if (error) reject(new Error(`SQLite: ${error}`));
        else resolve(rows);
      }
    });
  }

  /** Opens `path`, runs the statements, closes it; the rows of the last one. */
  run(path, ...sql) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#child.stdin.write(JSON.stringify({ path, sql }) + "\n");
    });
  }

  /** What is wrong with the file, in words; empty when nothing is. */
  async damage(path) {
    const [[verdict], ...more] = await this.run(path, "PRAGMA integrity_check");
    const damage = verdict === "ok" ? [] : [verdict, ...more.flat()];
    const tables = (
      await this.run(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    ).flat();
    if (tables.includes("openkv_spill")) damage.push(...(await this.#spillDamage(path)));
    return damage;
  }

  /** Every spilled value belongs to exactly one entry, and every entry that says so has one. */
  async #spillDamage(path) {
    const [[orphans], [missing], [shared]] = await this.run(
      path,
      `WITH refs AS (SELECT v AS ref FROM kv WHERE v_encoding >= 256),
            spills AS (SELECT id AS ref FROM openkv_spill)
       SELECT count(*) FROM spills WHERE ref NOT IN (SELECT ref FROM refs)
       UNION ALL SELECT count(*) FROM refs WHERE ref NOT IN (SELECT ref FROM spills)
       UNION ALL SELECT count(*) - count(DISTINCT ref) FROM refs`,
    );
    const damage = [];
    if (orphans) damage.push(`${orphans} spilled values belong to no entry`);
    if (missing) damage.push(`${missing} entries lost their spilled value`);
    if (shared) damage.push(`${shared} spilled values belong to several entries`);
    return damage;
  }

  close() {
    this.#child.stdin.end();
  }
}
