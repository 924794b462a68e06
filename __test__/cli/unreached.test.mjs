// Duty: the commands on a URL whose server is not there, and on the file of a replica.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { open, startServer } from "../kit/server.mjs";
import { bin, folderOfTests, openkv, start } from "./running.mjs";

const path = folderOfTests();
const TOKEN = "a-long-and-secret-token";
const NOBODY = "http://127.0.0.1:1";

const withoutTerminal =
  spawnSync("python3", ["-c", "import pty"]).status !== 0 && "needs a terminal (python3's pty)";

test("a server that is not there is an error, at once or after --timeout", async () => {
  for (const [more, why] of [
    [[], /does the server run/],
    // The timeout may cut off the only attempt, on a busy machine.
    [["--timeout", "300ms"], /does the server run|no connection in time/],
  ]) {
    const { code, out, err } = await openkv("-d", NOBODY, "--token", TOKEN, ...more, "get", "a");
    assert.deepEqual([code, out], [1, ""]);
    assert.match(err, /failed to connect to 'http:\/\/127\.0\.0\.1:1\/'/);
    assert.match(err, why);
    assert.equal(err.trim().split("\n").length, 1, "no progress but on a terminal");
  }
});

test("--timeout is a duration, and for URLs", async () => {
  const wrong = await openkv("-d", NOBODY, "--token", TOKEN, "--timeout", "soon", "get", "a");
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /--timeout/);
  const file = await openkv("-d", path("new.db"), "--timeout", "1s", "set", "a", "1");
  assert.equal(file.code, 2);
  assert.match(file.err, /'timeout' is not for a file/);
});

test("with --timeout a command waits for a server that starts", async () => {
  const first = await startServer({ path: path("late.db"), accessToken: TOKEN });
  const { port } = new URL(first.url);
  await first.close();
  const on = ["-d", first.url, "--token", TOKEN, "--timeout", "30s"];
  const waiting = new Promise((resolve) => {
    const child = start([...on, "set", "a", "1"]);
    child.on("close", (code) => resolve(code));
  });
  await startServer({ path: path("late.db"), accessToken: TOKEN, listen: `127.0.0.1:${port}` });
  assert.equal(await waiting, 0);
});

/** What a command that fails writes on a terminal: its lines, each cleared before the next. */
async function linesOnTerminal(...args) {
  const run = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
  const child = spawn("python3", ["-c", run, process.execPath, bin, ...args], {
    env: { ...process.env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const out = await child.stdout.setEncoding("utf8").toArray();
  assert.equal(child.exitCode ?? (await once(child, "exit"))[0], 1);
  return out
    .join("")
    .split("\u001b[2K")
    .filter((text) => text.trim() !== "");
}

test("on a terminal it says why it waits, and clears that", { skip: withoutTerminal }, async () => {
  const on = ["-d", NOBODY, "--token", TOKEN, "--timeout", "3s", "get", "a"];
  const [line, error] = await linesOnTerminal(...on);
  assert.match(line, /^Could not open Deno KV database: failed to connect to/);
  assert.ok(line.trimEnd().length < 80, line);
  assert.match(error, /does the server run/);
});

test("on a terminal it says that a server is silent", { skip: withoutTerminal }, async (t) => {
  const silent = net.createServer((socket) => socket.on("error", () => {}).resume());
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.close());
  const url = `http://127.0.0.1:${silent.address().port}`;
  const lines = await linesOnTerminal("-d", url, "--token", TOKEN, "--timeout", "2s", "get", "a");
  assert.equal(lines[0].trim(), `no answer yet from ${url}/`);
  assert.match(lines.at(-1), /no (answer|connection) in time/);
});

test("the file of a replica is read without its server, and refused for writing", async () => {
  const server = await startServer({ path: path("of.db"), accessToken: TOKEN });
  const replica = path("near.db");
  const kv = await openKv(server.url, { accessToken: TOKEN, replica });
  await kv.set(["a"], 1);
  await kv.replica.ready();
  await kv.replica.reached((await kv.get(["a"])).versionstamp);
  await kv.close();
  await server.close();
  const { code, out } = await openkv("-d", replica, "get", "a");
  assert.deepEqual([code, out.trim()], [0, "1"]);
  const refused = await openkv("-d", replica, "set", "a", "2");
  assert.equal(refused.code, 1);
  assert.match(refused.err, /replica/);
  const reader = await open(replica, { readonly: true });
  assert.equal((await reader.get(["a"])).value, 1);
});
