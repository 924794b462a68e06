// Duty: every view without violations of axe in both themes, and without a scroll bar across at 360 px.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { demo } from "./demo.mjs";
import { adminToken, onPage, served, servedFolder, shoot } from "./kit.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The views, what shows that each is there, and what is pressed then. */
const VIEWS = [
  ["overview", "Slow operations"],
  ["entries", '"users"'],
  ['entries?key=["users","ada"]', "Versionstamp"],
  ['entries?key=["images","logo"]', "89 50 4e 47"],
  ["entries?form=list&prefix=users", "User 1"],
  ["queues", "There are no dead letters."],
  ["search", "There are no indexes."],
  ["watch", "Changes appear here"],
  ["atomic", "Mutations"],
  ["metrics", "Operations, times in ms"],
];

async function violations(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  });
  return found;
}

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing in any view, ${colorScheme}`, async () => {
    const { url } = await served(demo);
    await onPage(url, { colorScheme }, async (page) => {
      for (const [hash, text] of VIEWS) {
        await page.goto(`${url}/#/${hash}`);
        await page.getByText(text).first().waitFor();
        assert.deepEqual(await violations(page), [], `${hash} ${colorScheme}`);
      }
      await page.goto(`${url}/#/entries?key=["users","ada"]`);
      await page.getByRole("group", { name: "Form of the value" }).getByText("Tree").click();
      await page.getByLabel("Value name", { exact: true }).fill('"Ada"');
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: /^Save/ }).waitFor();
      assert.deepEqual(await violations(page), [], `a changed tree ${colorScheme}`);
      await page.goto(`${url}/#/entries`);
      await page.getByText('"users"').waitFor();
      if (colorScheme === "dark") await shoot(page, "entries-dark");
      await page.getByRole("button", { name: "Import" }).click();
      await page.getByRole("dialog", { name: "Import" }).waitFor();
      assert.deepEqual(await violations(page), [], `import ${colorScheme}`);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      for (const key of ["?", "Control+k", "n"]) {
        await page.keyboard.press(key);
        await page.getByRole("dialog").waitFor();
        assert.deepEqual(await violations(page), [], `dialog of ${key} ${colorScheme}`);
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
    });
  });
}

test("axe finds nothing in the list of databases", async () => {
  const server = await servedFolder();
  await onPage(server.url, { token: adminToken }, async (page) => {
    await page.getByLabel("Name of a new database").fill("shop");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("region", { name: "Database shop" }).waitFor();
    assert.deepEqual(await violations(page), []);
  });
});

test("no view is wider than 360 px", async () => {
  const { url } = await served(demo);
  const viewport = { width: 360, height: 740 };
  await onPage(url, { viewport }, async (page) => {
    for (const [at, [hash, text]] of VIEWS.entries()) {
      await page.goto(`${url}/#/${hash}`);
      await page.getByText(text).first().waitFor();
      const width = await page.evaluate(() =>
        Math.max(document.documentElement.scrollWidth, document.querySelector("main").scrollWidth),
      );
      assert.ok(width <= 360, `${hash}: ${width} px`);
      await shoot(page, `narrow-${at}`);
    }
  });
});
