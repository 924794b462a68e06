// Duty: tenants of one server that take no answers, and what that costs their neighbours.
// `node __test__/server/neighbours.mjs --seconds 60` prints the figures of a minute;
// neighbours.test.mjs is the short form.

import { existsSync, readFileSync } from "node:fs";
import http2 from "node:http2";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { newFolder } from "../kit/folder.mjs";
import { sleep } from "../kit/time.mjs";
import { kill, spawnServer } from "./children.mjs";

const adminToken = "token-of-the-admin";
const VALUE_BYTES = 60_000;

/** A server with a folder of databases, in a process of its own. */
export async function serveTenants(name) {
  const folder = newFolder(name);
  const path = join(folder, "tenants/");
  const server = await spawnServer({ path, adminToken, listen: "127.0.0.1:0" });
  return { ...server, end: () => kill(server) };
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
    await answer.arrayBuffer();
    return { status: answer.status, ms: performance.now() - began };
  };
  return { name, readToken, api, call };
}

/** Quantiles of milliseconds. */
export function quantiles(ms) {
  const sorted = [...ms].sort((a, b) => a - b);
  const at = (part) => Math.round(10 * sorted[Math.floor(part * (sorted.length - 1))]) / 10;
  return { count: ms.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** Gets a small entry again and again. */
export async function getSmall(tenant, seconds) {
  const ends = Date.now() + seconds * 1000;
  const [ms, statuses] = [[], {}];
  while (Date.now() < ends) {
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
  let residentMibMost = 0;
  const looks = setInterval(() => {
    residentMibMost = Math.max(residentMibMost, residentMib(server));
  }, 200);
  const beside = await getSmall(third, seconds);
  clearInterval(looks);
  for (const attack of attacks) attack.end();
  await server.end();
  return { alone, beside, attacks: attacks.map(({ told }) => told), residentMibMost };
}

if (import.meta.main ?? process.argv[1]?.endsWith("neighbours.mjs")) {
  const { values } = parseArgs({ options: { seconds: { type: "string", default: "60" } } });
  console.dir(await untaken(Number(values.seconds), 5), { depth: 4 });
  process.exit(0);
}
