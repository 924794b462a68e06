// The process of many-kill.mjs that is killed: it has all files open, commits to them for ever, some at a time, and
// tells of each commit after its answer.

import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

/** Commits under way, each to another file. */
const TOGETHER = 8;

listen();
const { paths } = args;
const handles = await Promise.all(paths.map((path) => openKv(path, { maxOpen: paths.length })));

async function commit(n) {
  const kv = handles[n];
  const value = ((await kv.get(["n"])).value ?? 0) + 1;
  await kv
    .atomic()
    .set(["n"], value)
    .set(["entry", value], "x".repeat(value % 7 === 0 ? 5000 : 20))
    .set(["entries"], value)
    .commit();
  tell(`${n} ${value}`);
}

for (let at = 0; ; at += TOGETHER) {
  const some = Array.from({ length: TOGETHER }, (_, n) => (at + n) % paths.length);
  await Promise.all([...new Set(some)].map(commit));
}
