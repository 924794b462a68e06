// A process that writes under a unique index, and builds and drops another one, until it is killed. It says a
// line once it has committed.

import { Random } from "../crash/random.mjs";
import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";

const { path, seed, round, at } = args;
const IDS = 60;
const VALUES = 80;

listen();
const kv = await openKv(path);
const random = new Random(seed, round, at);
await kv.createIndex({ type: "value", prefix: ["t"], on: "u", unique: true, name: "u" });
for (let n = 0; ; n++) {
  const writes = Array.from({ length: 8 }, () => {
    const id = random.between(0, IDS - 1);
    const value = { id, n: random.between(0, 9), u: random.between(0, VALUES - 1) };
    if (random.oneIn(5)) return kv.delete(["t", id]);
    const options = random.oneIn(6) ? { expireIn: random.between(1, 30) } : undefined;
    return kv.set(["t", id], value, options);
  });
  for (const { reason } of await Promise.allSettled(writes)) {
    if (reason !== undefined && reason.code !== "UNIQUE") throw reason;
  }
  if (random.oneIn(10)) await kv.dropIndex("n");
  if (random.oneIn(5)) {
    await kv.createIndex({ type: "value", prefix: ["t"], on: ["n", "id"], name: "n" });
  }
  if (n === 3) tell("R");
}
