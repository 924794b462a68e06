// Duty: serve, db and token as processes, and the other commands on a URL.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { ended, folderOfTests, linesOf, openkv, start } from "./running.mjs";

const path = folderOfTests();
const TOKEN = "a-long-and-secret-token";

test("a read server follows a server, with its token from the environment", async () => {
  const listen = ["--listen", "127.0.0.1:0", "--log", "none", "--json"];
  const serving = async (args, env) => {
    const child = start(["serve", ...args, ...listen], env);
    return { child, url: JSON.parse((await linesOf(child, 1))[0]).url };
  };
  const primary = await serving(["--path", path("primary.db")], { OPENKV_ACCESS_TOKEN: TOKEN });
  const env = { OPENKV_ACCESS_TOKEN: TOKEN, OPENKV_REPLICA_TOKEN: TOKEN };
  const near = await serving(["--path", path("near.db"), "--replica-of", primary.url], env);
  const on = (...args) => openkv("-d", near.url, "--token", TOKEN, ...args);
  assert.equal((await on("set", "k", "1")).code, 0);
  assert.equal((await on("get", "k")).out, "1\n");
  const missing = await openkv("serve", "--path", path("no.db"), "--replica-of", primary.url);
  assert.equal(missing.code, 2);
  assert.match(missing.err, /--replica-token is missing/);
  const archived = [...listen, "--replica-of", primary.url, "--archive", path("archive")];
  assert.equal((await openkv("serve", "--path", path("no.db"), ...archived)).code, 2);
  for (const { child } of [near, primary]) assert.equal(await ended(child), 0);
});

test("a file is served until the process is told to end", async () => {
  const db = path("served.db");
  const child = start(
    [
      "serve",
      "--path",
      db,
      "--listen",
      "127.0.0.1:0",
      "--read-token",
      "only-for-reading",
      "--log",
      "none",
      "--quota-watches",
      "5",
      "--connections-max",
      "100",
      "--data-token-ms",
      "60000",
      "--json",
    ],
    { OPENKV_ACCESS_TOKEN: TOKEN },
  );
  const { url, port } = JSON.parse((await linesOf(child, 1))[0]);
  assert.match(url, new RegExp(`^http://127.0.0.1:${port}`));
  const env = { OPENKV_ACCESS_TOKEN: TOKEN, OPENKV_URL: url };
  const on = (...args) => openkv(...args, { env });
  assert.equal((await on("set", "k", "{ n: 1n }")).code, 0);
  const denied = await openkv("-d", url, "--token", "only-for-reading", "set", "k", "2");
  assert.equal(denied.code, 1, denied.err);
  const [got, counted, exported, copied, lacking] = await Promise.all([
    on("get", "k"),
    on("count"),
    on("export", "-"),
    on("copy", url, path("copied.db"), "--json"),
    on("stats"),
  ]);
  assert.equal(got.out, "{ n: 1n }\n");
  assert.equal(counted.out, "1\n");
  assert.match(exported.out, /"bigint","value":"1"/);
  assert.deepEqual(JSON.parse(copied.out), { copied: 1 });
  assert.equal(lacking.code === 0 || /lacks the extension/.test(lacking.err), true, lacking.err);
  const large = path("large.db");
  const kv = await openKv(large);
  // More than one commit takes: keys of 82 kB, values of 4 MB.
  for (let i = 0; i < 80; i++)
    await kv.set(["copy", i, "x".repeat(1500)], { text: "y".repeat(50_000) });
  await kv.close();
  assert.equal((await on("copy", large, url)).code, 0);
  assert.equal((await on("count", "copy")).out, "80\n");
  assert.equal(await ended(child, "SIGTERM"), 0);
});

test("databases of a folder and their tokens are made and dropped while it is served", async () => {
  const folder = path("folder");
  mkdirSync(folder);
  const child = start(["serve", "--path", folder, "--listen", "127.0.0.1:0"], {
    OPENKV_ADMIN_TOKEN: TOKEN,
  });
  const url = (await linesOf(child, 1))[0].replace("listening on ", "").replace(/\/$/, "");
  const on = (...args) => openkv(...args, "--server", url, { env: { OPENKV_ADMIN_TOKEN: TOKEN } });
  const json = async (...args) => JSON.parse((await on(...args, "--json")).out);
  const made = await json("db", "create", "shop", "--quota-bytes", "1000000000");
  assert.deepEqual([made.name, made.quotas], ["shop", { bytes: 1e9 }]);
  assert.equal((await openkv("-d", `${url}/shop`, "--token", made.token, "set", "k", "1")).code, 0);
  const token = await json("token", "create", "shop", "--rights", "read");
  const denied = await openkv("-d", `${url}/shop`, "--token", token.token, "set", "k", "1");
  assert.equal(denied.code, 1);
  assert.match((await on("token", "list", "shop")).out, new RegExp(`token ${token.id} +read`));
  assert.equal((await on("token", "revoke", "shop", token.id)).code, 0);
  const [revoked, quotas, twice, unsure, wrong] = await Promise.all([
    openkv("-d", `${url}/shop`, "--token", token.token, "--json", "get", "k"),
    on("db", "quotas", "shop", "--quota-watches", "3"),
    on("db", "create", "shop"),
    on("db", "drop", "shop"),
    openkv("db", "list", "--server", url, "--admin-token", "another-long-token"),
  ]);
  assert.deepEqual(
    [revoked.code, quotas.code, twice.code, unsure.code, wrong.code],
    [1, 0, 1, 2, 1],
  );
  assert.match(wrong.err, /refused \(401\)/);
  assert.deepEqual((await json("db", "show", "shop")).quotas, { watches: 3 });
  assert.match((await on("db", "list")).out, /^shop {2}\d+ bytes/);
  assert.equal((await on("db", "drop", "shop", "--yes")).code, 0);
  assert.equal((await on("db", "list")).out, "");
  assert.equal(await ended(child, "SIGINT"), 0);
});

// The commands demanded an admin token before they asked the server, which needs none on a loopback address.
test("databases and tokens of a server without an admin token need none; another server says so", async () => {
  const serve = async (env, ...more) => {
    const folder = path(`folder-${more.length}`);
    mkdirSync(folder);
    const child = start(["serve", "--path", folder, "--listen", "127.0.0.1:0", ...more], env);
    const url = (await linesOf(child, 1))[0].replace("listening on ", "").replace(/\/$/, "");
    return { child, on: (...args) => openkv(...args, "--server", url) };
  };
  const open = await serve({});
  assert.equal((await open.on("db", "create", "shop", "--json")).code, 0);
  assert.match((await open.on("db", "list")).out, /^shop /);
  const made = await open.on("token", "create", "shop", "--rights", "read", "--json");
  assert.equal(made.code, 0, made.err);
  assert.match((await open.on("token", "list", "shop")).out, new RegExp(JSON.parse(made.out).id));
  assert.equal(await ended(open.child, "SIGINT"), 0);

  const closed = await serve({}, "--admin-token", TOKEN);
  const { code, err } = await closed.on("db", "list");
  assert.equal(code, 2);
  assert.match(err, /127\.0\.0\.1:\d+ asks for a token: give --admin-token or OPENKV_ADMIN_TOKEN/);
  assert.equal(await ended(closed.child, "SIGINT"), 0);
});

// "Unexpected token '<'", "(intermediate value) is not iterable" and "Invalid URL" named no server.
test("a server that is none of openkv is named, and so is a URL that is none", async (t) => {
  const other = createServer((request, response) => {
    response.end(request.url.startsWith("/empty") ? "" : "<html></html>");
  });
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  t.after(() => other.close());
  const url = `http://127.0.0.1:${other.address().port}`;
  for (const server of [url, `${url}/empty`]) {
    for (const command of ["db list", "db show shop", "token list", "db drop shop --yes"]) {
      const { code, err } = await openkv(...command.split(" "), "--server", server);
      assert.equal(code, 1, err);
      assert.ok(err.startsWith(`openkv: ${url} is no server of openkv: it answers `), err);
    }
  }
  for (const given of ["http://", "http://a b"]) {
    for (const option of ["--server", "--db"]) {
      const { code, err } = await openkv("db", "list", option, given);
      assert.equal(code, 2, err);
      assert.match(err, /http:\/\/.* is no URL: give one such as http:\/\/127\.0\.0\.1:4512\n$/);
    }
  }
});

test("what serve cannot do is wrong usage, or is told", async () => {
  const [none, short, half, nowhere, token, server] = await Promise.all([
    openkv("serve", "--path", path("none.db"), "--listen", "0.0.0.0:0"),
    openkv("serve", "--path", path("none.db"), "--access-token", "short"),
    openkv("serve", "--path", path("none.db"), "--access-token", TOKEN, "--tls-cert", "x"),
    openkv("serve", "--path", path("none.db"), "--access-token", TOKEN, "--listen", "256.0.0.1:1"),
    openkv("token", "generate"),
    openkv("db", "list", "--admin-token", TOKEN),
  ]);
  assert.deepEqual([none.code, short.code, half.code, server.code], [2, 2, 2, 2]);
  assert.match(none.err, /--access-token is missing.*openkv token generate/);
  assert.notEqual(nowhere.code, 0);
  assert.match(token.out, /^[\w-]{43}\n$/);
});
