// Duty: databases on a real S3-compatible server, moto: directly, and behind a proxy that answers 503, slowly, cut
// off, or lets a request happen twice, while leaders are killed and stopped; with credentials that may not write;
// and a store that ignores the conditions of requests.
//
//   node __test__/bucket/run.mjs

import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import process from "node:process";
import { openKv } from "../../index.mjs";
import { Cluster, createAt } from "../kit/cluster.mjs";
import { newFolder } from "../kit/folder.mjs";
import { createBucket, environment, SECRET, startMoto, startProxy } from "../kit/s3.mjs";
import { killLeaders } from "./kills.mjs";
import { killServers } from "./server-kills.mjs";

const folder = newFolder("bucket-s3");
const LEASE_MS = 1_500;

const moto = await startMoto();
try {
  await createBucket(moto.port);
  Object.assign(process.env, environment(moto.port));
  delete process.env.AWS_ENDPOINT_URL;
  delete process.env.AWS_ALLOW_HTTP;
  const at = (port, path) =>
    `s3://bucket/${path}?region=us-east-1&endpoint=http://127.0.0.1:${port}&lease=${LEASE_MS}ms`;

  const plain = { url: at(moto.port, "plain"), folder: newFolder("bucket-s3-plain") };
  console.log("plain:", await killLeaders({ ...plain, leaseMs: LEASE_MS, kills: 5 }));

  const proxy = await startProxy(moto.port);
  const url = at(proxy.port, "faults");
  await (await openKv(url)).close();
  proxy.fail(true);
  console.log("faults:", await killLeaders({ url, folder, leaseMs: LEASE_MS, kills: 3 }));
  console.log("servers with faults:", await serve(at(proxy.port, "servers"), proxy));
  proxy.fail(false);
  assert.ok(proxy.faults() > 20, `only ${proxy.faults()} faults`);

  proxy.deny(true);
  await refused(openKv(at(proxy.port, "denied")), "DENIED", /refuses the credentials: check that/);
  proxy.deny(false);
  await refused(
    openKv(at(moto.port, "").replace("/bucket/", "/nowhere/")),
    "UNAVAILABLE",
    /bucket/,
  );

  const careless = await withoutConditions(moto.port);
  await refused(openKv(at(careless.port, "careless")), "UNSUPPORTED", /ignores the conditions/);
  careless.close();
  proxy.close();
  console.log("databases on S3: all is well");
} finally {
  moto.child.kill();
}

/** Servers, of which the leader is killed. */
async function serve(engine, proxy) {
  const cluster = Cluster.at(engine);
  proxy.fail(false);
  const servers = [await cluster.start(), await cluster.start()];
  const accessToken = await createAt(servers, "shop");
  proxy.fail(true);
  try {
    return await killServers({ cluster, servers, accessToken, kills: 3, writes: 30 });
  } finally {
    await cluster.close();
  }
}

async function refused(opening, code, words) {
  const error = await opening.then(
    () => assert.fail("opened"),
    (failure) => failure,
  );
  assert.equal(error.code, code, error.stack);
  assert.match(error.message, words);
  assert.ok(!error.message.includes(SECRET) && !error.message.includes("Signature"), error.message);
}

/** A store as some are: without conditional writes. */
async function withoutConditions(to) {
  const server = createServer((from, response) => {
    const { method, url: path } = from;
    const headers = Object.fromEntries(
      Object.entries(from.headers).filter(([name]) => !name.startsWith("if-")),
    );
    const sent = request({ host: "127.0.0.1", port: to, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    from.pipe(sent);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: server.address().port, close: () => server.close() };
}
