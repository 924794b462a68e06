// `node bench/noisy-tenant.mjs`: measures how a tenant over its quota affects another tenant of the
// same server: the latency of the other's reads and commits, with and without it, alternating in
// one run.
//
//   --seconds S      of each turn (default 3)
//   --rounds N       turns of each kind (default 4)
//   --in-flight N    requests that the noisy one has on their way (default 64)
//   --dir DIRECTORY  where the databases are (default bench/.data)
//
// The noisy tenant is a separate process with the lowest priority, because its own work is not
// measured; it sends the next request at once, whatever the answer.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:http2";
import { rmSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";
import { kill, spawnServer } from "../__test__/server/children.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { quantile } from "./measure.mjs";
import { processorMs } from "./workloads/idle-watches.mjs";

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "4" },
    "in-flight": { type: "string", default: "64" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    noise: { type: "string" },
  },
});
const adminToken = "token-of-the-admin";
/** Operations per second that the noisy tenant's quota allows; it sends as many as it can. */
const QUOTA = 500;
const RATIO_MAX = 2;
/** The request for the entry of one key. */
const READ = Buffer.from("0a0e0a030261001205026100001801", "hex");

if (options.noise) await makeNoise(JSON.parse(options.noise));
else await main();

async function main() {
  const directory = dataDirectory(options.dir);
  const path = `${join(directory, "tenants")}/`;
  const server = await spawnServer({ path, adminToken, listen: "127.0.0.1:0" });
  const token = {};
  for (const name of ["quiet", "noisy"]) {
    const answer = await fetch(`${server.url}/v1/admin/databases`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}` },
      body: JSON.stringify({
        name,
        quotas: name === "noisy" ? { operationsPerSecond: QUOTA } : {},
      }),
    });
    token[name] = (await answer.json()).token;
  }
  const kv = await openKv(`${server.url}/quiet`, { accessToken: token.quiet });
  for (let n = 0; n < 1000; n++) kv.set(["entry", n], { n });
  await kv.set(["entry", 1000], {});

  const noise = {
    url: `${server.url}/noisy`,
    accessToken: token.noisy,
    inFlight: Number(options["in-flight"]),
  };
  const child = spawn(
    process.execPath,
    [fileURLToPath(import.meta.url), "--noise", JSON.stringify(noise)],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  setPriority(child.pid, 19);
  let told = {};
  child.stdout.on("data", (line) => (told = JSON.parse(line.toString().trim().split("\n").at(-1))));

  const times = { alone: { get: [], set: [] }, beside: { get: [], set: [] } };
  let [busy, refused, noisyMs] = [0, 0, 0];
  await turn(kv, 1000, times.alone);
  times.alone = { get: [], set: [] };
  for (let round = 0; round < Number(options.rounds); round++) {
    await turn(kv, options.seconds * 1000, times.alone);
    child.stdin.write("on\n");
    await once(child.stdout, "data");
    const [start, before] = [performance.now(), processorMs(server.pid)];
    await turn(kv, options.seconds * 1000, times.beside);
    busy += processorMs(server.pid) - before;
    noisyMs += performance.now() - start;
    child.stdin.write("off\n");
    await once(child.stdout, "data");
    refused += told.refused;
  }
  child.kill();
  kv.close();
  await kill(server);
  console.log(`Machine: ${machineLine(directory)}.`);
  console.log(
    `The noisy tenant, ${noise.inFlight} in flight: ${Math.round((refused / noisyMs) * 1000)} refusals a second; ` +
      `the server used ${((busy / noisyMs) * 100).toFixed(0)}% of a core.`,
  );
  for (const kind of ["get", "set"]) {
    const at = (who, p) => quantile(times[who][kind], p) * 1000;
    const ratio = at("beside", 0.99) / at("alone", 0.99);
    const shown = (who) => `p50 ${at(who, 0.5).toFixed(0)} µs, p99 ${at(who, 0.99).toFixed(0)} µs`;
    console.log(
      `${kind}: alone ${shown("alone")}; beside it ${shown("beside")}; ` +
        `p99 × ${ratio.toFixed(2)} (≤ ${RATIO_MAX}) ${ratio <= RATIO_MAX ? "✓" : "✗"}`,
    );
  }
  rmSync(directory, { recursive: true, force: true });
  process.exit();
}

/** The quiet tenant: alternates one read and one commit, with pauses. */
async function turn(kv, ms, into) {
  const end = performance.now() + ms;
  for (let n = 0; performance.now() < end; n++) {
    for (const [kind, run] of [
      ["get", () => kv.get(["entry", n % 1000])],
      ["set", () => kv.set(["entry", n % 1000], { n })],
    ]) {
      const start = performance.now();
      await run();
      into[kind].push(performance.now() - start);
    }
    await sleep(1);
  }
}

/**
 * The noisy tenant: switched on and off by messages, it reports how many requests were rejected.
 */
async function makeNoise({ url, accessToken, inFlight }) {
  const offer = {
    method: "POST",
    headers: { authorization: `Bearer ${accessToken}` },
    body: '{"supportedVersions":[3]}',
  };
  const { token, databaseId } = await (await fetch(url, offer)).json();
  const headers = {
    ":method": "POST",
    ":path": "/v2/snapshot_read",
    authorization: `Bearer ${token}`,
    "x-denokv-version": "3",
    "x-denokv-database-id": databaseId,
  };
  let refused = 0;
  let session;
  const caller = async (mine) => {
    while (session === mine && !mine.destroyed) {
      const stream = mine.request(headers);
      stream.on("error", () => {});
      stream.on("response", (answer) => (refused += answer[":status"] === 429 ? 1 : 0));
      stream.resume().end(READ);
      await once(stream, "close");
    }
  };
  process.stdin.on("data", (line) => {
    if (line.toString().trim() === "on") {
      refused = 0;
      session = connect(new URL(url).origin);
      session.on("error", () => {});
      const mine = session;
      for (let n = 0; n < inFlight; n++) caller(mine);
      setTimeout(() => console.log(JSON.stringify({ refused })), 300);
    } else {
      session.destroy();
      session = undefined;
      console.log(JSON.stringify({ refused }));
    }
  });
}
