// Duty: the main path of the views of queues, watches, atomic operations, metrics and the overview.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../__test__/kit/time.mjs";
import { demo } from "./demo.mjs";
import { hold, onPage, readToken, served, shoot } from "./kit.mjs";

test("the overview has counts, charts and queues", async () => {
  const { url, kv } = await served(demo);
  await onPage(url, { hash: "/overview" }, async (page) => {
    await page.getByRole("img", { name: "Chart: Operations per second" }).waitFor();
    const entries = page.locator(".tile").filter({ hasText: "Entries" });
    await entries.getByText("350").waitFor();
    await page.getByRole("link", { name: "(default)" }).waitFor();
    for (let i = 0; i < 30; i++) await kv.get(["config"]);
    const slowest = page.getByRole("region", { name: "Slowest operations" });
    await slowest.getByText("set", { exact: true }).waitFor();
    await shoot(page, "overview");
  });
});

test("the key space is measured when it is asked for, below a prefix too, and can be cancelled", async () => {
  const { url } = await served(async (kv) => {
    await kv.set(["users", 1n, "name"], "x".repeat(3000));
    await kv.set(["users", "ada", "name"], "Ada");
    await kv.set(["logo"], 1);
  });
  await onPage(url, { hash: "/overview", token: readToken, allow: [/403/] }, async (page) => {
    const space = page.getByRole("region", { name: "Key space", exact: true });
    await space.getByText("are not measured").waitFor();
    await space.getByRole("button", { name: "Measure", exact: true }).click();
    await space.getByText("3 entries").waitFor();
    const rows = () => space.locator("tbody tr").allInnerTexts();
    const cells = async () => (await rows()).map((row) => row.split(/\s*\t\s*/).slice(0, 3));
    assert.deepEqual(await cells(), [
      ['["users"]', "2", "3.0 KiB"],
      ['["logo"]', "1", "7 B"],
    ]);
    await space.getByRole("button", { name: 'Measure below ["users"]' }).click();
    await space.getByText("2 entries").waitFor();
    assert.deepEqual(
      (await cells()).map(([prefix]) => prefix),
      ['["users",1n]', '["users","ada"]'],
    );
    await shoot(page, "key-space");
    // The second part of the range is never answered.
    await page.route("**/api/sizes*", (route) => {
      if (route.request().url().includes("cursor=")) return undefined;
      const prefixes = [{ prefix: '["users"]', entries: 5, bytes: 70 }];
      return route.fulfill({ json: { prefixes, cursor: "AA==" } });
    });
    await space.getByRole("button", { name: "All keys" }).click();
    await space.getByText("5 entries, reading…").waitFor();
    await space.getByRole("button", { name: "Cancel" }).click();
    await space.getByText("5 entries, cancelled").waitFor();
    assert.deepEqual(await cells(), [['["users"]', "5", "70 B"]]);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await space.getByRole("link", { name: '["users"]' }).click();
    await page.getByRole("textbox", { name: "Prefix" }).waitFor();
    assert.equal(await page.getByRole("textbox", { name: "Prefix" }).inputValue(), '["users"]');
  });
});

test("the overview has the slowest operations with their keys", async () => {
  const { url } = await served(demo);
  await onPage(url, { hash: "/overview" }, async (page) => {
    await page.route("**/api/metrics", async (route) => {
      const response = await route.fetch();
      const slow = { times: 1, failed: false, durationMs: 51.4, atMs: 0 };
      const slowest = [
        { operation: "set", key: '["users",42n]', ...slow },
        { operation: "list", prefix: '["carts"]', ...slow, times: 3, failed: true },
      ];
      await route.fulfill({ response, json: { ...(await response.json()), slowest } });
    });
    const log = page.getByRole("region", { name: "Slowest of the last hour" });
    await log.getByText('["users",42n]').waitFor();
    await log.getByText("list ×3 failed").waitFor();
    await log.getByText('["carts"] and below').waitFor();
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });
});

test("messages are enqueued, taken, given back and deleted", async () => {
  const { url, kv } = await served();
  await onPage(url, { hash: "/queues?queue=mail" }, async (page) => {
    await page.getByRole("textbox", { name: "Message" }).click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText("{ to: 'ada', n: 5n }");
    await page.getByRole("button", { name: "Enqueue" }).click();
    await page.getByText("Enqueued as message 1").waitFor();
    await page.getByRole("row", { name: /^mail 1 0 0 0$/ }).waitFor();
    await page.getByRole("button", { name: "Take" }).click();
    const taken = page.getByRole("region", { name: "Take a message" });
    await taken.getByText('{ to: "ada", n: 5n }').waitFor();
    await taken.getByText(/locked for/).waitFor();
    await shoot(page, "queues");
    await page.getByRole("button", { name: "Give back" }).click();
    await page.getByText("Given back").waitFor();
    await page.getByRole("button", { name: "Take" }).click();
    await page.getByText("attempt 2").waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("button", { name: "Delete it" }).click();
    await page.getByText("Deleted", { exact: true }).waitFor();
    assert.equal(await kv.queue("mail").receive(), null);
  });
});

test("messages are listed by state and looked into, and none is taken", async () => {
  let taken;
  const { url, kv } = await served(async (db) => {
    const queue = db.queue("mail");
    await queue.enqueue({ letter: 0 });
    taken = await queue.receive({ lockDuration: 3_600_000 });
    await queue.enqueue({ letter: 1, big: 5n }, { priority: 9 });
    await queue.enqueue({ letter: 2 }, { delay: 3_600_000 });
  });
  const options = { hash: "/queues?queue=mail", token: readToken, allow: [/403/] };
  await onPage(url, options, async (page) => {
    const messages = page.getByRole("region", { name: "Messages", exact: true });
    await messages.getByText(/processing, locked for 59 min/).waitFor();
    await messages.getByText(/delayed, due in 59 min/).waitFor();
    await messages.getByText(/^Message 2/).click();
    await messages.locator("pre").getByText("{ letter: 1, big: 5n }").waitFor();
    await shoot(page, "queues-messages");
    const state = messages.getByRole("group", { name: "State of the messages" });
    await state.getByRole("button", { name: "delayed" }).click();
    await messages.getByText(/^Message 2/).waitFor({ state: "detached" });
    await messages.getByText(/^Message 3/).click();
    await messages.locator("pre").getByText("{ letter: 2 }").waitFor();
    await state.getByRole("button", { name: "processing" }).click();
    await messages.getByText(/^Message 1/).waitFor();
    assert.equal(await taken.ack(), true);
    await messages.getByText("There are no processing messages.").waitFor();
    assert.equal((await kv.queue("mail").receive()).value.letter, 1);
  });
});

test("a message that waits is deleted where it is listed", async () => {
  const { url, kv } = await served(async (db) => {
    await db.queue("mail").enqueue("unwanted", { delay: 3_600_000 });
    await db.queue("mail").enqueue("wanted");
  });
  await onPage(url, { hash: "/queues?queue=mail" }, async (page) => {
    const messages = page.getByRole("region", { name: "Messages", exact: true });
    await messages.getByText(/^Message 1/).click();
    await messages.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete it" }).click();
    await messages.getByText(/^Message 1/).waitFor({ state: "detached" });
    const { messages: left } = await kv.queue("mail").peek();
    assert.deepEqual(
      left.map(({ value }) => value),
      ["wanted"],
    );
  });
});

test("dead letters are looked at, enqueued again and deleted", async () => {
  const { url, kv } = await served(async (db) => {
    const queue = db.queue("mail");
    for (let i = 0; i < 2; i++) await queue.enqueue({ letter: i }, { backoffSchedule: [] });
    for (let i = 0; i < 2; i++)
      await (await queue.receive()).nack({ error: new Error("no stamp") });
  });
  await onPage(url, { hash: "/queues?queue=mail" }, async (page) => {
    const letters = page.getByRole("region", { name: "Dead letters" });
    await letters.getByText("no stamp").nth(1).waitFor();
    await letters.getByText(/^Message 1/).click();
    await letters.locator("pre").getByText("{ letter: 0 }").waitFor();
    await shoot(page, "queues-dead");
    await letters.getByRole("button", { name: "Requeue", exact: true }).first().click();
    await page.getByText("Enqueued again").waitFor();
    assert.deepEqual((await kv.queue("mail").receive()).value, { letter: 0 });
    await letters.getByRole("button", { name: "Delete all" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete all" }).click();
    await page.getByText("Deleted 1 dead letter").waitFor();
    await letters.getByText("There are no dead letters.").waitFor();
  });
});

test("a watch shows each change with its difference, pauses and filters", async () => {
  const { url, kv } = await served();
  await onPage(url, { hash: "/watch?prefix=users" }, async (page) => {
    await page.getByText("live").waitFor();
    await kv.set(["users", "ada"], { age: 1 });
    await kv.set(["others"], 1);
    await page.getByText("{ age: 1 }").waitFor();
    await kv.set(["users", "ada"], { age: 2 });
    await page.locator(".changes .added", { hasText: "{ age: 2 }" }).waitFor();
    await kv.delete(["users", "ada"]);
    await page.getByText("deleted", { exact: true }).waitFor();
    assert.equal(await page.getByRole("listitem").count(), 3);
    await shoot(page, "watch");
    await page.getByRole("button", { name: "Pause" }).click();
    await kv.set(["users", 7n], "while paused");
    await page.getByText("1 waiting").waitFor();
    assert.equal(await page.getByText("while paused").count(), 0);
    await page.getByRole("button", { name: /Resume/ }).click();
    await page.getByText("while paused").waitFor();
    await page.getByLabel("Filter").fill("7n");
    await until(async () => (await page.getByRole("listitem").count()) === 1, "one is shown");
  });
});

test("a watch goes on behind its last event after the server was away", async () => {
  const { url, kv, server, restart } = await served();
  const allow = [/ERR_CONNECTION_REFUSED/, /ERR_INCOMPLETE_CHUNKED_ENCODING/];
  await onPage(url, { hash: "/watch", allow }, async (page) => {
    await page.getByText("live").waitFor();
    await kv.set([1], "first");
    await page.getByText('"first"').waitFor();
    await server.close();
    await kv.set([2], "second");
    await page.getByText("broken").waitFor();
    await restart();
    await page.getByText('"second"').waitFor();
    await page.getByText("live").waitFor();
    assert.equal(await page.getByRole("listitem").count(), 2);
  });
});

test("the difference of a change is not to a value from before a gap", async () => {
  const { url } = await served();
  const event = (type, at, data) =>
    `event: ${type}\nid: ${String(at).padStart(20, "0")}\ndata: ${JSON.stringify(data)}\n\n`;
  const key = [{ type: "string", value: "k" }];
  const change = (at) => [{ key, value: { type: "number", value: at }, versionstamp: String(at) }];
  const set = (at) => event("change", at, change(at));
  await onPage(url, { hash: "/overview" }, async (page) => {
    const body = `${set(1)}${set(2)}${event("gap", 5, {})}${set(6)}`;
    const headers = { "content-type": "text/event-stream" };
    let streams = 0;
    // The stream behind the first one is never answered.
    await page.route("**/api/watch/prefix", (route) =>
      streams++ === 0 ? route.fulfill({ headers, body }) : undefined,
    );
    await page.goto(`${url}/#/watch`);
    const changes = page.getByRole("list", { name: /^Changes/ }).getByRole("listitem");
    await changes.nth(2).waitFor();
    assert.equal(await changes.nth(1).locator(".changes").count(), 1);
    assert.equal(await changes.nth(0).locator(".changes").count(), 0);
    assert.equal(await changes.nth(0).locator("pre").innerText(), "6");
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });
});

test("an atomic operation commits, or names the check that failed", async () => {
  const { url, kv } = await served((db) => db.set(["seat"], "taken"));
  await onPage(url, { hash: "/atomic" }, async (page) => {
    await page.getByRole("button", { name: "Add a check" }).click();
    await page.getByLabel("Key of check 1").fill('["seat"]');
    await page.getByLabel("Key of mutation 1").fill('["count"]');
    await page.getByLabel("Type of mutation 1").selectOption("sum");
    await page.getByLabel("Value of mutation 1").fill("5n");
    await page.getByRole("button", { name: "Add a mutation" }).click();
    await page.getByLabel("Key of mutation 2").fill('["log"]');
    await page.getByLabel("Type of mutation 2").selectOption("append");
    await page.getByLabel("Value of mutation 2").fill("{ at: 1 }");
    await page.getByRole("button", { name: "Commit" }).click();
    await page.getByText("Nothing happened: check 1 did not hold.").waitFor();
    await page.getByRole("button", { name: "Present one" }).click();
    await page.waitForFunction(() => document.querySelector(".stamp").value.length === 20);
    await page.getByRole("button", { name: "Commit" }).click();
    await page.getByText("Committed with the versionstamp").waitFor();
    await shoot(page, "atomic");
    assert.equal((await kv.get(["count"])).value, 5n);
    assert.deepEqual((await kv.get(["log"])).value, [{ at: 1 }]);
    await page.getByRole("button", { name: "Copy as JavaScript" }).click();
    const code = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(code, /\.sum\(\["count"\], 5n\)\n {2}\.append\(\["log"\], \[\{ at: 1 \}\]\)/);
    const run = new Function("kv", `return (async () => { ${code} return result; })();`);
    assert.equal((await run(kv)).ok, true);
    await page.getByLabel("Value of mutation 1").fill("oops");
    await page.getByRole("button", { name: "Commit" }).click();
    await page.getByText(/Mutation 1: unknown word 'oops'/).waitFor();
  });
});

test("the outcome of an operation is told when its view is gone", async () => {
  const { url } = await served((db) => db.set(["seat"], "taken"));
  await onPage(url, { hash: "/atomic" }, async (page) => {
    await page.getByRole("button", { name: "Add a check" }).click();
    await page.getByLabel("Key of check 1").fill('["seat"]');
    await page.getByLabel("Key of mutation 1").fill('["a"]');
    const held = await hold(page, "POST", "/api/atomic");
    await page.getByRole("button", { name: "Commit" }).click();
    await held.asked;
    await page.getByRole("link", { name: "Metrics" }).click();
    await page.getByRole("heading", { level: 1, name: "Metrics" }).waitFor();
    await held.release();
    await page.getByText("Nothing happened: check 1 did not hold.").waitFor();
  });
});

test("seconds with a fraction are whole milliseconds", async () => {
  const { url } = await served();
  // Times 1000 it is 1000.9999999999999.
  const seconds = "1.001";
  await onPage(url, { hash: "/atomic" }, async (page) => {
    const sent = async (path, button) => {
      const asked = page.waitForRequest(path);
      await button.click();
      return await asked;
    };
    const button = (name) => page.getByRole("button", { name, exact: true });
    await page.getByLabel("Key of mutation 1").fill('["a"]');
    await page.getByLabel("Seconds until mutation 1 expires").fill(seconds);
    const atomic = await sent("**/api/atomic", button("Commit"));
    assert.equal(atomic.postDataJSON().mutations[0].expireIn, 1001);
    await button("Copy as JavaScript").click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /expireIn: 1001 /);
    await page.goto(`${url}/#/queues`);
    await page.getByLabel("Delay in seconds").fill(seconds);
    const enqueue = await sent("**/queue/enqueue?*", button("Enqueue"));
    assert.equal(enqueue.postDataJSON().delay, 1001);
    await page.goto(`${url}/#/entries`);
    await button("New").click();
    await page.getByLabel("Key", { exact: true }).fill('["b"]');
    await page.getByLabel(/Expires after/).fill(seconds);
    const create = await sent("**/api/keys?*", button("Create"));
    assert.equal(new URL(create.url()).searchParams.get("expireIn"), "1001");
  });
});

test("a versionstamp that comes late changes nothing that was typed since then", async () => {
  const { url, kv } = await served((db) => db.set(["a"], 1));
  const { versionstamp } = await kv.get(["a"]);
  await onPage(url, { hash: "/atomic" }, async (page) => {
    const fill = async (meanwhile) => {
      await page.getByLabel("Key of check 1").fill('["a"]');
      const held = await hold(page, "GET", "/api/keys?");
      await page.getByRole("button", { name: "Present one" }).click();
      await held.asked;
      await meanwhile();
      await held.release();
      return page.getByLabel("Versionstamp of check 1").inputValue();
    };
    await page.getByRole("button", { name: "Add a check" }).click();
    const value = page.getByLabel("Value of mutation 1");
    const changeKey = () => page.getByLabel("Key of check 1").fill('["another"]');
    assert.equal(await fill(changeKey), "");
    assert.equal(await fill(() => value.fill('"typed"')), versionstamp);
    assert.equal(await value.inputValue(), '"typed"');
  });
});

test("metrics are charted, and shown as Prometheus' text", async () => {
  const { url } = await served(demo);
  await onPage(url, { hash: "/metrics" }, async (page) => {
    await page.getByRole("img", { name: /Commits and conflicts/ }).waitFor();
    await page.getByRole("button", { name: "Show the text" }).click();
    await page.getByText("# TYPE openkv_", { exact: false }).first().waitFor();
    await shoot(page, "metrics");
  });
});

test("a token that may only read looks, and changes nothing", async () => {
  const { url } = await served(demo);
  const options = { hash: "/queues", token: readToken, allow: [/403/] };
  await onPage(url, options, async (page) => {
    await page.getByText("read-only", { exact: true }).waitFor();
    for (const name of ["Enqueue", "Take", "Delete all"])
      assert.equal(await page.getByRole("button", { name }).isDisabled(), true);
    await page.goto(`${url}/#/atomic`);
    await page.getByRole("button", { name: "Commit" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Commit" }).isDisabled(), true);
  });
});
