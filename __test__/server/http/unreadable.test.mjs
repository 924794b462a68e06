// Duty: values that only Deno can read, over the HTTP API: an error of their entry, beside the others.

import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { test } from "node:test";
import { connect, freshPath } from "../serving.mjs";
import { serveApi, TYPED } from "./calling.mjs";

const CBOR = "application/cbor";
const prefix = ["only Deno"];
const keys = ["A", "Blob", "CryptoKey", "Z"].map((name) => [...prefix, name]);

/** A file of Deno's, with a readable entry on both sides of the others. */
async function serveDenos() {
  const path = freshPath();
  copyFileSync(new URL("../../../tests/vectors/files/deno.sqlite3", import.meta.url), path);
  const { server, call } = await serveApi({ path });
  const kv = await connect(server);
  await kv.set([...prefix, "A"], 1);
  await kv.set([...prefix, "Z"], 26);
  return { kv, call };
}

function assertMarked(entries, { typed = false } = {}) {
  const value = (value) => (typed ? { type: "number", value } : value);
  assert.deepEqual(
    entries.map(({ value, valueError }) => value ?? valueError.code),
    [value(1), "CORRUPT", "CORRUPT", value(26)],
  );
  for (const { key, value, valueError, versionstamp } of entries) {
    assert.equal(key.length, 2);
    assert.match(versionstamp, /^[0-9a-f]{20}$/);
    assert.equal(value === undefined, valueError !== undefined);
    if (valueError) assert.match(valueError.detail, /known to Deno only|without its contents/);
  }
}

test("a page has the other entries, and marks those whose values cannot be read", async () => {
  const { kv, call } = await serveDenos();
  const encoded = encodeURIComponent(JSON.stringify(prefix));
  const polled = `/watch/poll?keys=${encodeURIComponent(JSON.stringify(keys))}`;
  const requests = [
    ["GET", `/keys?prefix=${encoded}`],
    ["GET", `/keys/paginate?prefix=${encoded}`],
    ["POST", "/keys/list", { body: { prefix } }],
    ["POST", "/keys/batch", { body: { keys } }],
    ["GET", polled],
  ];
  for (const [method, path, options] of requests) {
    const ask = (accept) => call(method, path, { ...options, headers: { accept } });
    const plain = await ask("application/json");
    assert.equal(plain.status, 200, path);
    assertMarked(plain.body.entries);
    const typed = await ask(TYPED);
    assertMarked(typed.body.entries, { typed: true });
    const cbor = await ask(CBOR);
    assert.equal(cbor.status, 200, path);
    assert.equal(cbor.bytes.toString("latin1").split("valueError").length - 1, 2, path);
    assert.ok(cbor.bytes.includes("CORRUPT"), path);
  }
  const { body } = await call("POST", "/keys/list", { body: { prefix, keysOnly: true } });
  assert.equal(body.entries.length, 4);
  assert.ok(body.entries.every((entry) => !("valueError" in entry)));
  await kv.close();
});

test("the entry alone is refused, and an export breaks off there", async () => {
  const { call } = await serveDenos();
  for (const accept of ["application/json", TYPED, CBOR]) {
    const { status, headers, body } = await call("GET", "/keys/only%20Deno/Blob", {
      headers: { accept },
    });
    assert.deepEqual([status, body.code], [422, "CORRUPT"]);
    assert.equal(headers.get("content-type"), "application/problem+json");
  }
  // The refusal of a write shows the entry as a page does.
  const refused = await call("PUT", "/keys/only%20Deno/Blob", {
    body: 1,
    type: "application/json",
    headers: { "if-none-match": "*" },
  });
  assert.deepEqual([refused.status, refused.body.entry.valueError.code], [412, "CORRUPT"]);
  const exported = call("GET", "/export?prefix=only%20Deno");
  await assert.rejects(exported.then(({ status }) => assert.equal(status, 200)));
});
