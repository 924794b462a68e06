// Duty: a server of many databases: create, open, tokens, quotas, drop.

import assert from "node:assert/strict";
import { test } from "node:test";
import { adminToken, hold, onPage, servedFolder, shoot } from "./kit.mjs";

/** Makes a database of a server: its token, and `ask(path, method, body)`, which is a request of its API. */
async function made(server, name) {
  const answer = await fetch(`${server.url}/v1/admin/databases`, {
    ...{ method: "POST", headers: { authorization: `Bearer ${adminToken}` } },
    body: JSON.stringify({ name }),
  });
  const { token } = await answer.json();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const ask = (path, method = "GET", body = undefined) =>
    fetch(`${server.url}/${name}/api${path}`, {
      ...{ method, headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return { token, ask };
}

/**
 * A page on a server with the databases `one` and `two`, which has the tokens of both and shows `two`. `visit` opens
 * another view, without a load of the page.
 */
async function onTwo({ allow = [] }, run) {
  const server = await servedFolder();
  const one = await made(server, "one");
  const two = await made(server, "two");
  const options = { hash: "/@one/atomic", token: one.token, allow: [/401/, ...allow] };
  await onPage(server.url, options, async (page) => {
    const visit = async (path) => {
      await page.evaluate((hash) => (location.hash = hash), `/@${path}`);
      await page.getByRole("button", { name: `database ${path.split("/")[0]}` }).waitFor();
    };
    await visit("two/atomic");
    await page.getByLabel("A token of the database two").fill(two.token);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await run({ page, visit, one, two });
  });
}

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

test("a deletion and its undo stay in the database in which they began", async () => {
  await onTwo({ allow: [/404/] }, async ({ page, visit, one, two }) => {
    const value = async ({ ask }) => (await (await ask("/keys/a")).json()).value;
    await one.ask("/keys/a", "PUT", "of one");
    await two.ask("/keys/a", "PUT", "of two");
    const removeWhileHeld = async (method) => {
      await visit('one/entries?key=["a"]');
      await page.getByRole("textbox", { name: "Value" }).waitFor();
      const held = await hold(page, method, "/api/keys?key=");
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await held.asked;
      await visit("two/entries");
      await held.release();
      await page.getByText('Deleted ["a"]').hover();
      assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
    };
    await removeWhileHeld("GET");
    assert.deepEqual([await value(one), await value(two)], [undefined, "of two"]);
    await visit("one/entries");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("treeitem", { name: "a" }).waitFor();
    assert.deepEqual([await value(one), await value(two)], ["of one", "of two"]);
    await removeWhileHeld("DELETE");
    await two.ask("/keys/a", "DELETE");
    await visit("one/entries");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("treeitem", { name: "a" }).waitFor();
    assert.deepEqual([await value(one), await value(two)], ["of one", undefined]);
  });
});

test("all dead letters are requeued in the database in which that began", async () => {
  await onTwo({}, async ({ page, visit, one }) => {
    await one.ask("/queue/enqueue?queue=mail", "POST", { value: 1 });
    const { message } = await (await one.ask("/queue/poll?queue=mail")).json();
    const { id, lock } = message;
    await one.ask("/queue/nack", "POST", { id, lock, retry: false, error: "no stamp" });
    await visit("one/queues?queue=mail");
    const letters = page.getByRole("region", { name: "Dead letters" });
    await letters.getByText("no stamp").waitFor();
    // The first request does not requeue all of them.
    const json = { requeued: 1, left: 1 };
    const first = await hold(page, "POST", "/queue/dlq/requeue", { json });
    await letters.getByRole("button", { name: "Requeue all" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Requeue all" }).click();
    await first.asked;
    await visit("two/queues?queue=mail");
    const second = page.waitForRequest("**/queue/dlq/requeue?*");
    await first.release();
    assert.match((await second).url(), /\/one\/api\//);
  });
});

test("an export has the entries of the database in which it began", async () => {
  await onTwo({}, async ({ page, visit }) => {
    await visit("one/entries");
    await page.getByText("There are no entries here.").waitFor();
    await page.evaluate(() => {
      globalThis.showSaveFilePicker = () =>
        new Promise((resolve) => {
          const createWritable = async () => new WritableStream();
          globalThis.choose = () => resolve({ createWritable });
        });
    });
    await page.getByRole("button", { name: "Export" }).click();
    await visit("two/entries");
    const asked = page.waitForRequest("**/api/export");
    await page.evaluate(() => globalThis.choose());
    assert.match((await asked).url(), /\/one\/api\//);
  });
});

test("a list of databases that comes late does not show one that was dropped", async () => {
  const server = await servedFolder();
  await made(server, "gone");
  await onPage(server.url, { token: adminToken }, async (page) => {
    const gone = page.getByRole("region", { name: "Database gone" });
    await gone.waitFor();
    const held = await hold(page, "GET", "/v1/admin/databases", { isAnswered: true });
    await gone.getByRole("button", { name: "Create a token" }).click();
    await held.asked;
    await gone.getByRole("button", { name: "Drop" }).click();
    await page.getByLabel("Type its name").fill("gone");
    await page.getByRole("button", { name: "Drop gone" }).click();
    await page.getByText("There are no databases.").waitFor();
    await held.release();
    await page.getByText("There are no databases.").waitFor();
    assert.equal(await gone.count(), 0);
  });
});

test("the admin token is forgotten where the databases are listed", async () => {
  const server = await servedFolder();
  await made(server, "shop");
  await onPage(server.url, { token: adminToken, allow: [/401/] }, async (page) => {
    await page.getByRole("region", { name: "Database shop" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Command" }).fill("forget");
    await page.keyboard.press("Enter");
    const field = page.getByLabel("A token of the admin API of the server");
    await field.fill("wrong-wrong-wrong");
    await field.press("Enter");
    await page.getByText("does not accept this token").waitFor();
    await field.fill(adminToken);
    await field.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByLabel("Name of a new database").fill("other");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("region", { name: "Database other" }).waitFor();
  });
});

test("a database that is made again is not read-only by the token of the earlier one", async () => {
  const server = await servedFolder();
  const headers = { authorization: `Bearer ${adminToken}` };
  await made(server, "shop");
  const answer = await fetch(`${server.url}/v1/admin/databases/shop/tokens`, {
    ...{ method: "POST", headers, body: JSON.stringify({ rights: "read" }) },
  });
  const { token } = await answer.json();
  const options = { hash: "/@shop/entries", token, allow: [/401/, /403/] };
  await onPage(server.url, options, async (page) => {
    const isReadOnly = page.getByText("read-only", { exact: true });
    await isReadOnly.waitFor();
    await page.getByRole("button", { name: /database shop/ }).click();
    await page.getByLabel("A token of the admin API of the server").fill(adminToken);
    await page.keyboard.press("Enter");
    const shop = page.getByRole("region", { name: "Database shop" });
    await shop.getByRole("button", { name: "Drop" }).click();
    await page.getByLabel("Type its name").fill("shop");
    await page.getByRole("button", { name: "Drop shop" }).click();
    await shop.waitFor({ state: "detached" });
    await page.getByLabel("Name of a new database").fill("shop");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const asked = page.waitForResponse("**/shop/api/rights");
    await shop.getByRole("link", { name: "shop" }).click();
    await asked;
    await isReadOnly.waitFor({ state: "detached" });
  });
});

test("the question for the token of a database is there while the database is shown", async () => {
  const server = await servedFolder();
  for (const name of ["one", "two"]) await made(server, name);
  const options = { hash: "/@one/entries", token: null, allow: [/401/] };
  await onPage(server.url, options, async (page) => {
    const one = page.getByLabel("A token of the database one");
    const two = page.getByLabel("A token of the database two");
    await one.fill("typed for one");
    await page.goto(`${server.url}/#/@two/entries`);
    await two.waitFor();
    assert.equal(await two.inputValue(), "");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await two.waitFor({ state: "detached" });
    assert.equal(await page.getByRole("dialog").count(), 0);
    await page.goto(`${server.url}/#/@one/entries`);
    await one.waitFor();
  });
});

test("a name that is typed while a database is created stays", async () => {
  const server = await servedFolder();
  await onPage(server.url, { token: adminToken }, async (page) => {
    const name = page.getByLabel("Name of a new database");
    const create = page.getByRole("button", { name: "Create", exact: true });
    await page.getByText("There are no databases.").waitFor();
    const held = await hold(page, "POST", "/v1/admin/databases");
    await name.fill("one");
    await create.click();
    await held.asked;
    await name.fill("two");
    await held.release();
    await page.getByRole("region", { name: "Database one" }).waitFor();
    assert.equal(await name.inputValue(), "two");
    await create.click();
    await page.getByRole("region", { name: "Database two" }).waitFor();
    assert.equal(await name.inputValue(), "");
  });
});
