// Duty: openkv studio: the token of a run, the program that opens the browser, what it refuses.
// studio/test/command.test.mjs tries it with a browser.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePort } from "../kit/port.mjs";
import { until } from "../kit/time.mjs";
import { ended, folderOfTests, linesOf, openkv, start, withoutShell } from "./running.mjs";

const path = folderOfTests();

test("studio serves a file with a token of its own, until it is told to end", async () => {
  const db = path("studio.db");
  await openkv("-d", db, "set", "k", "1");
  const child = start(["studio", db, "--no-open"]);
  const [printed] = await linesOf(child, 1);
  const [, url, token] = /^(http:\/\/127\.0\.0\.1:\d+)\/#token=([\w-]{43})$/.exec(printed);
  const get = (authorization) => fetch(`${url}/api/keys/k`, { headers: { authorization } });
  assert.equal((await get(`Bearer ${token}`)).status, 200);
  assert.equal((await get("Bearer another-token-of-somebody")).status, 401);
  const page = await fetch(url, { headers: { accept: "text/html" } });
  assert.match(page.headers.get("content-security-policy"), /^default-src 'none'/);
  const [opened] = await linesOf(
    start(["studio", `${url}/`, "--token", token, "--no-open", "--json"]),
    1,
  );
  assert.deepEqual(JSON.parse(opened), { url: `${url}/#/?token=${token}` });
  assert.equal(await ended(child, "SIGINT"), 0);
});

test("a studio that is not built says so in the terminal, and how to build it", async () => {
  // As a checkout is before `npm run build:studio`: the built JavaScript without its studio.
  const root = path("checkout");
  const from = fileURLToPath(new URL("../../", import.meta.url));
  mkdirSync(root);
  cpSync(join(from, "dist"), join(root, "dist"), {
    recursive: true,
    filter: (name) => !name.endsWith(join("dist", "studio")),
  });
  for (const name of ["package.json", "index.cjs", "index.mjs"])
    copyFileSync(join(from, name), join(root, name));
  symlinkSync(join(from, "node_modules"), join(root, "node_modules"));
  const db = path("unbuilt.db");
  await openkv("-d", db, "set", "k", "1");
  for (const [given, isSaid] of [
    [["studio", db, "--no-open"], true],
    [["serve", "--path", db, "--listen", "127.0.0.1:0"], true],
    [["serve", "--path", db, "--listen", "127.0.0.1:0", "--no-studio"], false],
  ]) {
    const child = spawn(process.execPath, [join(root, "dist/cli/openkv.js"), ...given]);
    let err = "";
    child.stderr.on("data", (data) => (err += data));
    await linesOf(child, 1);
    assert.equal(await ended(child, "SIGINT"), 0);
    assert.equal(/npm run build:studio/.test(err), isSaid, `${given[0]}: ${err}`);
  }
});

test("studio refuses what it cannot show", async () => {
  mkdirSync(path("studio-folder"));
  for (const [place, words] of [
    [path("none.db"), /does not exist/],
    [path("studio-folder"), /is a folder/],
    [":memory:", /opens a file or the URL/],
    // It was said to have its studio off.
    [
      `http://127.0.0.1:${await freePort()}`,
      /cannot be reached: .*ECONNREFUSED.*does the server run/,
    ],
  ]) {
    const { code, err } = await openkv("studio", place, "--no-open");
    assert.notEqual(code, 0, place);
    assert.match(err, words);
  }
});

/** A folder for PATH with programs: of each its name and what its shell script does. */
function programs(name, scripts) {
  const folder = path(name);
  mkdirSync(folder);
  for (const [program, text] of Object.entries(scripts))
    writeFileSync(`${folder}/${program}`, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return folder;
}

/** Runs the command until it has said all that it says, and returns that. */
async function told(db, env) {
  const child = start(["studio", db], { BROWSER: "", DISPLAY: "", WAYLAND_DISPLAY: "", ...env });
  let err = "";
  child.stderr.on("data", (data) => (err += data));
  const [url] = await linesOf(child, 1);
  await until(() => err.includes("Ctrl-C ends it"), "the note how to end it");
  return { child, url, err: () => err };
}

test("studio opens the browser of the desktop", { skip: withoutShell }, async () => {
  const db = path("opened.db");
  await openkv("-d", db, "set", "k", "1");
  const opened = path("opened.txt");
  const PATH = programs("desktop", { "xdg-open": `echo "$@" >${opened}` });
  const { child, url, err } = await told(db, { PATH, DISPLAY: ":0" });
  await until(() => existsSync(opened) && readFileSync(opened, "utf8") === `${url}\n`, "open");
  assert.equal(await ended(child, "SIGINT"), 0);
  assert.ok(!err().includes("no browser"), err());
});

test("studio opens the first browser of BROWSER that works", { skip: withoutShell }, async () => {
  const db = path("browser.db");
  await openkv("-d", db, "set", "k", "1");
  const opened = path("browser.txt");
  const PATH = programs("browsers", { bad: "exit 1", good: `echo "$@" >${opened}` });
  const { child, url } = await told(db, { PATH, BROWSER: "absent:bad:good --new" });
  await until(
    () => existsSync(opened) && readFileSync(opened, "utf8") === `--new ${url}\n`,
    "open",
  );
  assert.equal(await ended(child, "SIGTERM"), 0);
});

test("studio says so where it can open no browser", { skip: withoutShell }, async () => {
  const db = path("nowhere.db");
  await openkv("-d", db, "set", "k", "1");
  const PATH = programs("without", { "xdg-open": `touch ${path("called.txt")}` });
  const SSH_CONNECTION = "192.0.2.1 50000 192.0.2.2 22";
  for (const env of [{ PATH }, { PATH: path("empty"), DISPLAY: ":0", SSH_CONNECTION }]) {
    const { child, url, err } = await told(db, env);
    const note = "no browser could be opened here: open the URL yourself";
    await until(() => err().includes(note), note);
    const { port } = new URL(url);
    const isRemote = env.SSH_CONNECTION !== undefined;
    assert.equal(err().includes(`ssh -L ${port}:127.0.0.1:${port}`), isRemote, err());
    assert.equal(await ended(child, "SIGINT"), 0);
  }
  assert.ok(!existsSync(path("called.txt")), "without a desktop xdg-open is left alone");
});

test("studio without a place asks for one", async () => {
  mkdirSync(path("new-project"));
  const { code, err } = await openkv("studio", { cwd: path("new-project") });
  assert.equal(code, 1);
  assert.match(err, /does not exist: name a file or URL, as in openkv studio app\.sqlite3/);
});
