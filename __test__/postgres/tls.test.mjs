// Duty: PostgreSQL with TLS: what each `sslmode` accepts and refuses, and that no error has the password.
//
// tls/ was made by `openssl` for a hundred years: ca.pem signs cert.pem, for localhost and 127.0.0.1,
// and elsewhere.pem, for db.example, both with key.pem. The key of ca.pem is lost.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";
import { startPostgres } from "../kit/postgres.mjs";
import { until } from "../kit/time.mjs";

const PASSWORD = "hunter2/s3cret";
const LOGIN = `ada:${encodeURIComponent(PASSWORD)}`;

const at = (name) => fileURLToPath(new URL(`tls/${name}.pem`, import.meta.url));
const read = (name) => readFileSync(at(name), "utf8");
const ROOT = encodeURIComponent(at("ca"));
/** A root that has signed nothing but itself. */
const OTHER_ROOT = encodeURIComponent(
  fileURLToPath(new URL("../server/tls/cert.pem", import.meta.url)),
);
const VERIFY = `&sslmode=verify-full&sslrootcert=${ROOT}`;

let server;
let plain;

before(async () => {
  server = await startPostgres({
    settings: { ssl: "on", password_encryption: "scram-sha-256" },
    files: {
      "server.crt": read("cert"),
      "server.key": read("key"),
      "pg_hba.conf": `host all postgres all trust\nhostssl all all all scram-sha-256\n`,
    },
  });
  await server.sql(`CREATE ROLE ada LOGIN PASSWORD '${PASSWORD}'`);
  await server.sql("GRANT CREATE ON DATABASE postgres TO ada");
  plain = await startPostgres();
});
after(() => {
  server.close();
  plain.close();
});

async function refusal(url, code, words) {
  const error = await openKv(url, { busyTimeout: 2000 }).then(
    async (kv) => {
      await kv.close();
      assert.fail(`${url} was opened`);
    },
    (error) => error,
  );
  assert.equal(error.code, code, `${error}`);
  for (const word of [].concat(words)) assert.match(error.message, word);
  for (const text of [error.message, error.stack, JSON.stringify(error)]) {
    assert.ok(!text.includes("hunter2"), "the error has the password");
  }
}

/** Whether the connections of a database's process are encrypted, as the server sees them. */
const encrypted = (name) =>
  server.sql(`SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE application_name = '${name}'`);

test("verify-full with the issuer's file connects and commits", async () => {
  for (const host of ["127.0.0.1", "localhost"]) {
    const name = `at ${host}`;
    const more = `${VERIFY}&application_name=${encodeURIComponent(name)}`;
    const url = server.url({ user: LOGIN, more }).replace("127.0.0.1", host);
    const kv = await openKv(url);
    const { ok } = await kv.atomic().set(["a"], 1).commit();
    assert.equal(ok, true);
    assert.equal((await kv.get(["a"])).value, 1);
    assert.equal(await encrypted(name), "t");
    await kv.close();
  }
});

test("a file of issuers is enough: sslmode is then verify-full, on this machine too", async () => {
  const kv = await openKv(
    server.url({ user: LOGIN, more: `&sslrootcert=${ROOT}&application_name=asked` }),
  );
  assert.equal(await encrypted("asked"), "t");
  await kv.close();
  const more = `&sslrootcert=${OTHER_ROOT}`;
  await refusal(server.url({ user: LOGIN, more }), "UNAVAILABLE", /not trusted/);
});

test("verify-full with the file of another issuer is refused", async () => {
  const more = `&sslmode=verify-full&sslrootcert=${OTHER_ROOT}`;
  const url = server.url({ user: LOGIN, more });
  await refusal(url, "UNAVAILABLE", [/certificate is not trusted/, /sslrootcert/]);
});

test("verify-full without the file is refused", async () => {
  const url = server.url({ user: LOGIN, more: "&sslmode=verify-full" });
  await refusal(url, "UNAVAILABLE", [/certificate is not trusted/, /sslrootcert/]);
});

test("a certificate for another host is refused by verify-full, and accepted by require", async (t) => {
  server.write("server.crt", read("elsewhere"));
  await server.reload();
  t.after(async () => {
    server.write("server.crt", read("cert"));
    await server.reload();
  });
  const url = server.url({ user: LOGIN, more: VERIFY });
  await until(async () => {
    const close = (kv) => kv.close();
    const error = await openKv(url, { busyTimeout: 2000 }).then(close, (error) => error);
    return /another host/.test(error?.message);
  }, "the server shows the other certificate");
  await refusal(url, "UNAVAILABLE", [/another host/, /db\.example/]);

  const kv = await openKv(
    server.url({ user: LOGIN, more: "&sslmode=require&application_name=any" }),
  );
  await kv.set(["a"], 1);
  assert.equal(await encrypted("any"), "t");
  await kv.close();
});

test("clear text is refused where pg_hba.conf has hostssl only", async () => {
  for (const more of ["&sslmode=disable", ""]) {
    const url = server.url({ user: LOGIN, more });
    await refusal(url, "DENIED", [/no encryption/, /sslmode=verify-full/]);
  }
});

test("a server without TLS is refused, and never spoken to in clear text", async () => {
  const before = plain.log();
  for (const more of [VERIFY, "&sslmode=require"]) {
    const url = plain.url({ user: LOGIN, more });
    await refusal(url, "UNAVAILABLE", [/does not support TLS/, /sslmode=disable/]);
  }
  assert.ok(!plain.log().slice(before.length).includes("ada"));
});

test("a wrong password is DENIED over TLS too", async () => {
  const user = `ada:${encodeURIComponent("hunter2/wrong")}`;
  await refusal(server.url({ user, more: VERIFY }), "DENIED", /password/);
});

test("the command line takes the same URL, and prints no password", async () => {
  const env = { OPENKV_URL: server.url({ user: LOGIN, more: VERIFY }) };
  assert.equal((await openkv("set", "a", "1", { env })).code, 0);
  assert.equal((await openkv("get", "a", { env })).out, "1\n");
  const untrusted = server.url({ user: LOGIN, more: `&sslrootcert=${OTHER_ROOT}` });
  const { code, out, err } = await openkv("get", "a", {
    env: { OPENKV_URL: untrusted, OPENKV_LOG: "trace" },
  });
  assert.equal(code, 1);
  assert.match(err, /not trusted/);
  assert.ok(!`${out}${err}`.includes("hunter2"), "the output has the password");
});
