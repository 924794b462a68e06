// Duty: `openkv studio` as a new user runs it, up to the page in the browser that it has opened: on a
// file of openkv, on a file that Deno has made, and on the URL of a server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { MISSING, findChromium } from "../../__test__/kit/chromium.mjs";
import { until } from "../../__test__/kit/time.mjs";
import { openKv } from "../../index.mjs";
import { demo } from "./demo.mjs";
import { accessToken, served } from "./kit.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "openkv-command-"));
// Chromium may still write to its profile while it ends.
after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 }));
let count = 0;

/** A folder for PATH whose xdg-open is Chromium without a window, with a profile of its own. */
function desktop() {
  const program = findChromium();
  assert.ok(program, MISSING);
  const place = join(folder, String(count++));
  mkdirSync(place);
  const flags = "--headless=new --no-sandbox --disable-dev-shm-usage --remote-debugging-port=0";
  const script = `#!/bin/sh\necho $$ > "${place}/pid"\nexec "${program}" ${flags} --user-data-dir="${place}/profile" "$1"\n`;
  writeFileSync(join(place, "xdg-open"), script, { mode: 0o755 });
  return place;
}

/** Runs the command, and `run(page, child)` on the page that it opens. */
async function opening(args, run) {
  const place = desktop();
  const env = {
    ...{ ...process.env, BROWSER: "", DISPLAY: ":0" },
    PATH: `${place}${delimiter}${process.env.PATH}`,
  };
  const child = spawn(process.execPath, [join(root, "dist/cli/openkv.js"), "studio", ...args], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  // Chromium names its port, and the path of its debugger, in a file.
  const file = join(place, "profile", "DevToolsActivePort");
  const isThere = () => existsSync(file) && readFileSync(file, "utf8").includes("\n/");
  await until(isThere, "Chromium is open");
  const [port] = readFileSync(file, "utf8").split("\n");
  try {
    const browser = await connected(port);
    const [context] = browser.contexts();
    // The debugger may listen before the page is there.
    const page = context.pages()[0] ?? (await context.waitForEvent("page"));
    page.setDefaultTimeout(15_000);
    await run(page, child);
  } finally {
    endProcess(Number(readFileSync(join(place, "pid"), "utf8")));
    child.kill();
  }
}

/** How often a connection to the debugger is tried, and how long each try may take, in ms. */
const CONNECT_TRIES = 9;
const CONNECT_TRY_MS = 10_000;

/** The browser whose debugger listens on this port. It may not answer while it starts on a busy machine. */
async function connected(port) {
  for (let left = CONNECT_TRIES - 1; ; left--) {
    try {
      return await chromium.connectOverCDP(`http://127.0.0.1:${port}`, { timeout: CONNECT_TRY_MS });
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

function endProcess(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // It has ended by itself.
    if (error.code !== "ESRCH") throw error;
  }
}

/** Ends the command as Ctrl-C does, while the page has a stream open. */
async function interrupt(page, child) {
  await page.getByRole("link", { name: "Watch" }).click();
  await page.getByText("live").waitFor();
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [0, null]);
  await page.getByText("broken").waitFor();
}

test("a file of openkv is shown, and Ctrl-C ends the server under an open page", async () => {
  const path = join(folder, "ours.sqlite3");
  const kv = await openKv(path);
  await demo(kv);
  await kv.close();
  await opening([path], async (page, child) => {
    await page.locator(".tile").filter({ hasText: "Entries" }).getByText("350").waitFor();
    assert.equal(new URL(page.url()).hash, "#/");
    await page.getByRole("link", { name: "Entries" }).click();
    await page.getByRole("treeitem").filter({ hasText: '"users"' }).waitFor();
    await interrupt(page, child);
  });
});

test("a file that Deno has made is shown, and its values that only Deno reads are named", async () => {
  const path = join(folder, "deno.sqlite3");
  copyFileSync(join(root, "tests/vectors/files/deno.sqlite3"), path);
  await opening([path], async (page, child) => {
    await page.getByRole("link", { name: "Entries" }).click();
    const row = (name) => page.getByRole("treeitem").filter({ hasText: name });
    await row('"count"').click();
    await page.getByText("u64(41)").waitFor();
    await row('"only Deno"').click();
    await row('"Blob"').click();
    await page.getByText("Deno has stored a Blob without its contents").waitFor();
    await interrupt(page, child);
  });
});

test("the studio of a server is opened by its URL, with the token that is given", async () => {
  const { url } = await served(demo);
  await opening([url, "--token", accessToken], async (page, child) => {
    const ended = child.exitCode ?? (await once(child, "exit"))[0];
    assert.equal(ended, 0);
    await page.getByRole("link", { name: "Entries" }).click();
    await page.getByRole("treeitem").filter({ hasText: '"users"' }).waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0);
    assert.ok(!page.url().includes("token"));
  });
});
