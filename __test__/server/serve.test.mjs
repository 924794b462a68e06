// Duty: serve() and its handle: options, start and end, the databases of a folder, openkv's own
// client.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { KvError, openKv, serve } from "../../index.mjs";
import { HANG_MS } from "../kit/time.mjs";
import {
  accessToken,
  adminToken,
  connect,
  folder,
  freshPath,
  serveFile,
  start,
} from "./serving.mjs";

const offer = JSON.stringify({ supportedVersions: [1, 2, 3] });
const bearer = (token) => ({ authorization: `Bearer ${token}` });

describe("options", () => {
  const cases = [
    [undefined, /serve needs options/],
    [7, /options must be an object/],
    ["app.sqlite3", /write serve\(\{ path: "app\.sqlite3" \}\)/],
    [{}, /path must be a string/],
    [{ path: 5 }, /path must be a string/],
    [{ path: "" }, /path must name/],
    [{ path: "a.db", listen: "0.0.0.0:0" }, /accessToken is missing/],
    [{ path: "a.db", readToken: accessToken }, /accessToken is missing/],
    [{ path: "a.db", publicUrl: "kv.example.com" }, /publicUrl must be a URL/],
    [{ path: "a.db", corsOrigin: "*" }, /corsOrigin must be one origin/],
    [{ path: "a.db", accessToken: "short" }, /at least 12 characters/],
    [{ path: "a.db", accesToken: accessToken }, /unknown option 'accesToken'/],
    [{ path: "a.db", accessToken, adminToken }, /adminToken is for a folder/],
    [{ path: "a/", listen: "0.0.0.0:0" }, /adminToken is missing/],
    [{ path: "a/", adminToken, accessToken }, /accessToken is for a single file/],
    [{ path: "a.db", accessToken, dataTokenMs: 1 }, /dataTokenMs must be from/],
    [{ path: "a.db", accessToken, dataTokenMs: "999ms" }, /dataTokenMs must be from .*: 999 given/],
    [
      { path: "a.db", accessToken, keyvalLockDuration: "30 s" },
      /^keyvalLockDuration must be an integer of milliseconds: received the string "30 s"; a text has a unit/,
    ],
    [{ path: "a.db", replicaOf: 5 }, /^replicaOf must be a string: received number$/],
    [{ path: "a.db", replicaOf: "http://127.0.0.1:1" }, /replicaToken is missing/],
    [{ path: "a.db", accessToken, region: "eu" }, /region is for a read server/],
    [
      { path: "a.db", accessToken, connectionsMax: 1.5 },
      /^connectionsMax must be an integer from 0 to \d+: received 1\.5$/,
    ],
    [{ path: "a.db", accessToken, connectionsMax: "5" }, /^connectionsMax must be an integer/],
    [{ path: "a.db", accessToken: 5 }, /^accessToken must be a string: received number$/],
    [{ path: "a.db", accessToken, readonly: 1 }, /^readonly must be a boolean: received number$/],
    [
      { path: "a.db", accessToken, tls: "x" },
      /^tls must be an object of cert, key: received the string "x"$/,
    ],
    [{ path: "a.db", accessToken, tls: { cert: 5, key: "k" } }, /^tls\.cert must be a string/],
    [
      { path: "a.db", accessToken, quotas: { watch: 1 } },
      /quotas: unknown option 'watch': known are bytes/,
    ],
    [
      { path: "a.db", accessToken, quotas: { watches: 2 ** 32 } },
      /^quotas\.watches must be an integer/,
    ],
    [
      { path: "a.db", accessToken, log: "loud" },
      /^log must be one of none, text, json: received the string "loud"$/,
    ],
    [{ path: "a.db", accessToken, listen: "nowhere" }, /listen is HOST:PORT/],
    [{ path: "a.db", accessToken, tls: { cert: "/none", key: "/none" } }, /tls\.cert/],
  ];
  for (const [options, message] of cases) {
    test(`${JSON.stringify(options)} is rejected by name`, async () => {
      await assert.rejects(serve(options), { name: "TypeError", message });
    });
  }

  test("a number that JSON cannot represent is rejected by name", async () => {
    for (const connectionsMax of [5n, Number.NaN, Infinity]) {
      const message = /^connectionsMax must be an integer/;
      await assert.rejects(serve({ path: "a.db", accessToken, connectionsMax }), {
        name: "TypeError",
        message,
      });
    }
  });

  test("an address in use is a KvError", async () => {
    const server = await serveFile();
    const listen = `127.0.0.1:${server.port}`;
    const again = serve({ path: freshPath(), accessToken, listen });
    await assert.rejects(
      again,
      (error) => error instanceof KvError && error.code === "UNAVAILABLE",
    );
  });
});

test("a database of a server reads and writes like a local one", async () => {
  const server = await serveFile();
  assert.equal(server.url, `http://127.0.0.1:${server.port}`);
  const kv = await connect(server);
  const value = {
    n: 1n,
    date: new Date(5),
    map: new Map([["a", new Set([1])]]),
    bytes: new Uint8Array([1]),
  };
  const { versionstamp } = await kv.set(["a", 1], value);
  assert.deepEqual(await kv.get(["a", 1]), { key: ["a", 1], value, versionstamp });
  assert.deepEqual(
    await kv
      .atomic()
      .check({ key: ["a", 1], versionstamp: null })
      .commit(),
    { ok: false, failed: [0] },
  );
  const reader = kv.watch([["w"]]).getReader();
  assert.equal((await reader.read()).value[0].value, null);
  await kv.set(["w"], "news");
  assert.equal((await reader.read()).value[0].value, "news");
  await reader.cancel();
});

test("handles of the process and the server share the file", async () => {
  const path = freshPath();
  const kv = await openKv(path);
  const server = await start({ path, accessToken });
  const remote = await connect(server);
  await kv.set(["a"], 1);
  assert.equal((await remote.get(["a"])).value, 1);
  await remote.atomic().sum(["n"], 2n).commit();
  assert.equal((await kv.get(["n"])).value.value, 2n);
  await kv.close();
});

test("repeated close() waits for the same end, and the port is free then", async () => {
  const server = await serveFile();
  await Promise.all([server.close(), server.close()]);
  await assert.rejects(fetch(server.url));
  const again = await start({ path: freshPath(), accessToken, listen: `127.0.0.1:${server.port}` });
  assert.equal(again.port, server.port);
});

test("a server that its caller does not keep goes on", async () => {
  const program = `
    import { serve } from ${JSON.stringify(new URL("../../index.mjs", import.meta.url).href)};
    const { url } = await serve(${JSON.stringify({ path: freshPath(), accessToken, listen: "127.0.0.1:0" })});
    for (let n = 0; n < 5; n++) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    console.log((await fetch(url + "/openapi.json", { signal: AbortSignal.timeout(30_000) })).status);
    process.exit(0);`;
  const args = ["--expose-gc", "--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: HANG_MS });
  assert.equal(stdout, "200\n");
});

test("databases of a folder are created and dropped while it is served", async () => {
  const server = await start({ path: `${join(folder(), "many")}/`, adminToken });
  const admin = (method, path, body) =>
    fetch(`${server.url}/v1/admin/databases${path}`, {
      method,
      headers: bearer(adminToken),
      body: body && JSON.stringify(body),
    });
  const made = await admin("POST", "", { name: "shop", quotas: { operationsPerSecond: 500 } });
  assert.equal(made.status, 201);
  const { token, databaseId } = await made.json();
  assert.match(databaseId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const kv = await connect(server, token, "/shop");
  await kv.set(["a"], 1);
  assert.equal((await kv.get(["a"])).value, 1);
  assert.equal((await admin("DELETE", "/shop")).status, 204);
  await assert.rejects(kv.get(["a"]));
  assert.deepEqual(await (await admin("GET", "")).json(), []);
});

test("metadata has exactly the protocol's fields", async () => {
  const server = await serveFile();
  const answer = await fetch(server.url, {
    method: "POST",
    headers: bearer(accessToken),
    body: offer,
  });
  assert.equal(answer.headers.get("content-type"), "application/json");
  const metadata = await answer.json();
  const names = ["version", "databaseId", "endpoints", "token", "expiresAt"];
  assert.deepEqual(Object.keys(metadata), names);
  assert.deepEqual(metadata.endpoints, [{ url: "./v2", consistency: "strong" }]);
  assert.ok(Date.parse(metadata.expiresAt) > Date.now() + 60_000);
});
