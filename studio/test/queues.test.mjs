// Duty: the sections of a queue with a name: results and progress, groups, schedules; pausing, draining, cancelling.

import assert from "node:assert/strict";
import { test } from "node:test";
import { hold, onPage, readToken, served, shoot } from "./kit.mjs";

/** Handles messages until `stop` aborts. */
async function listening(queue, handler) {
  const stop = new AbortController();
  const ended = queue.listen(handler, { signal: stop.signal, onError: () => {} });
  return async () => {
    stop.abort();
    await ended;
  };
}

test("results and progress are listed, and follow what happens", async () => {
  const { url, kv } = await served(async (db) => {
    const queue = db.queue("videos", { keepResult: "1h" });
    await queue.enqueue({ file: "a.avi" });
    await queue.enqueue({ file: "broken.avi" }, { backoffSchedule: [] });
    let left = 2;
    let end;
    const handled = new Promise((resolve) => {
      end = resolve;
    });
    const stop = await listening(queue, async ({ file }, message) => {
      try {
        if (file === "broken.avi") throw new TypeError("no video");
        await message.progress({ percent: 99 });
        return { file: "a.mp4", frames: 5n };
      } finally {
        if (--left === 0) end();
      }
    });
    await handled;
    await stop();
    // The queue without results is not about them.
    await db.queue("others").enqueue(1);
  });
  const options = { hash: "/queues?queue=videos", token: readToken, allow: [/403/] };
  await onPage(url, options, async (page) => {
    const results = page.getByRole("region", { name: "Results" });
    const first = results.locator("details").filter({ hasText: "Message 1" });
    await first.getByText("completed").waitFor();
    await first.locator(".preview").getByText('{ file: "a.mp4", frames: 5n }').waitFor();
    const second = results.locator("details").filter({ hasText: "Message 2" });
    await second.getByText("no video").waitFor();
    assert.deepEqual(await results.locator("summary .badge").allInnerTexts(), [
      "dead",
      "TypeError",
      "completed",
    ]);
    await first.locator("summary").click();
    await first.locator("pre").getByText("{ percent: 99 }").waitFor();
    await first.locator("pre").getByText("frames: 5n").waitFor();

    // What happens while the page is open is shown as it comes.
    const queue = kv.queue("videos", { keepResult: "1h" });
    let release;
    const held = new Promise((resolve) => {
      release = resolve;
    });
    const stop = await listening(queue, async (_, message) => {
      await message.progress({ percent: 10 });
      await held;
      return "live result";
    });
    const { id } = await queue.enqueue({ file: "b.avi" });
    const third = results.locator("details").filter({ hasText: `Message ${id} ` });
    await third.locator(".preview").getByText("{ percent: 10 }").waitFor();
    const messages = page.getByRole("region", { name: "Messages", exact: true });
    await messages.locator(".badge").getByText("{ percent: 10 }").waitFor();
    const choice = results.getByRole("group", { name: "Results that are shown" });
    await choice.getByRole("button", { name: "running" }).click();
    await first.waitFor({ state: "detached" });
    await shoot(page, "queues-results");
    await choice.getByRole("button", { name: "all" }).click();
    release();
    await third.getByText("completed").waitFor();
    await third.locator(".preview").getByText('"live result"').waitFor();
    await stop();
  });
});

test("results are listed a page at a time, the newest first", async () => {
  const count = 300;
  const { url } = await served(async (db) => {
    const queue = db.queue("videos", { keepResult: "1h" });
    await Promise.all(Array.from({ length: count }, (_, n) => queue.enqueue({ n })));
    const ids = Array.from({ length: count }, (_, n) => String(n + 1));
    let operation = db.atomic();
    for (const [at, id] of ids.entries()) {
      for (const type of ["started", "progress", "completed"])
        operation.set(["openkv:jobs", "videos", id, type], {
          at: new Date(),
          attempts: 1,
          value: at,
        });
      if (at % 50 === 49) {
        await operation.commit();
        operation = db.atomic();
      }
    }
    await operation.commit();
  });
  await onPage(url, { hash: "/queues?queue=videos" }, async (page) => {
    const results = page.getByRole("region", { name: "Results" });
    const rows = results.locator("details");
    await rows.first().waitFor();
    for (let pages = 0; (await rows.count()) < count; pages++) {
      assert.ok(pages < 10, `${await rows.count()} rows`);
      const before = await rows.count();
      await results.getByRole("button", { name: "Load more" }).click();
      await page.waitForFunction(
        (least) => document.querySelectorAll('[aria-label="Results"] details').length > least,
        before,
      );
    }
    const ids = (await rows.locator("summary").allInnerTexts()).map((text) =>
      Number(/^Message (\d+)/.exec(text)[1]),
    );
    assert.deepEqual(
      ids,
      Array.from({ length: count }, (_, n) => count - n),
    );
    assert.equal(await results.getByRole("button", { name: "Load more" }).count(), 0);
  });
});

test("groups and their limits are listed, and are paused, resumed and drained", async () => {
  const { url, kv } = await served(async (db) => {
    const queue = db.queue("calls");
    const rate = { limit: 10, per: "1m" };
    await queue.setLimits({ concurrency: 50, group: { concurrency: 1, rate } });
    for (const group of ["ada", "ada", "alan"]) await queue.enqueue({ to: group }, { group });
  });
  await onPage(url, { hash: "/queues?queue=calls" }, async (page) => {
    const groups = page.getByRole("region", { name: "Groups", exact: true });
    await groups
      .getByText("Limits of the queue: 50 at a time. Of each group: 1 at a time, 10 in 1 min.")
      .waitFor();
    await groups.getByRole("row", { name: /^ada 2 0 0/ }).waitFor();
    await groups.getByRole("button", { name: "Pause the group ada" }).click();
    await groups.getByRole("row", { name: /^ada paused 2 0 0/ }).waitFor();
    await shoot(page, "queues-groups");
    const queue = kv.queue("calls");
    const message = await queue.receive();
    assert.equal(message.group, "alan");
    await message.ack();
    assert.equal(await queue.receive(), null);
    await groups.getByRole("button", { name: "Resume the group ada" }).click();
    await groups.getByRole("row", { name: /^ada 2 0 0/ }).waitFor();
    await groups.getByRole("button", { name: "Drain the group ada" }).click();
    await page.getByRole("button", { name: "Drain it" }).click();
    await page.getByText("Deleted 2 messages").waitFor();
    await groups.getByText("No group has messages that wait.").waitFor();
  });
});

test("a queue is paused, resumed and drained", async () => {
  const { url, kv } = await served(async (db) => {
    for (const queue of [db.queue("mail"), db.queue("other")]) {
      await queue.enqueue("due");
      await queue.enqueue("later", { delay: 3_600_000 });
    }
  });
  await onPage(url, { hash: "/queues?queue=mail" }, async (page) => {
    await page.getByRole("button", { name: "Pause the queue" }).click();
    const heading = page.getByRole("heading", { name: "Queue mail paused" });
    await heading.waitFor();
    assert.equal(await kv.queue("mail").receive(), null);
    await page.goto(`${url}/#/queues?queue=other`);
    await page.getByRole("heading", { name: "Queue other" }).waitFor();
    await page.goto(`${url}/#/queues?queue=mail`);
    await heading.waitFor();
    await page.getByRole("button", { name: "Resume the queue" }).click();
    await heading.waitFor({ state: "detached" });
    assert.equal((await kv.queue("mail").stats()).paused, false);
    await page.getByRole("button", { name: "Drain the queue" }).click();
    await page.getByRole("button", { name: "Drain it" }).click();
    await page.getByText("Deleted 2 messages").waitFor();
    assert.equal((await kv.queue("mail").stats()).total, 0);
    assert.equal((await kv.queue("other").stats()).total, 2);
  });
});

test("a message that a consumer has is cancelled", async () => {
  let message;
  const { url, kv } = await served(async (db) => {
    await db.queue("mail").enqueue("wrong", { group: "ada" });
    message = await db.queue("mail").receive({ lockDuration: 3_600_000 });
  });
  await onPage(url, { hash: "/queues?queue=mail" }, async (page) => {
    const messages = page.getByRole("region", { name: "Messages", exact: true });
    await messages.getByText(/group ada, 1 attempt/).click();
    await messages.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel it" }).click();
    await messages.getByText("There are no messages.").waitFor();
    const results = page.getByRole("region", { name: "Results" });
    await results.getByText("cancelled").waitFor();
    assert.equal(await message.ack(), false);
    assert.equal((await kv.queue("mail").result(message.id)).state, "cancelled");
  });
});

test("schedules are listed with their next due times, and removed", async () => {
  const { url, kv } = await served(async (db) => {
    const queue = db.queue("reports");
    const daily = { cron: "0 8 * * MON-FRI", timeZone: "Europe/Berlin" };
    await queue.schedule("daily", daily, { report: "sales" });
    await queue.schedule("poll", { every: 3_600_000, offset: 60_000 }, "poll");
  });
  await onPage(url, { hash: "/queues?queue=reports" }, async (page) => {
    const schedules = page.getByRole("region", { name: "Schedules", exact: true });
    const daily = schedules.getByRole("row", { name: /daily/ });
    await daily.getByText("0 8 * * MON-FRI (Europe/Berlin)").waitFor();
    await daily.getByText(/^\d{4}-\d\d-\d\d 0[67]:00:00Z$/).waitFor();
    await daily.getByText('{ report: "sales" }').waitFor();
    await schedules.getByText("every 1 h, 1 min later").waitFor();
    await shoot(page, "queues-schedules");
    await daily.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Remove it" }).click();
    await daily.waitFor({ state: "detached" });
    const { schedules: left } = await kv.queue("reports").schedules();
    assert.deepEqual(
      left.map(({ name }) => name),
      ["poll"],
    );
  });
});

test("a page that comes late is not shown under another state", async () => {
  const { url } = await served(async (db) => {
    const queue = db.queue("mail");
    await Promise.all(Array.from({ length: 60 }, (_, n) => queue.enqueue(n)));
    await queue.enqueue("later", { delay: 3_600_000 });
  });
  await onPage(url, { hash: "/queues?queue=mail" }, async (page) => {
    const messages = page.getByRole("region", { name: "Messages", exact: true });
    const more = messages.getByRole("button", { name: "Load more" });
    await more.waitFor();
    const held = await hold(page, "GET", "cursor=");
    await more.click();
    await held.asked;
    await messages.getByRole("button", { name: "delayed" }).click();
    await more.waitFor({ state: "detached" });
    await held.release();
    assert.equal(await messages.locator("details").count(), 1);
  });
});

test("a page that is asked for twice is listed once", async () => {
  const count = 60;
  const { url } = await served(async (db) => {
    const queue = db.queue("reports");
    for (let i = 0; i < count; i++) await queue.schedule(`s${i}`, { every: 3_600_000 }, i);
  });
  await onPage(url, { hash: "/queues?queue=reports" }, async (page) => {
    const schedules = page.getByRole("region", { name: "Schedules", exact: true });
    const more = schedules.getByRole("button", { name: "Load more" });
    await more.waitFor();
    const held = await hold(page, "GET", "cursor=");
    await more.click();
    await held.asked;
    await more.click();
    await more.waitFor({ state: "detached" });
    await held.release();
    assert.equal(await schedules.locator("tbody tr").count(), count);
  });
});

test("what is pressed twice is done once", async () => {
  const { url, kv } = await served();
  const queue = kv.queue("mail");
  await onPage(url, { hash: "/queues?queue=mail" }, async (page) => {
    const pressTwice = async (name, method, path) => {
      const button = page.getByRole("button", { name, exact: true });
      const held = await hold(page, method, path);
      await button.evaluate((element) => {
        element.click();
        element.click();
      });
      await held.asked;
      assert.equal(await button.isDisabled(), true);
      await held.release();
    };
    await pressTwice("Enqueue", "POST", "/queue/enqueue?");
    await page.getByText("Enqueued as message 1").waitFor();
    assert.equal((await queue.stats()).total, 1);
    await queue.enqueue("another");
    await pressTwice("Take", "GET", "/queue/poll?");
    await page.getByText("attempt 1", { exact: true }).waitFor();
    assert.equal((await queue.stats()).processing, 1);
  });
});

test("with a token that reads nothing of a queue is changed", async () => {
  const { url } = await served(async (db) => {
    await db.queue("mail").enqueue(1, { group: "ada" });
    await db.queue("mail").schedule("s", { every: 3_600_000 }, 1);
  });
  const options = { hash: "/queues?queue=mail", token: readToken, allow: [/403/] };
  await onPage(url, options, async (page) => {
    await page.getByText("read-only", { exact: true }).waitFor();
    for (const name of [
      "Pause the queue",
      "Drain the queue",
      "Pause the group ada",
      "Drain the group ada",
      "Remove",
    ]) {
      const button = page.getByRole("button", { name, exact: true });
      await button.waitFor();
      assert.equal(await button.isDisabled(), true, name);
    }
  });
});
