// Duty: the URLs of PostgreSQL that openKv, serve and restore refuse before anything connects, and
// that none of their errors repeats a password.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openKv, restore, serve } from "../../index.mjs";
import { freePort } from "../kit/port.mjs";

const SECRET = "hunter2";
const LOGIN = `postgres://ada:${SECRET}@`;

/** Checks an error's kind and words, and that it has no password. */
function refusal(name, words, code) {
  return (error) => {
    assert.equal(error.name, name, error.stack);
    assert.equal(error.code, code);
    assert.match(error.message, words);
    assert.ok(!JSON.stringify([error.message, error.stack]).includes(SECRET), "a password is told");
    return true;
  };
}

describe("a bad URL is a TypeError without the password", () => {
  for (const [url, words] of [
    [`${LOGIN}localhost`, /no database of the server/],
    [`${LOGIN}/shop`, /no host/],
    ["postgres://", /no host/],
    [`${LOGIN}localhost/shop?pool=5`, /unknown parameter pool: known are kv, lead, sslmode, /],
    [`${LOGIN}localhost/shop?kv=`, /kv is a name of 1 to 255 bytes/],
    [`${LOGIN}localhost/shop?kv=${"n".repeat(256)}`, /kv is a name of 1 to 255 bytes/],
    [`${LOGIN}localhost/shop?sslmode=prefer`, /sslmode is disable, require or verify-full/],
    [`${LOGIN}localhost:x/shop`, /a port is a number from 1 to 65535/],
    [`${LOGIN}localhost/shop?sslmode=verify-full&sslrootcert=/absent`, /'\/absent' cannot be used/],
    [`POSTGRESQL://ada:${SECRET}@localhost/`, /no database of the server/],
    [`${LOGIN}one:1,two:x/shop`, /a port is/],
  ]) {
    const shown = url.length > 90 ? `${url.slice(0, 90)}…` : url;
    test(shown.replace(SECRET, "…"), async () => {
      await assert.rejects(openKv(url), refusal("TypeError", words, "INVALID"));
    });
  }

  test("a URL object", async () => {
    const url = new URL(`${LOGIN}localhost/shop?pool=5`);
    await assert.rejects(openKv(url), refusal("TypeError", /unknown parameter pool/, "INVALID"));
  });

  test("OPENKV_URL", async () => {
    const before = process.env.OPENKV_URL;
    process.env.OPENKV_URL = `${LOGIN}localhost/shop?pool=5`;
    try {
      await assert.rejects(openKv(), refusal("TypeError", /unknown parameter pool/, "INVALID"));
    } finally {
      if (before === undefined) delete process.env.OPENKV_URL;
      else process.env.OPENKV_URL = before;
    }
  });
});

describe("options", () => {
  for (const [name, value] of [
    ["accessToken", "token"],
    ["timeout", 5],
    ["signal", new AbortController().signal],
  ]) {
    test(`${name} is not for PostgreSQL`, async () => {
      const opened = openKv(`${LOGIN}localhost/shop`, { [name]: value });
      const words = new RegExp(`'${name}' is not for a database on PostgreSQL`);
      await assert.rejects(opened, refusal("TypeError", words));
    });
  }

  test("values are stored as CBOR only", async () => {
    const opened = openKv(`${LOGIN}localhost/shop`, { encoding: "v8" });
    const words = /^encoding "v8": a database on PostgreSQL stores values as CBOR/;
    await assert.rejects(opened, refusal("KvError", words, "UNSUPPORTED"));
  });
});

test("a server that does not answer is UNAVAILABLE", { timeout: 60_000 }, async () => {
  const port = await freePort();
  const opened = openKv(`${LOGIN}127.0.0.1:${port}/shop`, { busyTimeout: 1000 });
  await assert.rejects(opened, refusal("KvError", /PostgreSQL/, "UNAVAILABLE"));
});

describe("what needs a file", () => {
  const url = `${LOGIN}localhost/shop`;

  test("serve", async () => {
    const served = serve({ path: url, accessToken: "a" });
    const words = /^serve: not for a database on PostgreSQL/;
    await assert.rejects(served, refusal("KvError", words, "UNSUPPORTED"));
  });

  test("restore", async () => {
    const words = /^restore: not for a database on PostgreSQL/;
    await assert.rejects(restore("a.db", url), refusal("KvError", words, "UNSUPPORTED"));
  });
});
