// Duty: tenants of one server that take no answers or export slowly, and what that costs their neighbours.
// `node __test__/server/neighbours.mjs --seconds 60` prints the figures of a minute, half of it for each attack;
// `--attack untaken` or `--attack exports` chooses one. neighbours.test.mjs is the short form.

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import http2 from "node:http2";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { newFolder } from "../kit/folder.mjs";
import { HANG_MS, sleep } from "../kit/time.mjs";
import { kill, spawnServer } from "./children.mjs";

export const adminToken = "token-of-the-admin";
const VALUE_BYTES = 60_000;
const WRITTEN_BYTES = 500_000;
const ALONE_SECONDS = 5;

/** A server with a folder of databases, in a process of its own. */
export async function serveTenants(name) {
  const folder = newFolder(name);
  const path = join(folder, "tenants/");
  const server = await spawnServer({ path, adminToken, listen: "127.0.0.1:0" });
  return { ...server, path, end: () => kill(server) };
}

/** A database with these quotas, and its tokens. */
export async function tenant(server, name, quotas = {}) {
  const post = async (path, body) => {
    const answer = await fetch(`${server.url}/v1/admin/databases${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}` },
      body: JSON.stringify(body),
    });
    return answer.json();
  };
  const { token } = await post("", { name, quotas });
  const { token: readToken } = await post(`/${name}/tokens`, { rights: "read" });
  const api = `/${name}/api`;
  const call = async (method, path, body, type = "application/octet-stream") => {
    const began = performance.now();
    const answer = await fetch(server.url + api + path, {
      method,
      body,
      signal: AbortSignal.timeout(60_000),
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": type }),
      },
    });
    const text = await answer.text();
    return { status: answer.status, text, ms: performance.now() - began };
  };
  return { name, readToken, api, call };
}

/** Quantiles of milliseconds. */
export function quantiles(ms) {
  const sorted = [...ms].sort((a, b) => a - b);
  const at = (part) => Math.round(10 * sorted[Math.floor(part * (sorted.length - 1))]) / 10;
  return { count: ms.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** Gets a small entry again and again, for so many seconds. */
export function getSmall(tenant, seconds) {
  const ends = Date.now() + seconds * 1000;
  return getSmallWhile(tenant, () => Date.now() < ends);
}

async function getSmallWhile(tenant, lasts) {
  const [ms, statuses] = [[], {}];
  while (lasts()) {
    const answer = await tenant.call("GET", "/keys/small");
    ms.push(answer.ms);
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    await sleep(10);
  }
  return { ...quantiles(ms), statuses };
}

/** A client of HTTP/2 with a window of 0: asks for `path` at a rate, and takes no answer. */
export function takeNothing(server, { readToken, api }, path, everyMs = 10) {
  const told = { asked: 0, closed: 0, statuses: {} };
  let over = false;
  let session;
  const connect = () => {
    session = http2.connect(server.url, { settings: { initialWindowSize: 0 } });
    session.on("error", () => {});
    session.on("close", () => {
      told.closed++;
      if (!over) setTimeout(() => over || connect(), 20);
    });
  };
  connect();
  const timer = setInterval(() => {
    if (session.destroyed || session.closed) return;
    const stream = session.request({
      ":path": api + path,
      authorization: `Bearer ${readToken}`,
    });
    told.asked++;
    stream.on("error", () => {});
    stream.on("response", (headers) => {
      const status = headers[":status"];
      told.statuses[status] = (told.statuses[status] ?? 0) + 1;
    });
    stream.end();
  }, everyMs);
  return {
    told,
    end: () => {
      over = true;
      clearInterval(timer);
      session.destroy();
    },
  };
}

/** MiB that the process of a server has resident, where /proc tells. */
export function residentMib({ pid }) {
  const path = `/proc/${pid}/status`;
  if (!existsSync(path)) return 0;
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(path, "utf8"))[1]) / 1024);
}

/** Stores `count` large entries and a small one. */
export async function fill({ call }, count) {
  await call("PUT", "/keys/small", "1", "application/json");
  for (let n = 0; n < count; n++) {
    await call("PUT", `/keys/large/${n}`, Buffer.alloc(VALUE_BYTES, n));
  }
}

/** Looks at the memory of a server while `run` goes on. Resolves to the most MiB, and what `run` resolves to. */
async function watched(server, run) {
  let most = 0;
  const looks = setInterval(() => {
    most = Math.max(most, residentMib(server));
  }, 200);
  const done = await run().finally(() => clearInterval(looks));
  return { done, residentMibMost: most };
}

/**
 * Two tenants ask and take no answers for so many seconds; a third one gets a small entry. Resolves to
 * its latencies alone and beside them, what came of their requests, and the memory of the server.
 */
export async function untaken(seconds, aloneSeconds) {
  const server = await serveTenants("neighbours");
  const greedy = [];
  for (const name of ["one", "two"]) {
    greedy.push(await tenant(server, name, { operationsPerSecond: 100 }));
  }
  const third = await tenant(server, "third");
  for (const each of [...greedy, third]) await fill(each, 20);
  const alone = await getSmall(third, aloneSeconds);
  const attacks = greedy.map((each) => takeNothing(server, each, "/keys?limit=20"));
  const ends = Date.now() + seconds * 1000;
  // On a busy machine a connection is closed later.
  const isHeld = () => attacks.some(({ told }) => told.closed === 0) && Date.now() < ends + HANG_MS;
  const lasts = () => Date.now() < ends || isHeld();
  const { done: beside, residentMibMost } = await watched(server, () =>
    getSmallWhile(third, lasts),
  ).finally(() => attacks.forEach((attack) => attack.end()));
  await server.end();
  return { alone, beside, attacks: attacks.map(({ told }) => told), residentMibMost };
}

/** Bytes of the longest log of the databases of a server. */
export function logBytes({ path }) {
  const logs = readdirSync(path).filter((name) => name.endsWith("-wal"));
  return Math.max(0, ...logs.map((name) => statSync(join(path, name)).size));
}

/**
 * Writes the same few entries again and again, for so many bytes or seconds. Resolves to the statuses and
 * the length of the longest log meanwhile.
 */
export async function overwrite(server, { call }, { bytes = Infinity, seconds = 60 }) {
  const ends = Date.now() + seconds * 1000;
  const [ms, statuses] = [[], {}];
  let [written, logBytesMost] = [0, 0];
  for (let n = 0; written < bytes && Date.now() < ends; n++) {
    const answer = await call("PUT", `/keys/again/${n % 2}`, Buffer.alloc(WRITTEN_BYTES, n));
    ms.push(answer.ms);
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    written += WRITTEN_BYTES;
    logBytesMost = Math.max(logBytesMost, logBytes(server));
  }
  return { ...quantiles(ms), statuses, logBytesMost };
}

/**
 * A tenant writes while a read token of its own begins exports and takes nothing of them; another tenant gets
 * a small entry. `work`: how much is written. `alone` has the same writes, and no exports.
 */
export async function slowExports(work, aloneSeconds) {
  const server = await serveTenants("neighbours-exports");
  const writer = await tenant(server, "writer", { bytes: 20_000_000 });
  const third = await tenant(server, "third");
  await fill(writer, 35);
  await fill(third, 1);
  const getBesideWrites = async (amount) => {
    let over = false;
    const got = getSmallWhile(third, () => !over);
    const written = await overwrite(server, writer, amount);
    over = true;
    return { got: await got, written };
  };
  const { got: alone } = await getBesideWrites({ seconds: aloneSeconds });
  const attack = takeNothing(server, writer, "/export", 50);
  const { done, residentMibMost } = await watched(server, () => getBesideWrites(work)).finally(
    attack.end,
  );
  await server.end();
  return { alone, beside: done.got, written: done.written, attack: attack.told, residentMibMost };
}

if (import.meta.main ?? process.argv[1]?.endsWith("neighbours.mjs")) {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "60" },
      attack: { type: "string", default: "untaken,exports" },
    },
  });
  const chosen = values.attack.split(",");
  const seconds = Number(values.seconds) / chosen.length;
  const attacks = {
    untaken: () => untaken(seconds, ALONE_SECONDS),
    exports: () => slowExports({ seconds }, ALONE_SECONDS),
  };
  for (const name of chosen) {
    const figures = await attacks[name]();
    const { alone, beside, written } = figures;
    console.log(`${name}: p99 of a third tenant ${alone.p99} ms alone, ${beside.p99} ms beside`);
    if (written !== undefined) {
      const refused = written.count - (written.statuses[200] ?? 0);
      console.log(`${name}: ${refused} of ${written.count} writes refused`);
    }
    console.dir(figures, { depth: 4 });
  }
  process.exit(0);
}
