// Duty: texts that are markup or code stay texts, wherever a database shows them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64 } from "../../index.mjs";
import { onPage, served } from "./kit.mjs";

const HOSTILE = [
  "<script>globalThis.ran = 1</script>",
  "<img src=x onerror='globalThis.ran = 2'>",
  "<svg/onload=globalThis.ran=3>",
  '"><iframe srcdoc="<script>parent.ran=4</script>">',
  "javascript:globalThis.ran=5",
  "'-globalThis.ran=6-'",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template that is not one.
  "${globalThis.ran=7}",
  "{{constructor.constructor('globalThis.ran=8')()}}",
  "</textarea></title></style><script>globalThis.ran=9</script>",
  "<style>*{display:none !important}</style>",
  "<a href='javascript:globalThis.ran=10'>click</a>",
  "<math><mi//xlink:href='data:x,<script>globalThis.ran=11</script>'>",
  "\u202etxt.exe\u0000\u001b[31m",
  "__proto__",
  "constructor",
];

async function fill(kv) {
  for (const [i, text] of HOSTILE.entries()) {
    await kv.set(["h", text], { [text]: text, nested: [new Map([[text, new Set([text])]])] });
    await kv.set(["v", i], text);
    await kv.set(["e", i], Object.assign(new Error(text), { stack: text }));
    const name = `q${i}-${text.slice(0, 40)}`;
    const queue = kv.queue(name);
    await queue.enqueue({ text }, { backoffSchedule: [] });
    await (await queue.receive()).nack({ error: new Error(text) });
    const { id } = await queue.enqueue({ text }, { keepResult: "1h" });
    const job = ["openkv:jobs", name, id];
    await kv.set([...job, "progress"], { at: new Date(), value: text });
    const error = { name: text, message: text };
    await kv.set([...job, "dead"], { at: new Date(), attempts: 1, error });
  }
  await kv.set(["image"], new TextEncoder().encode(`<svg>${HOSTILE[0]}</svg>`));
  await kv.set(["proto"], JSON.parse('{"__proto__": {"ran": 12}, "x": 1}'));
  await kv.set(["u64"], new KvU64(1n));
}

/** Elements that only markup of a value could have made, and what code of a value would have set. */
const traces = (page) =>
  page.evaluate(() => ({
    ran: globalThis.ran,
    polluted: {}.ran,
    made: document.querySelectorAll(
      "#app script, #app iframe, #app math, #app style, #app img[onerror], #app svg[onload], " +
        "a[href^='javascript:' i]",
    ).length,
  }));
const CLEAN = { ran: undefined, polluted: undefined, made: 0 };

test("keys and values are text in the tree, the list and an entry", async () => {
  const { url } = await served(fill);
  await onPage(url, { hash: "/entries?prefix=h" }, async (page) => {
    await page
      .getByRole("treeitem")
      .nth(HOSTILE.length - 1)
      .waitFor();
    assert.deepEqual(await traces(page), CLEAN);
    for (const text of HOSTILE) {
      const key = encodeURIComponent(JSON.stringify(["h", text]));
      await page.goto(`${url}/#/entries?form=list&prefix=h&key=${key}`);
      await page.getByRole("region", { name: "Entry" }).getByText("nested").first().waitFor();
      await page.getByRole("button", { name: "Tree" }).last().click();
      await page.locator(".value-tree").waitFor();
    }
    await page.goto(`${url}/#/entries?form=list&prefix=${encodeURIComponent("[]")}`);
    await page.getByRole("listitem").nth(10).waitFor();
    assert.deepEqual(await traces(page), CLEAN);
  });
});

test("errors, bytes and prototypes are text", async () => {
  const { url } = await served(fill);
  await onPage(url, { hash: '/entries?key=["e",0]' }, async (page) => {
    await page.getByText("error(").waitFor();
    await page.goto(`${url}/#/entries?key=["proto"]`);
    await page.getByText("__proto__").waitFor();
    await page.goto(`${url}/#/entries?key=["image"]`);
    await page.getByText("3c 73 76 67").waitFor();
    // SVG is markup: it is no image here.
    assert.equal(await page.locator(".bytes img").count(), 0);
    assert.deepEqual(await traces(page), CLEAN);
  });
});

test("names of queues, messages and errors are text", async () => {
  const { url } = await served(fill);
  await onPage(url, { hash: "/overview" }, async (page) => {
    await page.getByRole("link", { name: /^q0-/ }).waitFor();
    for (const i of HOSTILE.keys()) {
      await page.goto(`${url}/#/queues`);
      await page.getByRole("link", { name: new RegExp(`^q${i}-`) }).click();
      for (const name of ["Messages", "Results", "Dead letters"]) {
        const list = page.getByRole("region", { name, exact: true });
        await list.getByText(/^Message \d/).click();
        await list.locator(".letter pre").first().waitFor();
      }
    }
    assert.deepEqual(await traces(page), CLEAN);
    await page.goto(`${url}/#/metrics`);
    await page.getByRole("button", { name: "Show the text" }).click();
    await page.getByRole("region", { name: "Text for Prometheus" }).waitFor();
    assert.deepEqual(await traces(page), CLEAN);
  });
});

test("changes and links are text", async () => {
  const { url, kv } = await served();
  await onPage(url, { hash: "/watch", allow: [/404/] }, async (page) => {
    await page.getByText("live").waitFor();
    for (const text of HOSTILE) await kv.set(["w", text], { [text]: text });
    await page
      .getByRole("listitem")
      .nth(HOSTILE.length - 1)
      .waitFor();
    for (const text of HOSTILE) {
      const hash = `/entries?prefix=${encodeURIComponent(text)}&where=${encodeURIComponent(text)}`;
      await page.goto(`${url}/#${hash}&key=${encodeURIComponent(text)}`);
      await page.goto(`${url}/#/${encodeURIComponent(text)}`);
      await page.goto(`${url}/#/watch`);
    }
    await page.getByText("live").waitFor();
    assert.deepEqual(await traces(page), CLEAN);
  });
});
