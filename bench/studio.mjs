// `node bench/studio.mjs`: how long the studio takes in Chromium on a file of many entries: from the
// beginning of a navigation until the view can be used, and from a click on a branch until its first
// children are drawn. The server is a process of its own; each figure is from a browser profile without a
// cache, taken in the page itself.
//
//   --rounds N       (default 7); a figure is the median
//   --entries N      of the branch that is opened (default 1000000); others are beside it
//   --dir DIRECTORY  where the file is (default bench/.data)
//
// It needs `npm run build:studio` and Chromium, as the tests of the studio do.

import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { MISSING, findChromium } from "../__test__/kit/chromium.mjs";
import { kill, spawnServer } from "../__test__/server/children.mjs";
import { openKv } from "../index.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { median } from "./measure.mjs";

const { chromium } = createRequire(new URL("../studio/package.json", import.meta.url))(
  "playwright-core",
);
const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    entries: { type: "string", default: "1000000" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
  },
});
const [rounds, entries] = [Number(options.rounds), Number(options.entries)];
const accessToken = "token-of-the-benchmark";
/** Branches beside the large one, as a database has them. */
const OTHERS = ["users", "orders", "sessions"];
const OTHERS_ENTRIES = 1000;
const COMMIT_ENTRIES = 500;

const FIRST_VIEW_MS = 300;
const OPENED_MS = 200;

/** What is measured: where the page begins, what shows that it can be used, and the aim. */
const FIRST_VIEWS = [
  { title: "overview: its figures", hash: "/overview", seen: ".tile dd", aim: FIRST_VIEW_MS },
  {
    title: "overview: the number of entries",
    ...{ hash: "/overview", seen: ".tile dd", text: "," },
  },
  { title: "entries: the tree", hash: "/entries", seen: ".rows .line .part", aim: FIRST_VIEW_MS },
];

const executablePath = findChromium();
if (executablePath === undefined) throw new Error(MISSING);
const directory = dataDirectory(options.dir);
console.log(`Machine: ${machineLine(directory)}.`);
const path = join(directory, "studio.sqlite3");
await fill(path);
const server = await spawnServer({ path, accessToken, listen: "127.0.0.1:0" });
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const tree = { hash: "/entries", seen: '.rows .line[aria-expanded="false"]' };
const measured = [
  { title: "for comparison: a text of the server, without script", once: plainPage },
  ...FIRST_VIEWS.map((view) => ({
    ...view,
    once: () => onPage(view, (page) => page.evaluate(() => globalThis.seen)),
  })),
  {
    title: `a branch of ${entries.toLocaleString("en")} children: its first`,
    aim: OPENED_MS,
    once: () => onPage(tree, opened),
  },
].map((one) => ({ ...one, times: [] }));
// In turns: other work on the machine falls on all alike.
for (let round = 0; round < rounds; round++)
  for (const { once, times } of measured) times.push(await once());
for (const one of measured) report(one);
await browser.close();
await kill(server);
rmSync(directory, { recursive: true, force: true });

/** Opens a page in a profile of its own, waits until something is there, and answers what `measure` does. */
async function onPage({ hash, seen, text = "" }, measure) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(untilSeen, { selector: seen, text });
  await page.goto(`${server.url}/#${hash}?token=${accessToken}`);
  await page.waitForFunction(() => globalThis.seen !== undefined);
  const measured = await measure(page);
  await context.close();
  return measured;
}

/** How long Chromium takes to show anything of a server. */
async function plainPage() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(`${server.url}/~studio/server.json`);
  await page.waitForFunction(
    () => performance.getEntriesByName("first-contentful-paint").length > 0,
  );
  const measured = await page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0].startTime,
  );
  await context.close();
  return measured;
}

/** In the page: notes the time since the navigation began at which an element with a text is drawn. */
function untilSeen({ selector, text }) {
  const observer = new MutationObserver(() => {
    const found = [...document.querySelectorAll(selector)];
    if (!found.some((element) => element.textContent.includes(text))) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => (globalThis.seen = performance.now())));
  });
  observer.observe(document, { subtree: true, childList: true, characterData: true });
}

/** Clicks on the large branch, and returns the time until its first children are drawn. */
function opened(page) {
  return page.evaluate(async () => {
    const branches = [...document.querySelectorAll(".rows .line")];
    const large = branches.find((line) => line.textContent.includes('"many"'));
    const begun = performance.now();
    large.click();
    const isThere = () => document.querySelector('.rows [aria-level="2"] .part') !== null;
    while (!isThere()) await new Promise((resolve) => requestAnimationFrame(resolve));
    await new Promise((resolve) => setTimeout(resolve));
    return performance.now() - begun;
  });
}

function report({ title, aim, times }) {
  const [middle, ...ends] = [median(times), Math.min(...times), Math.max(...times)].map(Math.round);
  const mark = aim === undefined ? "" : ` (≤ ${aim}) ${middle <= aim ? "✓" : "✗"}`;
  console.log(`${title}: ${middle} ms${mark}, ${ends.join(" – ")}`);
}

async function fill(path) {
  const kv = await openKv(path, { durability: "normal", limits: "wide" });
  const branches = [["many", entries], ...OTHERS.map((name) => [name, OTHERS_ENTRIES])];
  for (const [name, count] of branches) {
    for (let from = 0; from < count; from += COMMIT_ENTRIES) {
      const operation = kv.atomic();
      for (let n = from; n < Math.min(from + COMMIT_ENTRIES, count); n++)
        operation.set([name, n], { id: n, name: `name ${n}`, age: n % 90, ok: true });
      await operation.commit();
    }
  }
  await kv.close();
}
