// Duty: every view on a phone. Before, headings lay over buttons, fields were 28 px high and made phones zoom, and
// the labels of charts ran into each other.

import assert from "node:assert/strict";
import { test } from "node:test";
import { demo } from "./demo.mjs";
import { adminToken, onPage, served, servedFolder, shoot } from "./kit.mjs";

const WIDTHS_PX = [360, 768];
const TARGET_PX = 40;
const FIELD_FONT_PX = 16;

const LONG = "a-long-name-".repeat(8);

/** Entries of every kind, and what is long, dead, delayed and taken. */
async function seed(kv) {
  await demo(kv);
  await kv.set([LONG, LONG, 1n], { text: "x".repeat(20_000) });
  const queue = kv.queue(LONG);
  await queue.enqueue({ to: LONG, body: "y".repeat(3000) }, { backoffSchedule: [] });
  await (await queue.receive()).nack({ error: new Error(LONG) });
  await queue.enqueue({ taken: true });
  await queue.receive({ lockDuration: 3_600_000 });
  await queue.enqueue({ waits: LONG }, { priority: 9 });
  await queue.enqueue({ later: LONG }, { delay: 3_600_000 });
  await queue.setLimits({ concurrency: 5, group: { rate: { limit: 10, per: "1h30m" } } });
  await queue.enqueue({ waits: LONG }, { group: LONG, keepResult: "1h" });
  await queue.schedule(LONG, { cron: "0 8 * * MON-FRI", timeZone: "Europe/Berlin" }, LONG);
  const told = { at: new Date(), attempts: 1 };
  for (const [id, type, more] of [
    ["71", "completed", { value: LONG.repeat(9) }],
    ["72", "progress", { value: LONG }],
    ["72", "failed", { error: { name: LONG, message: LONG.repeat(3) } }],
  ])
    await kv.set(["openkv:jobs", LONG, id, type], { ...told, ...more });
  await kv.createIndex({ prefix: ["users"], fields: ["name"] });
}

const VIEWS = [
  ["overview", "Slow operations"],
  ["entries", '"users"'],
  ['entries?key=["users","ada"]', "Versionstamp"],
  [`entries?key=${JSON.stringify([LONG, LONG]).slice(0, -1)},1n]`, "Versionstamp"],
  ['entries?key=["images","logo"]', "89 50 4e 47"],
  ["entries?form=list&prefix=users", "User 1"],
  [`queues?queue=${LONG}`, "Requeue all"],
  ["queues", "There are no dead letters."],
  ["search", "(auto)"],
  ["watch", "Changes appear here"],
  ["atomic", "Mutations"],
  ["metrics", "Operations, times in ms"],
];

/** What is wrong with the places and sizes of what is shown. */
function measured({ targetPx, fontPx }) {
  const faults = [];
  const name = (element) =>
    `${element.tagName.toLowerCase()} "${(element.getAttribute("aria-label") ?? element.textContent).slice(0, 40)}"`;
  const wide = Math.max(
    document.documentElement.scrollWidth,
    document.querySelector("main").scrollWidth,
  );
  if (wide > innerWidth) faults.push(`the page is ${wide} px wide`);
  // What an element shows, without what the elements around it cut off.
  const placeOf = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const isHeading = /^H\d$/.test(element.tagName);
    let { left, top, right, bottom } = (isHeading ? range : element).getBoundingClientRect();
    for (let at = element.parentElement; at !== null; at = at.parentElement) {
      if (getComputedStyle(at).overflow === "visible") continue;
      const box = at.getBoundingClientRect();
      [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
      [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
    }
    return { element, left, top, right, bottom };
  };
  const shown = [
    ...document.querySelectorAll(
      "h1, h2, h3, a, button, input, select, textarea, summary, .editor",
    ),
  ]
    .filter((element) => element.checkVisibility() && !element.classList.contains("skip"))
    .map(placeOf)
    .filter(({ left, top, right, bottom }) => right - left > 1 && bottom - top > 1 && bottom > 0);
  for (const [at, one] of shown.entries())
    for (const other of shown.slice(at + 1)) {
      if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (across > 1.5 && down > 1.5)
        faults.push(`${name(one.element)} and ${name(other.element)} overlap`);
    }
  if (targetPx === undefined) return faults;
  for (const element of document.querySelectorAll("a, button, input, select, textarea, summary")) {
    if (!element.checkVisibility() || element.classList.contains("skip")) continue;
    const { height } = (element.closest("label.check") ?? element).getBoundingClientRect();
    // A link in a list of hits or of changes is text.
    if (height < targetPx - 0.5 && element.tagName !== "A")
      faults.push(`${name(element)} is ${height} px high`);
    const font = Number.parseFloat(getComputedStyle(element).fontSize);
    if (["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName) && font < fontPx)
      faults.push(`${name(element)} has letters of ${font} px`);
  }
  return faults;
}

for (const colorScheme of ["light", "dark"]) {
  test(`nothing overlaps or is too small to press in any view, ${colorScheme}`, async () => {
    const { url } = await served(seed);
    const all = [];
    for (const width of WIDTHS_PX) {
      const options = { viewport: { width, height: 740 }, colorScheme, allow: [/404/] };
      await onPage(url, options, async (page) => {
        for (const [at, [hash, text]] of VIEWS.entries()) {
          await page.goto(`${url}/#/${hash}`);
          await page.getByText(text).first().waitFor();
          await shoot(page, `phone-${width}-${colorScheme}-${at}`);
          const bounds = width > 760 ? {} : { targetPx: TARGET_PX, fontPx: FIELD_FONT_PX };
          for (const fault of await page.evaluate(measured, bounds))
            all.push(`${width} px, ${hash.slice(0, 40)}: ${fault}`);
        }
      });
    }
    assert.deepEqual(all, []);
  });
}

/** Notes where the charts that are drawn from now on put their texts. `speed` is how fast the time of the page goes. */
function noteLabels(speed) {
  const now = Date.now.bind(Date);
  const start = now();
  Date.now = () => start + (now() - start) * speed;
  window.labels = new Map();
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    window.labels.set(this.canvas, []);
    clearRect.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const size = this.measureText(text);
    const { x: left, y: middle } = this.getTransform().transformPoint({ x, y });
    const box = {
      text,
      left: left - size.actualBoundingBoxLeft,
      right: left + size.actualBoundingBoxRight,
      top: middle - size.actualBoundingBoxAscent,
      bottom: middle + size.actualBoundingBoxDescent,
    };
    window.labels.get(this.canvas)?.push(box);
    fillText.call(this, text, x, y, ...rest);
  };
}

/** The labels of the charts that meet, or that the edge of their chart cuts off; undefined before all charts are drawn. */
function labelFaults() {
  const canvases = [...document.querySelectorAll(".chart canvas")];
  const drawn = canvases.map((canvas) => window.labels.get(canvas) ?? []);
  const isTime = ({ text }) => /^\d\d:\d\d:\d\d/.test(text);
  if (drawn.length === 0 || drawn.some((labels) => labels.filter(isTime).length < 2))
    return undefined;
  return canvases.flatMap(({ width, height }, chart) => {
    const labels = drawn[chart];
    const cut = labels.filter(({ left, right, top, bottom }) => {
      return left < 0 || top < 0 || right > width || bottom > height;
    });
    const met = labels.flatMap((one, at) =>
      labels
        .slice(at + 1)
        .filter((other) => {
          const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
          return across > -2 && Math.min(one.bottom, other.bottom) > Math.max(one.top, other.top);
        })
        .map((other) => `${one.text} meets ${other.text}`),
    );
    return [...cut.map(({ text }) => `${text} is cut off`), ...met];
  });
}

// The labels are drawn on a canvas, so what measures elements does not see them. The last time of a chart was
// cut off at its right edge.
for (const speed of [1, 60])
  test(`labels of charts do not meet, time times ${speed}`, async () => {
    const { url, kv } = await served(seed);
    const options = { hash: "/entries", viewport: { width: 360, height: 740 } };
    await onPage(url, options, async (page) => {
      await page.evaluate(noteLabels, speed);
      for (const view of ["overview", "metrics"]) {
        await page.goto(`${url}/#/${view}`);
        await page.locator(".chart canvas").first().waitFor();
        await Promise.all(Array.from({ length: 3000 }, (_, i) => kv.set(["load", i], i)));
        const faults = await page.waitForFunction(labelFaults);
        assert.deepEqual(await faults.jsonValue(), [], view);
        await shoot(page, `phone-charts-${speed}-${view}`);
      }
    });
  });

for (const history of ["7d", undefined])
  test(`the history of an entry fits a phone, ${history ?? "without a history"}`, async () => {
    const { url } = await served(
      async (kv) => {
        for (let i = 0; i < 30; i++) await kv.set([LONG, LONG], { text: "x".repeat(2000), i });
      },
      {},
      history === undefined ? {} : { history },
    );
    const hash = `/entries?key=${JSON.stringify([LONG, LONG])}`;
    const options = { hash, viewport: { width: 360, height: 740 }, allow: [/422/] };
    await onPage(url, options, async (page) => {
      await page.getByText("History", { exact: true }).click();
      if (history === undefined) await page.getByText("keeps no history").waitFor();
      else {
        await page.locator("details.history details summary").first().click();
        await page.locator("details.history details summary").nth(1).click();
        await page.getByRole("button", { name: "Restore this value" }).waitFor();
        await page.getByRole("button", { name: "Older versions" }).waitFor();
      }
      await shoot(page, `phone-history-${history ?? "none"}`);
      const bounds = { targetPx: TARGET_PX, fontPx: FIELD_FONT_PX };
      assert.deepEqual(await page.evaluate(measured, bounds), []);
    });
  });

test("the list of databases fits a phone", async () => {
  const server = await servedFolder();
  const options = { token: adminToken, viewport: { width: 360, height: 740 } };
  await onPage(server.url, options, async (page) => {
    await page.getByText("Type a name above and press Create.").waitFor();
    const name = "a-long-name-of-a-database-that-has-many-letters";
    await page.getByLabel("Name of a new database").fill(name);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("region", { name: `Database ${name}` }).waitFor();
    await page.getByText(/^made \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/).waitFor();
    await shoot(page, "phone-databases");
    const bounds = { targetPx: TARGET_PX, fontPx: FIELD_FONT_PX };
    assert.deepEqual(await page.evaluate(measured, bounds), []);
  });
});

test("fields are large for a finger on a wide screen too", async () => {
  const { url } = await served(demo);
  const options = { hash: "/watch", viewport: { width: 1280, height: 800 } };
  await onPage(url, { ...options, hasTouch: true, isMobile: true }, async (page) => {
    const field = page.getByLabel("Prefix");
    await field.waitFor();
    assert.ok((await field.boundingBox()).height >= TARGET_PX);
  });
});

test("times have one form, and the default queue one name", async () => {
  const { url } = await served(seed);
  await onPage(url, { hash: `/queues?queue=${LONG}` }, async (page) => {
    await page.getByText(/dead since \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/).waitFor();
    await page
      .getByText(/^Enqueued \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ, due/)
      .first()
      .waitFor({ state: "attached" });
    assert.doesNotMatch(await page.locator("main").innerText(), /\d\dT\d\d:\d\d/);
    await page.getByRole("link", { name: "(default)" }).click();
    await page.getByRole("heading", { name: "Queue (default)" }).waitFor();
  });
});

test("all dead letters are enqueued again, also more than a page of them", async () => {
  const letters = 60;
  const { url, kv } = await served(async (db) => {
    const queue = db.queue("mail");
    for (let i = 0; i < letters; i++) await queue.enqueue({ letter: i }, { backoffSchedule: [] });
    for (let i = 0; i < letters; i++)
      await (await queue.receive()).nack({ error: new Error("no") });
  });
  await onPage(url, { hash: "/queues?queue=mail" }, async (page) => {
    const dead = page.getByRole("region", { name: "Dead letters" });
    await dead.locator(".preview", { hasText: "{ letter: 0 }" }).waitFor();
    await dead.getByRole("button", { name: "Requeue all" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Requeue all" }).click();
    await page.getByText(`Enqueued ${letters} messages again`).waitFor();
    await dead.getByText("There are no dead letters.").waitFor();
    const { pending, dead: left } = await kv.queue("mail").stats();
    assert.deepEqual([pending, left], [letters, 0]);
  });
});
