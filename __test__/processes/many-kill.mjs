#!/usr/bin/env node
// Processes that have many files open are killed with SIGKILL in the middle of commits to them: nothing that was
// acknowledged is lost, nothing happens twice, all files open again and are whole.
//
//   node many-kill.mjs [--files 1000] [--kills 20] [--commits 3000]

import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";

import { newFolder } from "../kit/folder.mjs";
import { guard } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { openProbe } from "./probe.mjs";
import { openKv } from "./target.mjs";

const WORKER = new URL("many-kill/worker.mjs", import.meta.url);
const HANG_MS = 300_000;
/** Files that a plain SQLite checks after each kill. */
const PROBED = 20;

/** Kills so many processes, each after some of `commits` acknowledged commits; answers what is wrong. */
export async function killMany({ files, kills, commits }) {
  const folder = newFolder("many-kill");
  const paths = Array.from({ length: files }, (_, n) => join(folder, `${n}.sqlite3`));
  const probe = openProbe();
  const faults = [];
  /** The last commit of each file that is known. */
  const last = paths.map(() => 0);
  try {
    for (let kill = 0; kill < kills; kill++) {
      // The first ones wait until every file has a commit of the process.
      const dies = files + Math.floor(Math.random() * commits);
      let lines = 0;
      const onLine = (line) => {
        const [n, value] = line.split(" ").map(Number);
        last[n] = Math.max(last[n], value);
        if (++lines === dies) child.kill();
      };
      const child = startChild(WORKER, { paths }, { onLine });
      const { signal, code } = await guard(child.ended, HANG_MS, "the end of a worker");
      if (signal !== "SIGKILL") {
        faults.push(`a worker ended with ${code}: ${child.stderr}`);
        break;
      }
      const handles = await Promise.all(paths.map((path) => openKv(path, { maxOpen: files })));
      for (const [n, kv] of handles.entries()) {
        const [{ value }, { value: entries }] = await kv.getMany([["n"], ["entries"]]);
        const count = await kv.count({ prefix: ["entry"] });
        // One commit was under way.
        if (!(value === last[n] || value === last[n] + 1))
          faults.push(`file ${n} is at ${value}, ${last[n]} was acknowledged`);
        if (entries !== value || count !== value)
          faults.push(`file ${n} has half a commit: ${value}, ${entries}, ${count} entries`);
        last[n] = value;
      }
      for (const kv of handles) await kv.close();
      for (let n = 0; n < Math.min(PROBED, files); n++) {
        const path = paths[Math.floor(Math.random() * files)];
        for (const what of await probe.damage(path)) faults.push(`damaged: ${what}`);
      }
      const beside = readdirSync(folder).filter((name) => !name.endsWith(".sqlite3"));
      if (beside.length > 0) faults.push(`closing has left ${beside}`);
      if (faults.length > 0) break;
    }
    return faults;
  } finally {
    probe.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      files: { type: "string", default: "1000" },
      kills: { type: "string", default: "20" },
      commits: { type: "string", default: "3000" },
    },
  });
  const numbers = Object.entries(values).map(([name, text]) => [name, Number(text)]);
  const faults = await killMany(Object.fromEntries(numbers));
  console.log(faults.length === 0 ? "nothing lost" : faults.join("\n"));
  if (faults.length > 0) process.exitCode = 1;
}
