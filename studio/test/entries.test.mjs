// Duty: the view of entries: tree, list, editing, conflicts, deletion, bytes, expiry.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../__test__/kit/time.mjs";
import { demo } from "./demo.mjs";
import { accessToken, hold, onPage, readToken, served, shoot } from "./kit.mjs";

/** Replaces the text of the editor. */
async function type(page, text) {
  const editor = page.getByRole("textbox", { name: "Value" });
  await editor.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

const row = (page, name) => page.getByRole("treeitem").filter({ hasText: name });

test("the tree shows parts by type, with counts, and opens by keys", async () => {
  const { url } = await served(demo);
  await onPage(url, { hash: "/entries" }, async (page) => {
    const users = row(page, '"users"');
    await users.getByText("46").waitFor();
    assert.equal(await users.getAttribute("aria-expanded"), "false");
    await users.click();
    for (const part of ['u8"0102ff"', '"42"', '"ada"']) await row(page, part).first().waitFor();
    await page.getByRole("tree").focus();
    await page.keyboard.press("End");
    for (const part of ["42n", "42", "true"])
      await page.getByRole("treeitem", { name: part, exact: true }).waitFor();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await row(page, '"visits"').waitFor();
    await shoot(page, "entries-tree");
  });
});

test("a deep branch is skipped, so its siblings are found", async () => {
  const { url } = await served(async (kv) => {
    for (const name of ["a", "b", "c"])
      for (let i = 0; i < 1500; i += 100) {
        const operation = kv.atomic();
        for (let j = i; j < i + 100; j++) operation.set([name, j], j);
        await operation.commit();
      }
    await kv.set(["a\0"], "between");
    await kv.set(["c"], "the last, and a branch");
  });
  await onPage(url, { hash: "/entries" }, async (page) => {
    await page.getByText("1,500").nth(2).waitFor();
    const shown = await page.getByRole("treeitem").allTextContents();
    assert.deepEqual(
      shown.map((text) => text.replace(/[▸▾]/, "").trim()),
      ['"a"1,500', '"a\\u0000"', '"b"1,500', '"c"1,500'],
    );
  });
});

test("what could not be loaded is loaded when it is pressed", async () => {
  const { url } = await served(demo);
  await onPage(url, { hash: "/overview", allow: [/ERR_FAILED/] }, async (page) => {
    const lists = "**/api/keys/list";
    await page.route(lists, (route) => route.abort());
    for (const form of ["tree", "list"]) {
      await page.goto(`${url}/#/entries?form=${form}`);
      const again = page.getByText(/^Not loaded/);
      await again.waitFor();
      await page.unroute(lists);
      await again.click();
      await page
        .getByText(form === "tree" ? '"config"' : '["config"]')
        .first()
        .waitFor();
      await page.goto(`${url}/#/overview`);
      await page.route(lists, (route) => route.abort());
    }
    await page.route("**/api/keys?*", (route) => route.abort());
    await page.goto(`${url}/#/entries?key=["config"]`);
    const entry = page.getByRole("button", { name: "Try again" });
    await entry.waitFor();
    await page.unroute("**/api/keys?*");
    await entry.click();
    await page.getByText("Versionstamp").waitFor();
  });
});

test("a value is edited as text, with its types", async () => {
  const { url, kv } = await served(demo);
  await onPage(url, { hash: '/entries?key=["users","ada"]' }, async (page) => {
    await page.getByText("date(").waitFor();
    await row(page, '"users"').click();
    await row(page, '"ada"').waitFor();
    await shoot(page, "entries-value");
    await type(page, '{ big: 5n, at: date("2026-01-01"), set: set([1, u8"00ff"]) }');
    await page.keyboard.press("Control+s");
    await page.getByText("Saved").waitFor();
    assert.deepEqual((await kv.get(["users", "ada"])).value, {
      big: 5n,
      at: new Date("2026-01-01"),
      set: new Set([1, new Uint8Array([0, 255])]),
    });
    await type(page, "{ broken");
    await page.getByRole("button", { name: /^Save/ }).click();
    await page.getByText("':' was expected (line 1, character 9)").waitFor();
  });
});

test("a value is edited as a tree, part by part", async () => {
  const value = { name: "Ada", list: [1, 2], map: new Map([[1n, "one"]]) };
  const { url, kv } = await served((db) => db.set(["doc"], value));
  await onPage(url, { hash: '/entries?key=["doc"]' }, async (page) => {
    await page.getByRole("group", { name: "Form of the value" }).getByText("Tree").click();
    const change = async (name, literal) => {
      await page.getByLabel(name, { exact: true }).fill(literal);
      await page.keyboard.press("Enter");
    };
    await change("Value name", '"Ada Lovelace"');
    await change("Value map 1n", "oops");
    assert.equal(
      await page.getByLabel("Value map 1n", { exact: true }).getAttribute("aria-invalid"),
      "true",
    );
    await change("Value map 1n", 'date("2026-01-01")');
    await page.getByRole("button", { name: "Remove Value list 0" }).click();
    await page.getByLabel("Name of a new part of Value").fill("big");
    await page.getByRole("button", { name: "Add to Value", exact: true }).click();
    await change("Value big", "10n");
    await page.getByLabel("Key of a new part of Value map").fill("true");
    await page.getByRole("button", { name: "Add to Value map" }).click();
    await shoot(page, "entries-value-tree");
    await page.keyboard.press("Control+s");
    await page.getByText("Saved").waitFor();
    assert.deepEqual((await kv.get(["doc"])).value, {
      name: "Ada Lovelace",
      list: [2],
      map: new Map([
        [1n, new Date("2026-01-01")],
        [true, null],
      ]),
      big: 10n,
    });
  });
});

test("a conflict shows both changes, and nothing is lost unasked", async () => {
  const { url, kv } = await served((db) => db.set(["doc"], { a: 1, b: 2 }));
  const allow = [/412/];
  await onPage(url, { hash: '/entries?key=["doc"]', allow }, async (page) => {
    await page.getByRole("textbox", { name: "Value" }).waitFor();
    await type(page, "{ a: 1, b: 3 }");
    await kv.set(["doc"], { a: 9, b: 2 });
    await page.keyboard.press("Control+s");
    const dialog = page.getByRole("dialog", { name: "The entry has changed" });
    await dialog.getByText("{ a: 9, b: 2 }").waitFor();
    await dialog.getByText("{ a: 1, b: 3 }").waitFor();
    await shoot(page, "entries-conflict");
    await dialog.getByRole("button", { name: "Go on editing" }).click();
    assert.deepEqual((await kv.get(["doc"])).value, { a: 9, b: 2 });
    await page.getByRole("button", { name: /^Save/ }).click();
    await dialog.getByRole("button", { name: "Replace it by mine" }).click();
    await page.getByText("Saved").waitFor();
    assert.deepEqual((await kv.get(["doc"])).value, { a: 1, b: 3 });
  });
});

test("a value that replaces one has the expiry of the entry that it replaces", async () => {
  const { url, kv } = await served(async (db) => {
    for (const name of ["gone", "kept"]) await db.set([name], 1, { expireIn: 3_600_000 });
  });
  await onPage(url, { hash: "/entries", allow: [/412/, /404/] }, async (page) => {
    const replaceByMine = async (name, change) => {
      await page.goto(`${url}/#/entries?key=["${name}"]`);
      await page.getByText(/in (1 h|59 min)/).waitFor();
      await type(page, '"mine"');
      await change();
      await page.keyboard.press("Control+s");
      await page.getByRole("button", { name: "Replace it by mine" }).click();
      await page.getByText("never", { exact: true }).waitFor();
      assert.equal((await kv.get([name])).value, "mine");
    };
    await replaceByMine("gone", () => kv.delete(["gone"]));
    await replaceByMine("kept", () => kv.set(["kept"], "theirs, without an expiry"));
  });
});

test("what is typed while a save is under way stays, and is saved behind it", async () => {
  const { url, kv } = await served((db) => db.set(["a"], "one"));
  await onPage(url, { hash: '/entries?key=["a"]' }, async (page) => {
    const editor = page.getByRole("textbox", { name: "Value" });
    await type(page, '"two"');
    const held = await hold(page, "PUT", "/api/keys?");
    await page.keyboard.press("Control+s");
    await held.asked;
    const save = page.getByRole("button", { name: /^Save/ });
    assert.equal(await save.isDisabled(), true);
    await page.keyboard.press("Control+s");
    await page.keyboard.insertText(" + 1");
    await held.release();
    assert.equal(await page.getByRole("dialog").count(), 0);
    assert.equal((await kv.get(["a"])).value, "two");
    assert.equal(await editor.innerText(), '"two" + 1');
    // The editor still has the focus.
    for (let i = 0; i < 4; i++) await page.keyboard.press("Backspace");
    await save.waitFor({ state: "detached" });
    await type(page, '"three"');
    await page.keyboard.press("Control+s");
    await save.waitFor({ state: "detached" });
    assert.equal((await kv.get(["a"])).value, "three");
  });
});

test("nothing is edited while the entry is read again", async () => {
  const { url, kv } = await served((db) => db.set(["a"], ["one"]));
  await onPage(url, { hash: '/entries?key=["a"]' }, async (page) => {
    const editor = page.getByRole("textbox", { name: "Value" });
    await type(page, '["mine"]');
    await kv.set(["a"], ["theirs"]);
    const held = await hold(page, "GET", "/api/keys?");
    await page.getByRole("button", { name: "Discard" }).click();
    await held.asked;
    await editor.getByText('["one"]').waitFor();
    await type(page, '["mine, of one"]');
    await held.release();
    await editor.getByText('["theirs"]').waitFor();
    assert.equal(await page.getByRole("button", { name: /^Save/ }).count(), 0);
    await editor.click();
    await page.keyboard.press("Control+s");
    await type(page, '["mine, of theirs"]');
    await page.keyboard.press("Control+s");
    await page.getByText("Saved").waitFor();
    assert.deepEqual((await kv.get(["a"])).value, ["mine, of theirs"]);
  });
});

test("theirs is taken as the conflict has shown it", async () => {
  const { url, kv } = await served((db) => db.set(["a"], ["one"]));
  await onPage(url, { hash: '/entries?key=["a"]', allow: [/412/] }, async (page) => {
    await type(page, '["mine"]');
    await kv.set(["a"], ["theirs"]);
    await page.keyboard.press("Control+s");
    const take = page.getByRole("button", { name: "Take theirs" });
    await take.waitFor();
    await kv.set(["a"], ["theirs, never shown"]);
    await take.click();
    await page.getByRole("textbox", { name: "Value" }).getByText('["theirs"]').waitFor();
    await type(page, '["mine, of theirs"]');
    await page.keyboard.press("Control+s");
    await page.getByRole("dialog", { name: "The entry has changed" }).waitFor();
    assert.deepEqual((await kv.get(["a"])).value, ["theirs, never shown"]);
  });
});

test("a save that fails behind the end of its view says so", async () => {
  const { url, kv } = await served(async (db) => {
    for (const name of ["a", "b"]) await db.set([name], name);
  });
  await onPage(url, { hash: '/entries?key=["a"]', allow: [/412/] }, async (page) => {
    await type(page, '"mine"');
    const held = await hold(page, "PUT", "/api/keys?");
    await page.keyboard.press("Control+s");
    await held.asked;
    await kv.set(["a"], "theirs");
    await row(page, '"b"').click();
    await page.getByRole("textbox", { name: "Value" }).getByText('"b"').waitFor();
    await held.release();
    await page.getByText('["a"] is not saved: The entry has changed.').waitFor();
  });
});

test("a deletion that ends late leaves the entry alone that is open by then", async () => {
  const { url, kv } = await served(async (db) => {
    for (const name of ["a", "b"]) await db.set([name], [name]);
  });
  await onPage(url, { hash: '/entries?key=["a"]' }, async (page) => {
    await page.getByRole("textbox", { name: "Value" }).waitFor();
    const held = await hold(page, "DELETE", "/api/keys?");
    const remove = page.getByRole("button", { name: "Delete", exact: true });
    await remove.click();
    await held.asked;
    assert.equal(await remove.isDisabled(), true);
    await row(page, '"b"').click();
    const editor = page.getByRole("textbox", { name: "Value" });
    await editor.getByText('["b"]').waitFor();
    await type(page, '["mine"]');
    await page.getByRole("tree").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    await page.getByText("1 marked").waitFor();
    await held.release();
    await page.getByText('Deleted ["a"]').waitFor();
    assert.equal((await kv.get(["a"])).versionstamp, null);
    assert.equal(await editor.innerText(), '["mine"]');
    await page.getByText("1 marked").waitFor();
  });
});

test("an entry is created once, duplicated, deleted and taken back", async () => {
  const { url, kv } = await served((db) => db.set(["there"], 1));
  await onPage(url, { hash: "/entries", allow: [/412/, /404/] }, async (page) => {
    await row(page, '"there"').waitFor();
    await page.keyboard.press("n");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Key").fill('["there"]');
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByText("There is an entry with this key.").waitFor();
    await dialog.getByLabel("Key").fill('["new", 7n]');
    await dialog.getByLabel(/Expires after/).fill("3600");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByText(/in (1 h|59 min)/).waitFor();
    assert.deepEqual((await kv.get(["new", 7n])).value, {});
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText('Deleted ["new", 7n]').hover();
    assert.equal((await kv.get(["new", 7n])).versionstamp, null);
    await page.getByRole("button", { name: "Undo" }).click();
    await row(page, '"new"').waitFor();
    assert.deepEqual((await kv.get(["new", 7n])).value, {});
  });
});

test("the offer to undo stays while it is pointed at or has the focus", async () => {
  const { url, kv } = await served((db) => db.set(["a"], 1));
  await onPage(url, { hash: '/entries?key=["a"]', allow: [/404/] }, async (page) => {
    await page.clock.install();
    await page.getByRole("button", { name: "Delete" }).click();
    const undo = page.getByRole("button", { name: "Undo" });
    await page.getByText('Deleted ["a"]').hover();
    await page.clock.runFor(60_000);
    await undo.focus();
    await page.mouse.move(0, 0);
    await page.clock.runFor(60_000);
    await undo.click();
    await row(page, '"a"').click();
    assert.equal((await kv.get(["a"])).value, 1);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText('Deleted ["a"]').waitFor();
    await page.mouse.move(0, 0);
    await page.clock.runFor(60_000);
    await page.getByText('Deleted ["a"]').waitFor({ state: "detached" });
  });
});

test("marked entries are deleted after a question", async () => {
  const { url, kv } = await served(async (db) => {
    for (let i = 0; i < 3; i++) await db.set([i], i);
    await db.set([1, "below"], "stays");
  });
  await onPage(url, { hash: "/entries" }, async (page) => {
    await page.getByRole("treeitem").nth(2).waitFor();
    await page.getByRole("tree").focus();
    for (const key of [" ", "ArrowDown", " ", "Delete"]) await page.keyboard.press(key);
    const dialog = page.getByRole("dialog", { name: "Delete 2 entries?" });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    assert.notEqual((await kv.get([0])).versionstamp, null);
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await dialog.getByRole("button", { name: "Delete 2" }).click();
    await page.getByText("Deleted 2 entries").waitFor();
    assert.equal((await kv.get([0])).versionstamp, null);
    assert.equal((await kv.get([1, "below"])).value, "stays");
  });
});

test("a list takes a filter, and loads its pages as it is scrolled", async () => {
  const { url } = await served(demo);
  await onPage(url, { hash: "/entries?form=list&prefix=orders" }, async (page) => {
    await page.getByText("{ total: 0 }").waitFor();
    const rows = page.getByRole("list", { name: "Entries" });
    while ((await page.getByText("{ total: 897 }").count()) === 0)
      await rows.evaluate((list) => list.scrollTo(0, list.scrollHeight));
    await page.getByLabel("Filter").fill("{ total: { $gt: 890 } }");
    await page.getByRole("button", { name: "Apply" }).click();
    await until(
      async () => (await page.getByRole("listitem").count()) === 3,
      "only three are listed",
    );
    await page.getByText("{ total: 897 }").waitFor();
    assert.match(new URL(page.url()).hash, /where=/);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Forget" }).waitFor();
    await shoot(page, "entries-list");
    await page.goto(`${url}/#/entries?form=list`);
    await page.getByText('["config"]').waitFor();
    await page.getByLabel("Saved queries").selectOption("orders { total: { $gt: 890 } }");
    await page.getByText("{ total: 897 }").waitFor();
    assert.equal(await page.getByLabel("Filter").inputValue(), "{ total: { $gt: 890 } }");
  });
});

test("bytes are shown in hexadecimal and as an image, an expiry as a countdown", async () => {
  const { url } = await served(demo);
  await onPage(url, { hash: '/entries?key=["images","logo"]' }, async (page) => {
    await page.getByText("89 50 4e 47").waitFor();
    const image = page.getByRole("img", { name: "The value as image/png" });
    assert.equal(await image.evaluate((element) => element.decode().then(() => true)), true);
    await shoot(page, "entries-bytes");
    await page.goto(`${url}/#/entries?key=["sessions","abc"]`);
    await page.getByText(/in 59 min/).waitFor();
  });
});

test("an entry is copied as code", async () => {
  const { url, kv } = await served((db) => db.set(["a", 1n], { b: "it's" }));
  await onPage(url, { hash: '/entries?key=["a",1n]' }, async (page) => {
    const copied = async (name) => {
      await page.getByLabel("Copy as").selectOption(name);
      return page.evaluate(() => navigator.clipboard.readText());
    };
    assert.equal(await copied("JavaScript: set"), 'await kv.set(["a", 1n], { b: "it\'s" });');
    assert.equal(await copied("CLI: set"), `openkv set '["a", 1n]' '{ b: "it'\\''s" }'`);
    const curl = await copied("curl: get");
    assert.ok(curl.startsWith("curl -H") && !curl.includes(accessToken), curl);
    await kv.set(["n"], -5n);
    await page.goto(`${url}/#/entries?key=["n"]`);
    await page.getByRole("region", { name: "Entry" }).getByText("-5n").waitFor();
    assert.equal(await copied("CLI: set"), `openkv set '["n"]' -- '-5n'`);
  });
});

test("a token that may only read can change nothing", async () => {
  const { url } = await served((kv) => kv.set(["a"], 1));
  const options = { hash: '/entries?key=["a"]', token: readToken, allow: [/403/] };
  await onPage(url, options, async (page) => {
    await page.getByText("read-only", { exact: true }).waitFor();
    for (const name of ["New", "Delete", "Duplicate"])
      assert.equal(await page.getByRole("button", { name, exact: true }).isDisabled(), true);
    await page.getByRole("textbox", { name: "Value" }).click();
    await page.keyboard.type("5");
    assert.equal(await page.getByRole("button", { name: /^Save/ }).count(), 0);
  });
});

test("the versions of an entry are shown, and a value is restored", async () => {
  const { url, kv } = await served(
    async (db) => {
      await db.set(["price"], { euro: 100 });
      await db.set(["price"], { euro: 120 }, { expireIn: 3_600_000 });
      await db.delete(["price"]);
      await db.set(["price"], { euro: 140 });
    },
    {},
    { history: "7d" },
  );
  await onPage(url, { hash: '/entries?key=["price"]' }, async (page) => {
    await page.getByText("History", { exact: true }).click();
    const rows = page.locator("details.history details");
    await rows.nth(3).waitFor();
    const titles = await rows.locator("summary").allInnerTexts();
    for (const [at, done] of ["stored", "removed", "stored", "stored"].entries())
      assert.match(titles[at], new RegExp(`^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\dZ ${done}`));
    assert.match(titles[0], /the present one/);
    await rows.nth(2).locator("summary").click();
    await rows
      .nth(2)
      .getByText(/, expires \d{4}/)
      .waitFor();
    await rows.nth(3).locator("summary").click();
    await rows.nth(3).getByRole("button", { name: "Restore this value" }).click();
    await rows.nth(4).waitFor();
    assert.deepEqual((await kv.get(["price"])).value, { euro: 100 });
  });
});

test("a restored value has a check, and a deleted entry comes back", async () => {
  const { url, kv } = await served((db) => db.set(["a"], 1), {}, { history: "7d" });
  await kv.set(["a"], 2);
  await onPage(url, { hash: '/entries?key=["a"]', allow: [/412/, /404/] }, async (page) => {
    await page.getByText("History", { exact: true }).click();
    const oldest = page.locator("details.history details").last();
    await oldest.locator("summary").click();
    await kv.set(["a"], 3);
    await oldest.getByRole("button", { name: "Restore this value" }).click();
    await page.getByText("Another write was first. Nothing is saved.").waitFor();
    assert.equal((await kv.get(["a"])).value, 3);
    await kv.delete(["a"]);
    await page.goto(`${url}/#/overview`);
    await page.goto(`${url}/#/entries?key=["a"]`);
    await page.getByText("There is no entry with this key.").waitFor();
    await page.getByText("History", { exact: true }).click();
    await oldest.locator("summary").click();
    await oldest.getByRole("button", { name: "Restore this value" }).click();
    await page.getByText("Saved").waitFor();
    assert.equal((await kv.get(["a"])).value, 1);
  });
});

test("what is typed while a value is restored stays", async () => {
  const { url, kv } = await served((db) => db.set(["a"], ["old"]), {}, { history: "7d" });
  await kv.set(["a"], ["new"]);
  await onPage(url, { hash: '/entries?key=["a"]' }, async (page) => {
    const editor = page.getByRole("textbox", { name: "Value" });
    await editor.getByText('["new"]').waitFor();
    await page.getByText("History", { exact: true }).click();
    const oldest = page.locator("details.history details").last();
    await oldest.locator("summary").click();
    const held = await hold(page, "PUT", "/api/keys?");
    await oldest.getByRole("button", { name: "Restore this value" }).click();
    await held.asked;
    await type(page, '["mine"]');
    await held.release();
    await page.getByText("Saved").waitFor();
    await editor.getByText('["mine"]').waitFor();
    assert.deepEqual((await kv.get(["a"])).value, ["old"]);
    await page.getByRole("button", { name: /^Save/ }).click();
    await until(async () => (await kv.get(["a"])).value[0] === "mine", "mine is saved");
  });
});

test("without a history the panel says how it is switched on", async () => {
  const { url } = await served((db) => db.set(["a"], 1));
  await onPage(url, { hash: '/entries?key=["a"]', allow: [/422/] }, async (page) => {
    await page.getByText("History", { exact: true }).click();
    await page.getByText("The database keeps no history.").waitFor();
    await page.getByText('openKv(path, { history: "7d" })').waitFor();
  });
});
