// One process of a load: adds one to the total again and again, and in the same commit leaves an entry
// that tells of it. Tells how each commit ended.

import { openKv } from "../../../index.mjs";
import { args, listen, tell } from "../../processes/child.mjs";

/** The pause after a commit that was refused. */
const PAUSE_MS = 20;

const { url, id, inFlight } = args;
let isRunning = true;
let next = 0;
listen(undefined, () => (isRunning = false));
// Standard input does not keep the process alive.
const alive = setInterval(() => {}, 60_000);

const kv = await openKv(url);
tell(JSON.stringify({ opened: true }));
await Promise.all(Array.from({ length: inFlight }, add));
await kv.close();
clearInterval(alive);

async function add() {
  while (isRunning) {
    const n = next++;
    try {
      const commit = kv.atomic().sum(["total"], 1n).set(["op", id, n], true);
      const { versionstamp } = await commit.commit();
      tell(JSON.stringify({ n, versionstamp }));
    } catch (error) {
      tell(JSON.stringify({ n, code: error.code ?? "none", message: `${error}` }));
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
