// Duty: a server with a certificate: HTTP/2 and HTTP/1.1 by ALPN, nothing unencrypted. The
// certificate is for this test only, and valid for a hundred years.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { request } from "node:https";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { accessToken, serveFile } from "./serving.mjs";

const at = (name) => fileURLToPath(new URL(`tls/${name}.pem`, import.meta.url));
const tls = { cert: at("cert"), key: at("key") };
const ca = readFileSync(tls.cert);
const headers = { authorization: `Bearer ${accessToken}` };

async function body(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

test("HTTP/1.1 and HTTP/2 over TLS", async () => {
  const server = await serveFile({ tls });
  assert.equal(server.url, `https://127.0.0.1:${server.port}`);
  const asked = request(server.url, { method: "POST", headers, ca });
  asked.end();
  const [answer] = await once(asked, "response");
  assert.equal(answer.statusCode, 200);
  const metadata = JSON.parse(await body(answer));
  assert.equal(metadata.endpoints[0].url, `${server.url}/v2`);

  const session = connect(server.url, { ca });
  const stream = session.request({ ":method": "POST", ":path": "/", ...headers });
  stream.end('{"supportedVersions":[3]}');
  assert.equal(JSON.parse(await body(stream)).version, 3);
  session.close();

  await assert.rejects(fetch(server.url.replace("https:", "http:"), { method: "POST", headers }));
});

test("a key of another certificate is rejected by name", async () => {
  const wrong = serveFile({ tls: { cert: tls.cert, key: tls.cert } });
  await assert.rejects(wrong, { name: "TypeError", message: /tls\.key/ });
});
