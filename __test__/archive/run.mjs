// Duty: archives on a real S3-compatible server, moto, directly and behind a proxy that answers 503, slowly,
// cut off, or lets a request happen twice; and with credentials that may not write.
//
//   node __test__/archive/run.mjs
//
// Installs moto into target/moto, by the version in requirements.txt.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer, request } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { contents, openkv } from "../cli/running.mjs";
import { newFolder } from "../kit/folder.mjs";
import { pythonPrograms } from "../kit/python.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const PATIENCE_MS = 60_000;
const SECRET = "a-secret-of-the-archive-tests";
const folder = newFolder("archive-s3");

const programs = pythonPrograms("moto", join(here, "requirements.txt"));
const moto = await startMoto();
try {
  await createBucket(moto.port);
  await archivesAndRestores("plain", moto.port);
  const proxy = await startProxy(moto.port);
  await archivesAndRestores("faults", proxy.port, proxy);
  assert.ok(proxy.faults() > 4, `only ${proxy.faults()} faults`);
  await refusesCredentials(proxy);
  proxy.close();
  console.log("archives on S3: all is well");
} finally {
  moto.child.kill();
}

/** Starts moto on a free port. */
function startMoto() {
  const child = spawn(join(programs, "moto_server"), ["-H", "127.0.0.1", "-p", "0"]);
  return new Promise((resolve, reject) => {
    let output = "";
    const read = (data) => {
      output += data;
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(output);
      if (found !== null) resolve({ child, port: Number(found[1]) });
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", () => reject(new Error(`moto has ended: ${output}`)));
  });
}

async function createBucket(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/bucket`, { method: "PUT" });
  assert.equal(answer.status, 200);
}

function environment(port) {
  return {
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    AWS_ALLOW_HTTP: "true",
    AWS_ACCESS_KEY_ID: "tests",
    AWS_SECRET_ACCESS_KEY: SECRET,
    AWS_REGION: "us-east-1",
  };
}

/** Archives in this process and restores by the command; a proxy fails meanwhile. */
async function archivesAndRestores(name, port, proxy) {
  const env = environment(port);
  Object.assign(process.env, env);
  const target = `s3://bucket/${name}`;
  const file = join(folder, `${name}.sqlite3`);
  const kv = await openKv(file, { durability: "normal" });
  await kv.set(["large"], "x".repeat(60_000));
  const archive = await kv.archive({ to: target, snapshotEvery: "700ms" });
  proxy?.fail(true);
  const states = [];
  for (let n = 0; n < 30; n++) {
    const { versionstamp } = await kv.set(["n", n % 7], n);
    states.push({ versionstamp, entries: JSON.stringify(await all(kv)) });
    await new Promise((done) => setTimeout(done, 150));
  }
  const last = states.at(-1).versionstamp;
  const end = Date.now() + PATIENCE_MS;
  while (!((archive.status().versionstamp ?? "") >= last)) {
    assert.ok(Date.now() < end, JSON.stringify(archive.status()));
    await new Promise((done) => setTimeout(done, 100));
  }
  proxy?.fail(false);
  await archive.stop();
  assert.equal(archive.status().error, null);
  await kv.close();
  for (const at of [29, 17, 24]) {
    const restored = join(folder, `${name}-${at}.sqlite3`);
    const { versionstamp, entries } = states[at];
    const outcome = await openkv("restore", target, restored, "--at", versionstamp, { env });
    // A snapshot can be later than the first commits.
    if (at === 17 && /before the oldest/.test(outcome.err)) continue;
    assert.equal(outcome.code, 0, outcome.err);
    assert.equal(JSON.stringify(await contents(restored)), entries);
  }
  const verified = await openkv("archive", "verify", target, "--json", { env });
  assert.equal(verified.code, 0, verified.err + verified.out);
  console.log(`${name}: ${verified.out.trim()}`);
}

async function all(kv) {
  const entries = [];
  for await (const { key, value } of kv.list({ prefix: [] })) entries.push([key, value]);
  return entries;
}

async function refusesCredentials(proxy) {
  proxy.deny(true);
  const file = join(folder, "denied.sqlite3");
  await (await openKv(file)).close();
  const env = environment(proxy.port);
  const outcome = await openkv("archive", "run", file, "s3://bucket/denied", { env });
  assert.equal(outcome.code, 1);
  assert.match(outcome.err, /refuses the credentials: check that/);
  assert.ok(!outcome.err.includes(SECRET) && !outcome.err.includes("Signature"), outcome.err);
  proxy.deny(false);
}

/** A proxy that fails every second request, in one of four ways, while it is told to. */
async function startProxy(to) {
  let [failing, denying, count, faults] = [false, false, 0, 0];
  const forward = (from, body) =>
    new Promise((resolve, reject) => {
      const { method, url: path, headers } = from;
      const sent = request({ host: "127.0.0.1", port: to, method, path, headers }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("end", () => resolve({ answer, bytes: Buffer.concat(parts) }));
      });
      sent.on("error", reject);
      sent.end(body);
    });
  const server = createServer(async (from, response) => {
    const parts = [];
    for await (const part of from) parts.push(part);
    const body = Buffer.concat(parts);
    if (denying && from.method === "PUT") return response.writeHead(403).end();
    const fault = failing && ++count % 2 === 0 ? (faults++, faults % 4) : undefined;
    if (fault === 0) return response.writeHead(503).end();
    if (fault === 1) await new Promise((done) => setTimeout(done, 300));
    if (fault === 2) await forward(from, body);
    const { answer, bytes } = await forward(from, body);
    response.writeHead(answer.statusCode, answer.headers);
    if (fault !== 3 || bytes.length < 2) return response.end(bytes);
    response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: server.address().port,
    fail: (on) => (failing = on),
    deny: (on) => (denying = on),
    faults: () => faults,
    close: () => server.close(),
  };
}
