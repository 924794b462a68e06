// Duty: a branch with very many children opens at once and scrolls to any place.
// STUDIO_CHILDREN chooses how many; a run of the CI has fewer than the million of the full test.

import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { onPage, served } from "./kit.mjs";

const CHILDREN = Number(process.env.STUDIO_CHILDREN ?? 50_000);
const COMMIT_ENTRIES = 500;
/** Rows that may be in the page: those in view, and some around them. */
const ROWS_MAX = 200;

async function fill(kv) {
  for (let i = 0; i < CHILDREN; i += COMMIT_ENTRIES) {
    const operation = kv.atomic();
    for (let j = i; j < Math.min(i + COMMIT_ENTRIES, CHILDREN); j++)
      operation.set(["many", j], { n: j });
    await operation.commit();
  }
}

test("many siblings are loaded as they are scrolled to, and few of them are in the page", async (t) => {
  const { url } = await served(fill, {}, { limits: "wide", durability: "normal" });
  await onPage(url, { hash: "/entries" }, async (page) => {
    const branch = page.getByRole("treeitem", { name: /"many"/ });
    await branch.waitFor();
    const begun = performance.now();
    await branch.click();
    await page.getByRole("treeitem", { name: "20", exact: true }).waitFor();
    t.diagnostic(`opened in ${Math.round(performance.now() - begun)} ms`);
    await page.getByText(CHILDREN.toLocaleString("en")).waitFor();
    const tree = page.getByRole("tree");
    // Each step goes to the end of what is loaded.
    const wanted = Math.min(CHILDREN - 1, 20_000);
    for (let last = 0; last < wanted; ) {
      await tree.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      const shown = await page.getByRole("treeitem").allTextContents();
      assert.ok(shown.length < ROWS_MAX, `${shown.length} rows`);
      last = Math.max(last, ...shown.map((text) => Number(text.trim())).filter(Number.isFinite));
    }
    await tree.focus();
    await page.keyboard.press("Home");
    await branch.waitFor();
  });
});

test("a prefix leads into the midst, and a list begins at the end", async () => {
  const { url } = await served(fill, {}, { limits: "wide", durability: "normal" });
  const middle = Math.floor(CHILDREN / 2);
  await onPage(url, { hash: `/entries?form=list&prefix=many&order=last` }, async (page) => {
    await page.getByText(`{ n: ${CHILDREN - 1} }`).waitFor();
    await page.goto(`${url}/#/entries?key=${encodeURIComponent(`["many", ${middle}]`)}`);
    await page.getByRole("region", { name: "Entry" }).getByText(`{ n: ${middle} }`).waitFor();
  });
});
