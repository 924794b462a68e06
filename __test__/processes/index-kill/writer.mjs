// A process that writes under value indexes, and builds and drops one, until it is killed. It says a line once it has
// committed.

import { args, listen, tell } from "../child.mjs";
import { Random } from "../crash/random.mjs";
import { openKv } from "../target.mjs";
import { INDEXES, PREFIX } from "./indexes.mjs";

const { path, seed } = args;
const IDS = 60;
const VALUES = 80;

listen();
const kv = await openKv(path);
const random = new Random(seed);
const { unique, ordered, multi } = INDEXES;
const key = () => [...PREFIX, random.between(0, IDS - 1)];

function value(id) {
  const tags = Array.from({ length: random.between(0, 3) }, () => random.between(0, 9));
  return { id, n: random.between(0, 9), u: random.between(0, VALUES - 1), tags };
}

function set(on, at) {
  const options = random.oneIn(6) ? { expireIn: random.between(1, 30) } : undefined;
  return on.set(at, value(at.at(-1)), options);
}

/** One commit. */
function write() {
  switch (random.between(0, 9)) {
    case 0:
    case 1:
      return kv.delete(key());
    case 2:
      return kv.touch(key(), { expireIn: random.between(1, 30) });
    case 3: {
      const low = random.between(0, VALUES);
      return kv.deleteMany({ prefix: PREFIX }, { where: { u: { $between: [low, low + 2] } } });
    }
    case 4:
    case 5: {
      const operation = kv.atomic();
      for (let left = random.between(2, 6); left > 0; left--) set(operation, key());
      return operation.delete(key()).commit();
    }
    default:
      return set(kv, key());
  }
}

await Promise.all([unique, multi].map((index) => kv.createIndex(index)));
for (let n = 0; ; n++) {
  const writes = Array.from({ length: 16 }, write);
  for (const { reason } of await Promise.allSettled(writes)) {
    if (reason !== undefined && reason.code !== "UNIQUE") throw reason;
  }
  if (random.oneIn(10)) await kv.dropIndex(ordered.name);
  if (random.oneIn(5)) await kv.createIndex(ordered);
  if (n === 1) tell("R");
}
