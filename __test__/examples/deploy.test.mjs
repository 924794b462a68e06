// Duty: the files of examples/deploy/ start a server that works: their commands are run as they
// stand, on a port and in a folder of the test's own.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";

const bin = fileURLToPath(new URL("../../dist/cli/openkv.js", import.meta.url));
const read = (name) =>
  readFileSync(new URL(`../../examples/deploy/${name}`, import.meta.url), "utf8");
const scratch = newFolder("deploy");
const adminToken = "the-admin-token-of-the-deployments";
/** A hang guard. */
const PATIENCE_MS = 60_000;

const dockerfile = read("Dockerfile");
const [healthcheck, entrypoint, command] = ["HEALTHCHECK[^]*?CMD", "\nENTRYPOINT", "\nCMD"].map(
  (name) => JSON.parse(new RegExp(`${name} (\\[.*\\])`).exec(dockerfile)[1]),
);
const composed = JSON.parse(/command: (\[.*\])/.exec(read("compose.yaml"))[1]);
const [, unit] = /ExecStart=\/usr\/bin\/env (.*)/.exec(read("openkv.service"));

for (const [name, words] of [
  ["Dockerfile", [...entrypoint, ...command]],
  ["compose.yaml", [...entrypoint, ...composed]],
  ["openkv.service", unit.split(" ")],
]) {
  test(name, { skip: process.platform === "win32" && "there is no SIGTERM" }, async () => {
    assert.equal(words.shift(), "openkv");
    const folder = join(scratch, name, "/");
    mkdirSync(folder);
    const at = (option) => words.indexOf(option) + 1;
    assert.match(words[at("--path")], /\/$/, "a folder of databases");
    words[at("--path")] = folder;
    words[at("--listen")] = words[at("--listen")].replace(/:4512$/, ":0");

    const env = { ...process.env, OPENKV_ADMIN_TOKEN: adminToken };
    const stdio = ["ignore", "pipe", "ignore"];
    const server = spawn(process.execPath, [bin, ...words], { env, stdio, timeout: PATIENCE_MS });
    const [line] = await once(server.stdout, "data");
    const port = /:(\d+)\s*$/.exec(line)[1];
    const made = await fetch(`http://127.0.0.1:${port}/v1/admin/databases`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}` },
      body: '{"name":"shop"}',
    });
    const { token } = await made.json();
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
