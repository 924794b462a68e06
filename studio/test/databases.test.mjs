// Duty: a server of many databases: create, open, tokens, quotas, drop.

import assert from "node:assert/strict";
import { test } from "node:test";
import { adminToken, onPage, servedFolder, shoot } from "./kit.mjs";

test("databases are created, opened, given tokens and quotas, and dropped", async () => {
  const server = await servedFolder();
  const admin = async (path) => {
    const headers = { authorization: `Bearer ${adminToken}` };
    return (await fetch(`${server.url}/v1/admin${path}`, { headers })).json();
  };
  await onPage(server.url, { token: adminToken }, async (page) => {
    await page.getByText("There are no databases.").waitFor();
    await page.getByLabel("Name of a new database").fill("shop");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const shop = page.getByRole("region", { name: "Database shop" });
    await shop.waitFor();
    await page.getByText("It is shown only now").waitFor();
    await shop.getByLabel("Watches").fill("7");
    await shop.getByRole("button", { name: "Save the quotas" }).click();
    await page.getByText("Quotas saved").waitFor();
    assert.deepEqual((await admin("/databases/shop")).quotas, { watches: 7 });
    await shop.getByLabel("Rights of a new token of shop").selectOption("read");
    await shop.getByRole("button", { name: "Create a token" }).click();
    await shop.getByText("It is shown only now").waitFor();
    assert.equal((await admin("/databases/shop")).tokens.length, 2);
    await shoot(page, "databases");
    await shop.getByRole("link", { name: "shop" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    assert.equal(new URL(page.url()).hash, "#/@shop/overview");
    await page.getByRole("link", { name: "Entries" }).click();
    await page.getByText("There are no entries here.").waitFor();
    await page.getByRole("button", { name: /database shop/ }).click();
    await shop.getByRole("button", { name: "Drop" }).click();
    const dialog = page.getByRole("dialog");
    assert.equal(await dialog.getByRole("button", { name: "Drop shop" }).isDisabled(), true);
    await dialog.getByLabel("Type its name").fill("shop");
    await dialog.getByRole("button", { name: "Drop shop" }).click();
    await page.getByText("There are no databases.").waitFor();
    assert.deepEqual(await admin("/databases"), []);
  });
});

test("marks and the offer to undo stay with their database", async () => {
  const server = await servedFolder();
  const headers = { authorization: `Bearer ${adminToken}` };
  await onPage(server.url, { token: adminToken, allow: [/404/] }, async (page) => {
    for (const name of ["one", "two"]) {
      await page.getByLabel("Name of a new database").fill(name);
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByRole("region", { name: `Database ${name}` }).waitFor();
    }
    const made = await fetch(`${server.url}/v1/admin/databases/two/tokens`, {
      ...{ method: "POST", headers, body: JSON.stringify({ rights: "write" }) },
    });
    const two = `${server.url}/two/api/keys`;
    const authorization = `Bearer ${(await made.json()).token}`;
    const open = (name) => page.goto(`${server.url}/#/@${name}/entries`);
    await open("one");
    for (const key of ["a", "b"]) {
      await page.getByRole("button", { name: "New", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Key").fill(JSON.stringify([key]));
      await dialog.getByRole("button", { name: "Create" }).click();
      await page.getByRole("treeitem", { name: key }).waitFor();
    }
    await page.getByRole("button", { name: "Delete" }).click();
    // A message stays while it is pointed at.
    await page.getByText('Deleted ["b"]').hover();
    await page.getByRole("button", { name: "Undo" }).waitFor();
    await page.getByRole("treeitem", { name: "b" }).waitFor({ state: "detached" });
    await page.getByRole("tree").focus();
    await page.keyboard.press("Space");
    await page.getByText("1 marked").waitFor();
    await open("two");
    await page.getByText("There are no entries here.").waitFor();
    assert.equal(await page.getByText("1 marked").count(), 0);
    await page.getByText('Deleted ["b"]').waitFor();
    assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
    await open("one");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("treeitem", { name: "b" }).waitFor();
    const list = await (await fetch(two, { headers: { authorization } })).json();
    assert.deepEqual(list.entries, []);
  });
});

test("each database asks for a token of its own", async () => {
  const server = await servedFolder();
  const headers = { authorization: `Bearer ${adminToken}` };
  const body = JSON.stringify({ name: "shop" });
  const made = await fetch(`${server.url}/v1/admin/databases`, { method: "POST", headers, body });
  const { token } = await made.json();
  const options = { hash: "/@shop/entries", token: null, allow: [/401/] };
  await onPage(server.url, options, async (page) => {
    await page.getByLabel("A token of the database shop").fill(token);
    await page.keyboard.press("Enter");
    await page.getByText("There are no entries here.").waitFor();
  });
});
