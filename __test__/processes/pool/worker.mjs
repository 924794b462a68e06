// One process of pool.mjs: commits to files that all processes share, far more of them than it keeps open. It tells
// of each commit after its answer.

import { args, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

const { paths, id, commits, maxOpen } = args;
const handles = await Promise.all(paths.map((path) => openKv(path, { maxOpen })));
const seen = paths.map(() => 0);
tell("open");

/** Adds one to the counter of a file, and to the own one in the same commit. */
async function count(n) {
  const kv = handles[n];
  for (;;) {
    const [all, own] = await kv.getMany([
      ["all", "n"],
      ["of", id],
    ]);
    if ((all.value ?? 0) < seen[n]) throw new Error(`${n}: ${all.value} after ${seen[n]}`);
    const [next, mine] = [(all.value ?? 0) + 1, (own.value ?? 0) + 1];
    const { ok } = await kv
      .atomic()
      .check(all)
      .set(["all", "n"], next)
      .set(["of", id], mine)
      .commit();
    if (!ok) continue;
    seen[n] = next;
    tell(`${n} ${mine}`);
    return;
  }
}

for (let n = 0; n < commits; n++) {
  // Most are about a tenth of the files; two at a time.
  const some = () => Math.floor(Math.random() ** 3 * paths.length);
  const [one, other] = [some(), some()];
  await Promise.all(one === other ? [count(one)] : [count(one), count(other)]);
}
for (const kv of handles) await kv.close();
tell("done");
