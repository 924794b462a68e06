#!/usr/bin/env node
// Several processes commit to the same many files, of which each keeps only some open, and some are killed: every
// acknowledged commit is in its file, none happens twice, and feeds of a process that has the files pooled too report
// each commit once, in order.
//
//   node pool.mjs [--files 1000] [--processes 8] [--commits 2000] [--kills 20] [--max-open 100] [--descriptors 0]
//
// With --descriptors each process has that limit of descriptors, and parks files because none is left.

import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";

import { newFolder } from "../kit/folder.mjs";
import { guard } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { openKv } from "./target.mjs";

const WORKER = new URL("pool/worker.mjs", import.meta.url);
const HANG_MS = 600_000;
/** Files with a feed. */
const FED = 5;

/** One round in fresh files; answers what is wrong. */
export async function round({ files, processes, commits, kills, maxOpen, descriptors }) {
  const folder = newFolder("pool");
  const faults = [];
  try {
    const paths = Array.from({ length: files }, (_, n) => join(folder, `${n}.sqlite3`));
    const handles = await Promise.all(paths.map((path) => openKv(path, { maxOpen })));
    const fed = Array.from({ length: Math.min(FED, files) }, (_, n) => follow(handles[n]));
    // What each worker has said of each file: the commits that were acknowledged.
    const told = Array.from({ length: processes }, () => paths.map(() => 0));
    const killed = Array.from({ length: processes }, () => 0);
    let left = kills;
    const work = async (id) => {
      for (;;) {
        let lines = 0;
        const dies = left > 0 && left-- ? 1 + Math.floor(Math.random() * commits) : Infinity;
        const isDone = await new Promise((resolve, reject) => {
          let done = false;
          const onLine = (line) => {
            if (line === "done") return void (done = true);
            if (line === "open") return;
            const [n, mine] = line.split(" ").map(Number);
            told[id][n] = Math.max(told[id][n], mine);
            if (++lines === dies) child.kill("SIGKILL");
          };
          const limited = (argv) => [
            "sh",
            "-c",
            `ulimit -n ${descriptors}; exec "$@"`,
            "sh",
            ...argv,
          ];
          const command = descriptors > 0 ? limited : undefined;
          const child = startChild(WORKER, { paths, id, commits, maxOpen }, { onLine, command });
          guard(child.ended, HANG_MS, "the end of a worker").then(({ code, signal }) => {
            if (signal === "SIGKILL") killed[id]++;
            else if (code !== 0 || !done)
              faults.push(`a worker ended with ${code}: ${child.stderr}`);
            resolve(signal !== "SIGKILL");
          }, reject);
        });
        if (isDone) return;
      }
    };
    await Promise.all(told.map((_, id) => work(id)));
    let counted = 0;
    for (const [n, kv] of handles.entries()) {
      const all = (await kv.get(["all", "n"])).value ?? 0;
      let sum = 0;
      for (let id = 0; id < processes; id++) {
        const mine = (await kv.get(["of", id])).value ?? 0;
        sum += mine;
        // A killed process has at most one commit under way at a file.
        if (mine < told[id][n] || mine > told[id][n] + killed[id])
          faults.push(`file ${n}: ${mine} commits of ${id}, ${told[id][n]} acknowledged`);
      }
      counted += all;
      if (all !== sum) faults.push(`file ${n}: ${all} commits, ${sum} by their processes`);
    }
    for (const [n, feed] of fed.entries()) {
      const all = (await handles[n].get(["all", "n"])).value ?? 0;
      const seen = await feed(all);
      if (seen.some((value, at) => value !== at + 1) || seen.length !== all)
        faults.push(`the feed of file ${n} has reported ${seen}`);
    }
    if (counted === 0) faults.push("nothing was committed");
    for (const kv of handles) await kv.close();
    const beside = readdirSync(folder).filter((name) => !name.endsWith(".sqlite3"));
    if (beside.length > 0) faults.push(`closing has left ${beside}`);
    return faults;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Reads the values of the counter of a file from its feed, up to the value that the answered function gets. */
function follow(kv) {
  const reader = kv.watch({ prefix: ["all"] }).getReader();
  const seen = [];
  const done = (async () => {
    for (let at = 0; ; ) {
      const { value } = await reader.read();
      for (const change of value.changes) seen.push((at = change.value));
      waiting();
    }
  })();
  done.catch(() => {});
  let waiting = () => {};
  return async (last) => {
    const reached = new Promise((resolve) => {
      waiting = () => seen.at(-1) >= last && resolve();
    });
    if (last > 0) {
      waiting();
      await guard(Promise.race([reached, done]), HANG_MS, "the changes of a feed");
    }
    return seen;
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      files: { type: "string", default: "1000" },
      processes: { type: "string", default: "8" },
      commits: { type: "string", default: "2000" },
      kills: { type: "string", default: "20" },
      "max-open": { type: "string", default: "100" },
      descriptors: { type: "string", default: "0" },
    },
  });
  const { "max-open": maxOpen, ...others } = values;
  const numbers = Object.entries({ ...others, maxOpen }).map(([name, text]) => [
    name,
    Number(text),
  ]);
  const begun = performance.now();
  const faults = await round(Object.fromEntries(numbers));
  console.log(faults.length === 0 ? "exact" : faults.join("\n"));
  console.log(`${Math.round((performance.now() - begun) / 1000)} s`);
  if (faults.length > 0) process.exitCode = 1;
}
