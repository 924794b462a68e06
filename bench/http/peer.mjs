// The peer of bench/http.mjs: a server of node:http over `openKv` in its process, as a program would write
// it, with the routes that are measured. Prints its URL; its argument is `{ path, accessToken }`.

import { createServer } from "node:http";
import process from "node:process";
import { openKv } from "../../index.mjs";

const { path, accessToken } = JSON.parse(process.argv[2]);
const kv = await openKv(path);
const authorization = `Bearer ${accessToken}`;
const PREFIX = "/api/keys/";

const server = createServer((request, response) => {
  answer(request).then(
    ([status, body, headers]) => send(response, status, body, headers),
    (error) => send(response, 400, { error: error.message }),
  );
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));

async function answer(request) {
  if (request.headers.authorization !== authorization) return [401, { error: "wrong token" }];
  const { pathname } = new URL(request.url, "http://localhost");
  if (!pathname.startsWith(PREFIX)) return [404, { error: "no such route" }];
  const key = pathname.slice(PREFIX.length).split("/").map(decodeURIComponent);
  if (request.method === "GET") {
    const { value, versionstamp } = await kv.get(key);
    if (versionstamp === null) return [404, { error: "no entry" }];
    return [200, { key, value, versionstamp }, { etag: `"${versionstamp}"` }];
  }
  if (request.method !== "PUT") return [405, { error: "no such method" }];
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const value = JSON.parse(Buffer.concat(pieces).toString());
  const { ok, versionstamp } = await kv.set(key, value);
  return [200, { ok, versionstamp }, { etag: `"${versionstamp}"` }];
}

function send(response, status, body, headers = {}) {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    ...headers,
  });
  response.end(text);
}
