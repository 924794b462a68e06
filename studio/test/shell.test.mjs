// Duty: the frame of the studio: token, deep links, theme, keys, the policy of the page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { accessToken, onPage, readToken, served, servedFolder } from "./kit.mjs";

/** Runs the first command of the palette that these words find. */
async function runCommand(page, words) {
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Command palette" });
  await palette.getByRole("combobox").fill(words);
  await palette.getByRole("option", { selected: true, name: new RegExp(words, "i") }).waitFor();
  await page.keyboard.press("Enter");
}

test("a page with a token in its fragment opens, and the token leaves the address", async () => {
  const { url } = await served();
  await onPage(url, { hash: "/entries" }, async (page) => {
    await page.getByRole("heading", { level: 1, name: "Entries" }).waitFor();
    assert.equal(new URL(page.url()).hash, "#/entries");
    const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
    assert.ok(!stored.includes(accessToken));
    assert.equal(await page.evaluate(() => document.cookie), "");
  });
});

test("a link with a token that is followed in an open page answers the question for it", async () => {
  const { url } = await served();
  await onPage(url, { token: null, allow: [/401/, /403/] }, async (page) => {
    const question = page.getByLabel("A token of the database");
    await question.waitFor();
    for (const [token, isReadOnly] of [
      [accessToken, 0],
      [readToken, 1],
      [accessToken, 0],
    ]) {
      await page.goto(`${url}/#/entries?form=list&token=${token}`);
      await page
        .getByText("read-only", { exact: true })
        .nth(0)
        .waitFor({
          state: isReadOnly ? "attached" : "detached",
        });
      await page.getByText("There are no entries here.").waitFor();
      assert.equal(new URL(page.url()).hash, "#/entries?form=list");
      assert.equal(await question.count(), 0);
    }
  });
});

test("without a token the page asks for one, and again after a wrong one", async () => {
  const { url } = await served();
  await onPage(url, { token: null, allow: [/401/] }, async (page) => {
    const field = page.getByLabel("A token of the database");
    await field.fill("wrong-wrong-wrong");
    await field.press("Enter");
    await page.getByText("does not accept this token").waitFor();
    await field.fill(accessToken);
    await field.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await page.getByText("read-only").count(), 0);
  });
});

test("a token that may only read makes the page read-only", async () => {
  const { url } = await served();
  await onPage(url, { token: readToken, allow: [/403/] }, async (page) => {
    await page.getByText("read-only", { exact: true }).waitFor();
  });
});

test("a question for a token that is closed is not asked again", async () => {
  const { url } = await served();
  await onPage(url, { hash: "/metrics", token: null, allow: [/401/] }, async (page) => {
    const dialog = page.getByRole("dialog", { name: "Access token" });
    await dialog.waitFor();
    await page.clock.install();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.clock.runFor(60_000);
    assert.equal(await dialog.count(), 0);
  });
});

test("what the next token may do is asked for when a token is forgotten", async () => {
  const { url } = await served();
  await onPage(url, { allow: [/401/, /403/] }, async (page) => {
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await runCommand(page, "forget");
    await page.getByLabel("A token of the database").fill(readToken);
    await page.keyboard.press("Enter");
    await page.getByText("read-only", { exact: true }).waitFor();
  });
});

test("an answer about a forgotten token says nothing of the next one", async () => {
  const { url } = await served();
  await onPage(url, { token: null, allow: [/401/, /403/] }, async (page) => {
    let answer;
    const answering = new Promise((resolve) => {
      answer = resolve;
    });
    const answerLate = async (route) => {
      await answering;
      await route.continue();
    };
    await page.goto("about:blank");
    await page.route("**/api/rights", answerLate, { times: 1 });
    const asked = page.waitForRequest("**/api/rights");
    await page.goto(`${url}/#/?token=${accessToken}`);
    const request = await asked;
    await runCommand(page, "forget");
    const field = page.getByLabel("A token of the database");
    await field.waitFor();
    const answered = page.waitForResponse((response) => response.request() === request);
    answer();
    await answered;
    await field.fill(readToken);
    await field.press("Enter");
    await page.getByText("read-only", { exact: true }).waitFor();
  });
});

test("an address that is malformed opens the page", async () => {
  const server = await servedFolder();
  await onPage(server.url, { hash: "/@%zz/entries", token: null, allow: [/401/] }, async (page) => {
    await page.getByLabel("A token of the database %zz").waitFor();
  });
});

test("keys lead to the views, to the palette and to the list of keys", async () => {
  const { url } = await served();
  await onPage(url, {}, async (page) => {
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("e");
    await page.getByRole("heading", { level: 1, name: "Entries" }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await runCommand(page, "overview");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
});

test("the theme is the system's until another is chosen", async () => {
  const { url } = await served();
  await onPage(url, { colorScheme: "dark" }, async (page) => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await page.getByRole("button", { name: "Theme: system" }).waitFor();
    assert.equal(await theme(), "dark");
    await page.getByRole("button", { name: "Theme: system" }).click();
    await page.getByRole("button", { name: "Theme: light" }).waitFor();
    assert.equal(await theme(), "light");
  });
});

test("the policy keeps inline scripts and other origins out", async () => {
  const { url } = await served();
  await onPage(url, { allow: [/Content Security Policy/, /another origin/] }, async (page) => {
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    const ran = await page.evaluate(async () => {
      const script = document.createElement("script");
      script.textContent = "globalThis.ran = true";
      document.body.append(script);
      const fetched = await fetch("http://127.0.0.1:9/").then(
        () => true,
        () => false,
      );
      return [globalThis.ran === true, fetched];
    });
    assert.deepEqual(ran, [false, false]);
  });
});
