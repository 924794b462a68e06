// Duty: the files of examples/deploy/ and examples/postgres/ start servers that work: their commands
// are run as they stand, on ports, in folders and on a PostgreSQL of the test's own.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { until } from "../kit/time.mjs";

const bin = fileURLToPath(new URL("../../dist/cli/openkv.js", import.meta.url));
const pathOf = (name) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));
const read = (name) => readFileSync(pathOf(name), "utf8");
const scratch = newFolder("deploy");
const adminToken = "the-admin-token-of-the-deployments";
/** A hang guard. */
const PATIENCE_MS = 60_000;

const dockerfile = read("deploy/Dockerfile");
const [healthcheck, entrypoint, command] = ["HEALTHCHECK[^]*?CMD", "\nENTRYPOINT", "\nCMD"].map(
  (name) => JSON.parse(new RegExp(`${name} (\\[.*\\])`).exec(dockerfile)[1]),
);
const composed = JSON.parse(/command: (\[.*\])/.exec(read("deploy/compose.yaml"))[1]);
const [, unit] = /ExecStart=\/usr\/bin\/env (.*)/.exec(read("deploy/openkv.service"));

const skip = process.platform === "win32" && "there is no SIGTERM";

/** Starts a server with the arguments of `openkv`, and waits until it listens. */
async function start(words, more = {}) {
  const env = { ...process.env, OPENKV_ADMIN_TOKEN: adminToken, ...more };
  const stdio = ["ignore", "pipe", "ignore"];
  const server = spawn(process.execPath, [bin, ...words], { env, stdio, timeout: PATIENCE_MS });
  const [line] = await once(server.stdout, "data");
  return { server, port: /:(\d+)\s*$/.exec(line)[1] };
}

/** Creates the database `shop`; answers its token. */
async function create(port) {
  const made = await fetch(`http://127.0.0.1:${port}/v1/admin/databases`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminToken}` },
    body: '{"name":"shop"}',
  });
  return (await made.json()).token;
}

for (const [name, words] of [
  ["Dockerfile", [...entrypoint, ...command]],
  ["compose.yaml", [...entrypoint, ...composed]],
  ["openkv.service", unit.split(" ")],
]) {
  test(name, { skip }, async () => {
    assert.equal(words.shift(), "openkv");
    const folder = join(scratch, name, "/");
    mkdirSync(folder);
    const at = (option) => words.indexOf(option) + 1;
    assert.match(words[at("--path")], /\/$/, "a folder of databases");
    words[at("--path")] = folder;
    words[at("--listen")] = words[at("--listen")].replace(/:4512$/, ":0");

    const { server, port } = await start(words);
    const token = await create(port);
    const kv = await openKv(`http://127.0.0.1:${port}/shop`, { accessToken: token });
    await kv.set(["a"], 1);
    assert.equal((await kv.get(["a"])).value, 1);
    await kv.close();

    assert.equal(healthcheck[0], "node");
    const script = healthcheck.slice(1).map((word) => word.replace(":4512/", `:${port}/`));
    const healthy = () => spawnSync(process.execPath, script, { timeout: PATIENCE_MS }).status;
    assert.equal(healthy(), 0);
    server.kill("SIGTERM");
    assert.deepEqual(await once(server, "exit"), [0, null]);
    assert.equal(healthy(), 1);
  });
}

test("the servers of examples/postgres share databases", { skip }, async () => {
  const composed = read("postgres/compose.yaml");
  const postgres = await sharedPostgres();
  const database = await postgres.newDatabase();
  const engine = /OPENKV_ENGINE: (\S+)/
    .exec(composed)[1]
    .replace(/openkv:\$\{POSTGRES_PASSWORD\}@primary,standby\/openkv/, () => {
      return `postgres@127.0.0.1:${postgres.port}/${database}`;
    });
  const commands = [...composed.matchAll(/command: (\["--advertise".*\])/g)].map(([, words]) =>
    JSON.parse(words),
  );
  assert.equal(commands.length, 2);
  const servers = [];
  for (const words of commands) {
    const port = await freePort();
    const place = words.map((word) => word.replace(/^(http:\/\/)?(.*):451[23]$/, `$1$2:${port}`));
    servers.push(await start([...entrypoint.slice(1), ...place], { OPENKV_ENGINE: engine }));
  }
  const [one, two] = servers.map(({ port }) => `http://127.0.0.1:${port}/shop`);
  const accessToken = await create(servers[0].port);
  const kv = await openKv(one, { accessToken });
  await kv.set(["a"], 1);
  const readsAtTwo = async () => {
    const other = await openKv(two, { accessToken });
    assert.equal((await other.get(["a"])).value, 1);
    await other.close();
    return true;
  };
  await until(() => readsAtTwo().catch(() => false), "the other knows it");
  const status = spawnSync(process.execPath, [bin, "cluster", "status", "--json"], {
    env: { ...process.env, OPENKV_ENGINE: engine },
    encoding: "utf8",
  });
  const [shop] = status.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(shop.servedAs, "shop");
  assert.equal(shop.leader, `http://127.0.0.1:${servers[0].port}`);
  await kv.close();
  for (const { server } of servers) {
    server.kill("SIGTERM");
    assert.deepEqual(await once(server, "exit"), [0, null]);
  }
  for (const script of ["primary.sh", "standby.sh"]) {
    assert.equal(spawnSync("bash", ["-n", pathOf(`postgres/${script}`)]).status, 0);
  }
});
