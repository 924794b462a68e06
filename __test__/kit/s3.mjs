// Duty: a real S3-compatible server for tests, moto, and a proxy before it that answers 503, slowly, cut off,
// twice, or not at all.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonPrograms } from "./python.mjs";

export const SECRET = "a-secret-of-the-tests";
const requirements = fileURLToPath(new URL("../archive/requirements.txt", import.meta.url));

/** Starts moto on a free port. Installs it into target/moto, by the version in requirements.txt. */
export function startMoto() {
  const programs = pythonPrograms("moto", requirements);
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

export async function createBucket(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/bucket`, { method: "PUT" });
  assert.equal(answer.status, 200);
}

export function environment(port) {
  return {
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    AWS_ALLOW_HTTP: "true",
    AWS_ACCESS_KEY_ID: "tests",
    AWS_SECRET_ACCESS_KEY: SECRET,
    AWS_REGION: "us-east-1",
  };
}

/** A proxy that fails every second request, in one of four ways, while it is told to. */
export async function startProxy(to) {
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
