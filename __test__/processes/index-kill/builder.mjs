// A process that builds an index over older entries and changes some of them meanwhile, until it is killed. It says
// what there is when it begins, and a line once the building goes on.

import { args, listen, tell } from "../child.mjs";
import { Random } from "../crash/random.mjs";
import { openKv } from "../target.mjs";
import { INDEXES, PREFIX } from "./indexes.mjs";

const { path, seed, entries } = args;

listen();
const kv = await openKv(path);
const random = new Random(seed);
const found = (await kv.listIndexes()).find(({ name }) => name === INDEXES.unique.name);
tell(found?.state ?? "none");
if (found?.state === "ready") await kv.dropIndex(found.name);
await kv.createIndex(INDEXES.unique);
tell("builds");
for (;;) {
  const id = random.between(0, entries - 1);
  // The values of an id are its own, so that no two entries have one.
  const u = id + entries * random.between(0, 3);
  await (random.oneIn(4) ? kv.delete([...PREFIX, id]) : kv.set([...PREFIX, id], { id, n: id, u }));
}
