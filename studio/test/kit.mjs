// Duty: a server, Chromium, and a page on it, for the tests of the studio.
// Invariant: a test fails if its page has logged an error, thrown one, or broken the policy of the page.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { openKv, serve } from "../../index.mjs";
import { MISSING, findChromium } from "../../__test__/kit/chromium.mjs";
import { guard } from "../../__test__/kit/time.mjs";

export const accessToken = "a token that writes".replaceAll(" ", "-");
export const readToken = "a token that reads".replaceAll(" ", "-");
export const adminToken = "a token of the admin".replaceAll(" ", "-");

/** Where screenshots of the views are written. */
export const shots = fileURLToPath(new URL("../../target/studio-shots/", import.meta.url));
mkdirSync(shots, { recursive: true });

const folder = mkdtempSync(join(tmpdir(), "openkv-studio-"));
let count = 0;
let browser;
const ending = [];

after(async () => {
  await browser?.close();
  for (const end of ending.reverse()) await end();
  rmSync(folder, { recursive: true, force: true });
});

/** A database of its own, filled by `seed(kv)`, and its server. */
export async function served(seed = async () => {}, options = {}, opening = {}) {
  const path = join(folder, `${count++}.sqlite3`);
  const kv = await openKv(path, opening);
  ending.push(() => kv.close());
  await seed(kv);
  const server = await serve({ path, listen: "127.0.0.1:0", accessToken, readToken, ...options });
  ending.push(() => server.close());
  /** Serves the database again, at the same address. */
  const restart = async () => {
    const { host } = new URL(server.url);
    const again = await serve({ path, listen: host, accessToken, readToken, ...options });
    ending.push(() => again.close());
  };
  return { kv, server, url: server.url, path, restart };
}

/** A server of many databases. */
export async function servedFolder() {
  const path = join(folder, `${count++}/`);
  mkdirSync(path);
  const server = await serve({ path, listen: "127.0.0.1:0", adminToken });
  ending.push(() => server.close());
  return server;
}

/**
 * A page in a browser profile of its own. `allow` has patterns of console errors that the test expects, such
 * as answers of the server that say no.
 */
export async function open(url, { hash = "/", token = accessToken, allow = [], ...more } = {}) {
  const executablePath = findChromium();
  assert.ok(executablePath, MISSING);
  browser ??= await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...more });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const faults = [];
  page.on("pageerror", (error) => faults.push(`thrown: ${error.stack}`));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`${message.text()} ${message.location().url}`);
  });
  page.on("request", (request) => {
    const asked = new URL(request.url());
    if (!["blob:", "data:"].includes(asked.protocol) && asked.origin !== new URL(url).origin)
      faults.push(`asked another origin: ${request.url()}`);
    if (request.url().includes("token=")) faults.push(`a token in a URL: ${request.url()}`);
  });
  const end = token === null ? "" : `${hash.includes("?") ? "&" : "?"}token=${token}`;
  await page.goto(`${url}/#${hash}${end}`);
  return {
    page,
    context,
    async end() {
      await context.close();
      const unexpected = faults.filter((fault) => !allow.some((pattern) => pattern.test(fault)));
      assert.deepEqual(unexpected, []);
    },
  };
}

/** Runs a test on a page, and checks the page afterwards. */
export async function onPage(url, options, run) {
  const { page, context, end } = await open(url, options);
  try {
    await run(page, context);
  } catch (error) {
    await page.screenshot({ path: join(shots, "failed.png") }).catch(() => {});
    await end().catch((faults) => {
      error.message += `\nThe page: ${faults.message}`;
    });
    throw error;
  }
  await end();
}

/**
 * Holds the first request of a page that has this method and this part in its URL; with `isAnswered` its answer, which
 * the server has given by then. `json` answers it in place of the server.
 */
export async function hold(page, method, part, { isAnswered = false, json } = {}) {
  let held;
  let letGo;
  let begin;
  let end;
  const asked = new Promise((resolve) => (begin = resolve));
  const released = new Promise((resolve) => (letGo = resolve));
  const ended = new Promise((resolve) => (end = resolve));
  // A request whose body the page does not read has no end.
  page.on("response", (response) => response.request() === held && end());
  page.on("requestfailed", (request) => request === held && end());
  await page.route("**", async (route) => {
    const request = route.request();
    const isOther = request.method() !== method || !request.url().includes(part);
    if (held !== undefined || isOther) return route.fallback();
    held = request;
    const answer = isAnswered ? { response: await route.fetch() } : json && { json };
    begin(request);
    await released;
    // The page may have given the request up.
    await (answer ? route.fulfill(answer) : route.continue()).catch(() => {});
  });
  const heldOne = guard(asked, 15_000, `${method} ${part}`);
  heldOne.catch(() => {});
  return {
    asked: heldOne,
    /** Lets the request go on, until the page has shown what it shows of the answer. */
    async release() {
      await heldOne;
      letGo();
      await guard(ended, 15_000, `the end of ${method} ${part}`);
      await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => setTimeout(done))),
      );
    },
  };
}

/** Writes a screenshot of a view. */
export async function shoot(page, name) {
  await page.screenshot({ path: join(shots, `${name}.png`) });
}
