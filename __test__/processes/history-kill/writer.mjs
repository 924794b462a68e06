// A process that commits with a history until it is killed. It says in one line each
//
//   R                the database is open
//   S lane n ms      a step starts; entries that expire do so from these ms since the epoch on
//   A lane n stamp   it is acknowledged

import { args, listen, tell } from "../child.mjs";
import { openKv } from "../target.mjs";
import { markKey, plan, slotKey } from "./plan.mjs";

const { path, seed, lanes, first } = args;

listen();
const kv = await openKv(path, { history: "7d" });
tell("R");
for (let lane = 0; lane < lanes; lane++) run(lane);

async function run(lane) {
  for (let n = first; ; n++) {
    const from = Date.now();
    tell(`S ${lane} ${n} ${from}`);
    const commit = kv.atomic().set(markKey(lane), n);
    for (const { slot, value, life } of plan(seed, lane, n)) {
      const options = life === undefined ? undefined : { expireAt: new Date(from + life) };
      if (value === undefined) commit.delete(slotKey(slot));
      else commit.set(slotKey(slot), value, options);
    }
    const { versionstamp } = await commit.commit();
    tell(`A ${lane} ${n} ${versionstamp}`);
    if (n % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
