// Duty: servers of an object store are killed while clients write; no answered write is lost, none is done twice, and
// none that was refused has happened.

import assert from "node:assert/strict";
import { openKv } from "../../index.mjs";
import { endpointsOf } from "../kit/cluster.mjs";
import { until } from "../kit/time.mjs";
import { contents } from "./kills.mjs";

/** A hang guard of one call. */
const PATIENCE_MS = 60_000;
const HANDLES = 4;
/** How often a server is started that ends because the object store has failed. */
const STARTS_MAX = 10;

/**
 * Kills the server that leads the database `shop`, `kills` times, each time after `writes` answered writes, and starts another one
 * at its address. Returns how many writes were answered, and of how many it is not known.
 */
export async function killServers({ cluster, servers, accessToken, kills, writes }) {
  const urls = servers.map(({ url }) => `${url}/shop`).join(",");
  const opened = () => openKv(urls, { accessToken, timeout: PATIENCE_MS });
  const handles = await Promise.all(Array.from({ length: HANDLES }, opened));
  const [answered, unknown] = [new Set(), new Set()];
  let [isOver, next] = [false, 0];
  const adds = async (kv) => {
    while (!isOver) {
      const id = next++;
      try {
        await kv.atomic().set(["write", id], id).sum(["count"], 1n).commit();
        answered.add(id);
      } catch (error) {
        if (error.code === "OUTCOME_UNKNOWN") unknown.add(id);
        else assert.equal(error.code, "UNAVAILABLE", error.stack);
      }
    }
  };
  const adding = Promise.all(handles.flatMap((kv) => [adds(kv), adds(kv)]));
  adding.catch(() => (isOver = true));
  const more = (what) => {
    const goal = answered.size + writes;
    return until(() => isOver || answered.size >= goal, what);
  };
  const leads = async (server) => {
    const endpoints = await endpointsOf(server, "shop", accessToken);
    return endpoints[0] === "strong ./v2";
  };
  const living = [...servers];
  for (let n = 0; n < kills && !isOver; n++) {
    await more("the leader takes writes");
    const at = await until(async () => {
      const leading = await Promise.all(living.map(leads));
      return leading.filter(Boolean).length === 1 && leading.indexOf(true) + 1;
    }, "one server leads");
    const [killed] = living.splice(at - 1, 1);
    await cluster.kill(killed);
    await more("another server takes writes");
    living.push(await restarted(cluster, Number(new URL(killed.url).port)));
  }
  isOver = true;
  await adding;
  const { found, count } = await contents(handles[0]);
  await Promise.all(handles.map((handle) => handle.close()));
  const lost = [...answered].filter((id) => !found.has(id));
  assert.deepEqual(lost, [], "answered writes are lost");
  const refused = [...found].filter((id) => !answered.has(id) && !unknown.has(id));
  assert.deepEqual(refused, [], "refused writes have happened");
  assert.equal(count, BigInt(found.size), "a write was done twice, or in part");
  return { answered: answered.size, unknown: unknown.size };
}

/** Starts a server as a process manager does: again, if it ends before it listens. */
async function restarted(cluster, port) {
  for (let left = STARTS_MAX - 1; left > 0; left--) {
    const started = await cluster.start({ port }).catch(() => undefined);
    if (started !== undefined) return started;
  }
  return await cluster.start({ port });
}
