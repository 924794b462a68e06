// Duty: full-text indexes and queries; export and import.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { hold, onPage, readToken, served, shoot } from "./kit.mjs";

const PRODUCTS = [
  ["p1", { name: "Mountain bike", about: "A bike for <b>rough</b> ground", price: 900 }],
  ["p2", { name: "City bike", about: "With a basket", price: 400 }],
  ["p3", { name: "Helmet", about: "For every bike", price: 40 }],
  ["p4", { name: "Bell", about: "Loud", price: 9 }],
];

async function shop(kv) {
  for (const [id, value] of PRODUCTS) await kv.set(["products", id], value);
}

test("an index is created, queried with a filter and dropped", async () => {
  const { url, kv } = await served(shop);
  await onPage(url, { hash: "/search" }, async (page) => {
    await page.getByText("There are no indexes.").waitFor();
    const form = page.getByRole("form", { name: "New index" });
    await form.getByLabel("Prefix").fill("products");
    await form.getByLabel("Fields").fill("name, about");
    await form.getByRole("button", { name: "Create the index" }).click();
    await page.getByText("ready", { exact: true }).waitFor();
    await page.getByLabel("Words").fill("bike");
    await page.getByRole("button", { name: "Search" }).click();
    const hits = page.getByRole("list", { name: "Hits" }).getByRole("listitem");
    await hits.nth(2).waitFor();
    assert.equal(await hits.count(), 3);
    assert.equal(await page.locator("mark").first().textContent(), "bike");
    // The markup of the value is text, beside the mark that is not.
    await page.getByText("<b>rough</b>").waitFor();
    await shoot(page, "search");
    await page.getByLabel("Filter").fill("{ price: { $lt: 100 } }");
    await page.getByRole("button", { name: "Search" }).click();
    await hits.nth(1).waitFor({ state: "detached" });
    assert.match(await hits.first().textContent(), /"p3"/);
    await page.getByRole("button", { name: /^Drop the index/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Drop", exact: true }).click();
    await page.getByText("There are no indexes.").waitFor();
    assert.deepEqual(await kv.listIndexes(), []);
  });
});

test("a value index is created, explains a list and is dropped", async () => {
  const { url, kv } = await served(shop);
  await onPage(url, { hash: "/search" }, async (page) => {
    const form = page.getByRole("form", { name: "New index" });
    await form.getByLabel("Type").selectOption("values");
    await form.getByLabel("Prefix").fill("products");
    await form.getByLabel("Fields").fill("price, -name");
    await form.getByLabel("unique").check();
    await form.getByRole("button", { name: "Create the index" }).click();
    await page.getByText("(values, unique)").waitFor();
    await page.getByText("ready", { exact: true }).waitFor();
    const [{ on, unique }] = await kv.listIndexes();
    assert.deepEqual(
      [on.map(({ path, order }) => `${path} ${order}`), unique],
      [["price asc", "name desc"], true],
    );
    const where = encodeURIComponent("{ price: { $lt: 100 } }");
    await page.goto(`${url}/#/entries?prefix=products&form=list&where=${where}`);
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText(/to 100.*2 visited, 0 left out, 2 returned/).waitFor();
    await shoot(page, "explain");
    await page.goto(`${url}/#/entries?prefix=products&form=list`);
    await page.getByText(/to 100/).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("scan: 4 visited, 0 left out, 4 returned").waitFor();
    await page.goto(`${url}/#/search`);
    await page.getByRole("button", { name: /^Drop the index/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Drop", exact: true }).click();
    await page.getByText("There are no indexes.").waitFor();
    assert.deepEqual(await kv.listIndexes(), []);
  });
});

test("an explanation that comes late is not shown under another list", async () => {
  const { url } = await served(shop);
  await onPage(url, { hash: "/entries?prefix=products&form=list" }, async (page) => {
    const rows = page.getByRole("list", { name: "Entries" }).getByRole("listitem");
    await rows.nth(3).waitFor();
    let hold;
    const held = new Promise((resolve) => {
      hold = resolve;
    });
    await page.route("**/keys/explain", hold, { times: 1 });
    await page.getByRole("button", { name: "Explain" }).click();
    const late = await held;
    const where = encodeURIComponent("{ price: { $lt: 100 } }");
    await page.goto(`${url}/#/entries?prefix=products&form=list&where=${where}`);
    await rows.nth(2).waitFor({ state: "detached" });
    await rows.nth(1).waitFor();
    const arrived = page.waitForResponse("**/keys/explain");
    await late.continue();
    await (await arrived).finished();
    // What the page has shown of an answer is there a frame later.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    assert.equal(await page.getByLabel("Explanation").count(), 0);
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("4 visited, 2 left out, 2 returned").waitFor();
  });
});

test("the hits are those of the newest query", async () => {
  const { url } = await served(async (kv) => {
    await shop(kv);
    await (await kv.createIndex({ prefix: ["products"], fields: ["name"] })).ready();
  });
  await onPage(url, { hash: "/search" }, async (page) => {
    const search = async (words) => {
      await page.getByLabel("Words").fill(words);
      await page.getByRole("button", { name: "Search" }).click();
    };
    await page.getByLabel("Words").waitFor();
    const held = await hold(page, "POST", "/api/search");
    await search("helmet");
    await held.asked;
    await search("bell");
    const hits = page.getByRole("list", { name: "Hits" });
    await hits.getByText('"p4"').waitFor();
    await held.release();
    assert.equal(await hits.getByText('"p3"').count(), 0);
    await hits.getByText('"p4"').waitFor();
  });
});

test("a failed index says whether two entries or one value made it fail", async () => {
  const { url } = await served(async (kv) => {
    await kv
      .atomic()
      .set(["a", 1], { n: 1 })
      .set(["a", 2], { n: 1 })
      .set(["b", 1], { n: [] })
      .commit();
    for (const prefix of [["a"], ["b"]]) {
      const index = await kv.createIndex({ type: "value", prefix, on: "n", unique: true });
      await assert.rejects(index.ready());
    }
  });
  await onPage(url, { hash: "/search" }, async (page) => {
    await page.getByText("failed: two entries have one value").waitFor();
    await page.getByText("failed: a value cannot be unique").waitFor();
  });
});

test("entries are exported to a file and imported from it", async () => {
  const { url } = await served(shop);
  const other = await served();
  let file;
  await onPage(url, { hash: "/entries?prefix=products" }, async (page) => {
    await page.getByRole("treeitem").nth(3).waitFor();
    const saved = page.waitForEvent("download");
    await page.evaluate(() => {
      globalThis.showSaveFilePicker = undefined;
    });
    await page.getByRole("button", { name: "Export" }).click();
    file = await (await saved).path();
    assert.equal(readFileSync(file, "utf8").trim().split("\n").length, PRODUCTS.length);
    // A browser with a dialog for files has the bytes written as they come.
    const written = await page.evaluate(async () => {
      const { readable, writable } = new TransformStream();
      globalThis.showSaveFilePicker = async () => ({ createWritable: async () => writable });
      document.querySelector("button[aria-label=Export]").click();
      return new Response(readable).text();
    });
    assert.equal(written, readFileSync(file, "utf8"));
    await other.kv.set(["copy", "products", "p1"], "was there");
    const text = readFileSync(file);
    await onPage(other.url, { hash: "/entries" }, async (second) => {
      await second.getByRole("button", { name: "Import" }).click();
      const dialog = second.getByRole("dialog", { name: "Import" });
      const content = { name: "openkv.ndjson", mimeType: "application/x-ndjson", buffer: text };
      await dialog.locator("input[type=file]").setInputFiles(content);
      await dialog.getByLabel("Put in front of every key").fill("copy");
      await dialog.getByRole("button", { name: "Import" }).click();
      await second.getByText("Imported 3, skipped 1").waitFor();
    });
  });
  assert.equal((await other.kv.get(["copy", "products", "p1"])).value, "was there");
  assert.deepEqual((await other.kv.get(["copy", "products", "p2"])).value, PRODUCTS[1][1]);
});

test("a file with a fault says where it is", async () => {
  const { url, kv } = await served();
  await onPage(url, { hash: "/entries", allow: [/400/] }, async (page) => {
    await page.getByRole("button", { name: "Import" }).click();
    const dialog = page.getByRole("dialog", { name: "Import" });
    const lines =
      '{"key":[{"type":"string","value":"a"}],"value":{"type":"null","value":null}}\noops\n';
    const content = { name: "x.ndjson", mimeType: "text/plain", buffer: Buffer.from(lines) };
    await dialog.locator("input[type=file]").setInputFiles(content);
    await dialog.getByRole("button", { name: "Import" }).click();
    await dialog.getByText(/line 2/i).waitFor();
    assert.equal((await kv.get(["a"])).value, null);
  });
});

test("a token that may only read searches and exports, and nothing more", async () => {
  const { url } = await served(async (kv) => {
    await shop(kv);
    await kv.createIndex({ prefix: ["products"], fields: ["name"] });
  });
  const options = { hash: "/search", token: readToken, allow: [/403/] };
  await onPage(url, options, async (page) => {
    await page.getByText("read-only", { exact: true }).waitFor();
    await page.getByLabel("Words").fill("helmet");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("list", { name: "Hits" }).getByText('"p3"').waitFor();
    for (const name of [/^Drop the index/, "Create the index"])
      assert.equal(await page.getByRole("button", { name }).isDisabled(), true);
    await page.goto(`${url}/#/entries`);
    await page.getByRole("button", { name: "Import" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Import" }).isDisabled(), true);
  });
});
