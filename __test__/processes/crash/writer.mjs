// A process that writes to the database until it is killed, and says of each commit when it is
// about to start (S) and when it is acknowledged (A), in one line each, on a pipe, before doing
// anything else.
//
//   R                         ready: the database is open
//   S lane n ms [prev count]  step n of a lane starts; of an advance also what it read of the chain
//   A lane n ms stamp         acknowledged ("-" where there is no versionstamp)
//   F lane n                  the check failed: nothing was written
//   T stamp                   a feed was told of removals (only if it is to follow)
//   H message stamp           a message was handled and its mark committed
//   X lane n error            rejected: always a fault, nothing else in the test rejects

import { args, listen, tell } from "../child.mjs";
import { KvU64, openKv } from "../target.mjs";
import {
  HANDLED_KEY,
  chainKey,
  counterKey,
  doneKey,
  fill,
  markKey,
  plan,
  slotKey,
} from "./plan.mjs";

const { path, durability, seed, writer, lanes, first, consume, follow, slow } = args;

listen();
const kv = await openKv(path, { durability }).catch((error) => {
  tell(`X open 0 ${error.name}: ${error.message}`);
  process.exit(1);
});
tell("R");
if (consume)
  kv.listenQueue(handle).catch((error) => tell(`X listen 0 ${error.name}: ${error.message}`));
if (follow) followRemovals().catch((error) => tell(`X feed 0 ${error.name}: ${error.message}`));
for (let lane = 0; lane < lanes; lane++) run(`${writer}.${lane}`);

async function followRemovals() {
  for await (const { changes, versionstamp } of kv.watch({ prefix: [] })) {
    if (changes.some(({ type }) => type === "delete")) tell(`T ${versionstamp}`);
  }
}

async function run(lane) {
  for (let n = first; ; n++) {
    const step = plan(seed, lane, n);
    try {
      const result = await take(step, lane, n);
      const answer = result === undefined || result.ok ? "A" : "F";
      tell(`${answer} ${lane} ${n} ${Date.now()} ${result?.versionstamp ?? "-"}`);
    } catch (error) {
      tell(`X ${lane} ${n} ${error.name}: ${error.message}`);
    }
    // Some writers pause now and then, so that commits of one write alone occur too.
    if (slow && n % 4 === 0) await new Promise((resolve) => setTimeout(resolve, n % 7));
    else if (n % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

async function take(step, lane, n) {
  const value = (slot, size) => fill(seed, lane, n, slot, size);
  if (step.kind === "advance") {
    const key = chainKey(step.chain);
    const { value: count, versionstamp } = await kv.get(key);
    start(lane, n, versionstamp ?? "-", count ?? 0);
    const next = kv
      .atomic()
      .check({ key, versionstamp })
      .set(key, (count ?? 0) + 1);
    return await next.set(markKey(lane), { n, fill: null }).commit();
  }
  start(lane, n);
  if (step.kind === "put") {
    return await kv.set(markKey(lane), { n, fill: value(-1, step.markSize) });
  }
  if (step.kind === "delete") return await kv.delete(slotKey(lane, step.deletes[0]));
  if (step.kind === "enqueue") return await kv.enqueue(message(lane, n, step.message));
  const commit = kv.atomic().set(markKey(lane), { n, fill: null });
  for (const { slot, size, expireIn } of step.sets) {
    commit.set(
      slotKey(lane, slot),
      value(slot, size),
      expireIn === undefined ? undefined : { expireIn },
    );
  }
  for (const slot of step.deletes) commit.delete(slotKey(lane, slot));
  for (const { counter, amount } of step.sums) commit.sum(counterKey(counter), amount);
  if (step.message !== undefined) commit.enqueue(message(lane, n, step.message));
  return await commit.commit();
}

function start(lane, n, ...more) {
  tell(["S", lane, n, Date.now(), ...more].join(" "));
}

function message(lane, n, size) {
  return { id: `${lane}/${n}`, fill: fill(seed, lane, n, -2, size) };
}

/** Handles a message in a way that a second delivery changes nothing. */
async function handle({ id }) {
  const key = doneKey(id);
  const commit = kv.atomic().check({ key, versionstamp: null }).set(key, true);
  const { ok, versionstamp } = await commit
    .mutate({ type: "sum", key: HANDLED_KEY, value: new KvU64(1n) })
    .commit();
  if (ok) tell(`H ${id} ${versionstamp}`);
}
