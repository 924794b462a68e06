// Duty: serve --archive and db archive as processes: a server that is killed, its databases without clients, policies,
// and credentials that must not be told.

import assert from "node:assert/strict";
import { existsSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { contents, ended, folderOfTests, linesOf, openkv, outcomeOf, start } from "./running.mjs";
import { until } from "../kit/time.mjs";

const inFolder = folderOfTests();
const TOKEN = "an-admin-token-of-these-tests";

/** A server of a folder, and the commands on it. */
async function serveFolder(folder, ...more) {
  const args = ["serve", "--path", `${folder}/`, "--listen", "127.0.0.1:0", ...more];
  const child = start(args, { OPENKV_ADMIN_TOKEN: TOKEN });
  const log = { text: "" };
  child.stderr.on("data", (data) => (log.text += data));
  const url = (await linesOf(child, 1))[0].replace("listening on ", "");
  const on = (...words) =>
    openkv(...words, "--server", url, { env: { OPENKV_ADMIN_TOKEN: TOKEN } });
  const json = async (...words) => {
    const { code, out, err } = await on(...words, "--json");
    assert.equal(code, 0, err);
    return JSON.parse(out);
  };
  return { child, url, on, json, log };
}

async function restored(target, name) {
  const outcome = await openkv("restore", target, inFolder(name));
  assert.equal(outcome.code, 0, outcome.err);
  return contents(inFolder(name));
}

test("commits before a kill are archived by the next server, though no client comes", async () => {
  const [folder, to] = [inFolder("killed"), inFolder("killed-archives")];
  const args = ["--archive", to, "--archive-snapshot-every", "1h"];
  const first = await serveFolder(folder, ...args);
  const written = {};
  for (const name of ["shop", "mail"]) {
    const { token } = await first.json("db", "create", name);
    const kv = await openKv(`${first.url}/${name}`, { accessToken: token });
    for (let n = 0; n < 30; n++) await kv.set(["n", n], name);
    written[name] = 30;
    await kv.close();
  }
  first.child.kill("SIGKILL");
  await ended(first.child);
  const second = await serveFolder(folder, ...args);
  for (const name of ["shop", "mail"]) {
    await until(async () => (await second.json("db", "archive", name)).state === "idle");
    assert.equal((await restored(join(to, name), `${name}-restored`)).length, written[name]);
  }
  // Another process writes to a file that the server has closed: it is looked at once a minute, and at the end.
  assert.equal(await ended(second.child, "SIGTERM"), 0);
  const verified = await openkv("archive", "verify", join(to, "shop"), "--json");
  assert.equal(verified.code, 0, verified.err + verified.out);
});

test("db archive sets, prints and removes the policy of a database", async () => {
  const [folder, to] = [inFolder("policies"), inFolder("policies-archive")];
  const { child, on, json, url } = await serveFolder(folder);
  const { token } = await json("db", "create", "shop");
  assert.equal((await json("db", "archive", "shop")).state, "off");
  const kv = await openKv(`${url}/shop`, { accessToken: token });
  await kv.set(["a"], 1);
  const set = await json("db", "archive", "shop", "--to", to, "--retention", "90d");
  assert.deepEqual([set.by, set.to, set.retentionMs], ["policy", to, 90 * 86_400_000]);
  const shown = await until(async () => {
    const found = await json("db", "archive", "shop");
    return found.state === "running" && found.snapshots === 1 && found;
  });
  assert.equal(shown.error, null);
  assert.match((await on("db", "archive", "shop")).out, /^state +running$/m);
  const off = await json("db", "archive", "shop", "--off");
  assert.deepEqual([off.by, off.state], ["policy", "off"]);
  const removed = await json("db", "archive", "shop", "--default");
  assert.deepEqual([removed.by, removed.state], ["none", "off"]);
  await until(async () => {
    const { out } = await openkv("archive", "list", to, "--json");
    return JSON.parse(out).owner === null;
  });
  assert.deepEqual(await restored(to, "policies-restored"), [[["a"], 1]]);
  for (const [words, code, message] of [
    [["--to", to, "--off"], 2, /exclude each other/],
    [["--retention", "1d"], 2, /--retention is for a policy: give --to too/],
    [["--to", to, "--snapshot-every", "soon"], 2, /--snapshot-every must be a duration/],
    [["--to", "near"], 1, /absolute path or a URL/],
  ]) {
    const outcome = await on("db", "archive", "shop", ...words);
    assert.match(outcome.err, message);
    assert.equal(outcome.code, code, words.join(" "));
  }
  await kv.close();
  assert.equal(await ended(child, "SIGTERM"), 0);
});

test("credentials are in no answer, no log and no registry", async () => {
  const folder = inFolder("secret");
  const [key, secret] = ["id-of-the-credentials", "secret-of-the-credentials"];
  const args = ["serve", "--path", `${folder}/`, "--listen", "127.0.0.1:0", "--log", "text"];
  const child = start([...args, "--archive", "s3://bucket/here"], {
    OPENKV_ADMIN_TOKEN: TOKEN,
    AWS_ACCESS_KEY_ID: key,
    AWS_SECRET_ACCESS_KEY: secret,
    AWS_REGION: "us-east-1",
    AWS_ALLOW_HTTP: "true",
    // Nobody listens there.
    AWS_ENDPOINT_URL: "http://127.0.0.1:1",
  });
  let log = "";
  child.stderr.on("data", (data) => (log += data));
  const url = (await linesOf(child, 1))[0].replace("listening on ", "");
  const on = (...words) =>
    openkv(...words, "--server", url, "--json", { env: { OPENKV_ADMIN_TOKEN: TOKEN } });
  assert.equal((await on("db", "create", "shop")).code, 0);
  const refused = await on("db", "archive", "shop", "--to", `s3://${key}:${secret}@bucket/x`);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /credentials in the environment/);
  const shown = await on("db", "archive", "shop");
  assert.equal(JSON.parse(shown.out).to, "s3://bucket/here/shop");
  const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const all = [log, refused.out, refused.err, shown.out, await metrics.text()].join("\n");
  assert.ok(!all.includes(secret) && !all.includes(key), all);
  child.kill("SIGKILL");
  await ended(child);
});

test("serve refuses an archive that it cannot have", async () => {
  const mine = inFolder("mine");
  mkdirSync(mine);
  writeFileSync(join(mine, "precious"), "x");
  const on = ["serve", "--listen", "127.0.0.1:0", "--log", "none", "--path"];
  const [file, folder] = [inFolder("file.sqlite3"), `${inFolder("refused")}/`];
  const cases = [
    [[...on, file, "--archive", mine], 2, /is not empty and no archive/],
    [[...on, file, "--archive", "ftp://host/x"], 2, /is no place for an archive/],
    [[...on, folder, "--archive", "s3://me:secret-1@b/x"], 2, /credentials in the environment/],
    [[...on, folder, "--archive", join(mine, "precious")], 2, /is a file/],
    [[...on, file, "--archive-retention", "1d"], 2, /give --archive too/],
    [[...on, file, "--archive", mine, "--archive-retention", "x"], 2, /must be a duration/],
    [[...on, file, "--readonly", "--archive", mine], 2, /leave out --readonly/],
  ];
  for (const [args, code, message] of cases) {
    const child = start(args);
    const outcome = await outcomeOf(child);
    assert.match(outcome.err, message, args.join(" "));
    assert.doesNotMatch(outcome.err, /secret-1/);
    assert.equal(outcome.code, code, args.join(" "));
  }
  assert.equal(existsSync(inFolder("refused")), false);
});
