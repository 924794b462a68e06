// Duty: a Next.js application with the cache of docs/integrations.md: built, moved to another folder, and run by
// two processes, which share pages, `use cache` and fetch, and their revalidation.
//
//   node __test__/next/run.mjs

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { serve } from "../../index.mjs";
import { packedFiles } from "../../scripts/pack.mjs";
import { newFolder } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const site = join(here, ".site");
const shell = process.platform === "win32";
/** Hang guards. */
const BUILD_MS_MAX = 180_000;
const START_MS_MAX = 60_000;
const TEST_MS_MAX = 120_000;

const folder = newFolder("next");
const moved = join(folder, "moved");
const processes = new Set();
let upstream;

before(() => {
  install();
  writeSite();
  const next = join(here, "node_modules", "next", "dist", "bin", "next");
  const { status, stdout, stderr } = spawnSync(process.execPath, [next, "build"], {
    cwd: site,
    encoding: "utf8",
    timeout: BUILD_MS_MAX,
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1", OPENKV_URL: "http://no.server.invalid" },
  });
  assert.equal(status, 0, stdout + stderr);
  cpSync(join(site, ".next", "standalone"), moved, { recursive: true, verbatimSymlinks: true });
  rmSync(site, { recursive: true, force: true });
});

before(async () => {
  let asked = 0;
  upstream = createServer((_request, response) => response.end(`answer ${++asked}`));
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
});

after(async () => {
  await Promise.all([...processes].map((each) => each.kill()));
  upstream?.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

/** What each kind of entry is, by the tag that it has. */
const paths = { page: "/isr", cached: "/cached?key=1", fetched: "/fetched" };
const tags = Object.keys(paths);

test("two processes on one file share entries and revalidations", { timeout: TEST_MS_MAX }, () =>
  shared({ OPENKV_URL: join(folder, "cache.sqlite3") }),
);

test("two processes at one server share entries and revalidations", {
  timeout: TEST_MS_MAX,
}, async () => {
  const accessToken = "the-token-of-this-test";
  const path = join(folder, "served.sqlite3");
  const server = await serve({ path, listen: "127.0.0.1:0", accessToken });
  await shared({ OPENKV_URL: server.url, OPENKV_ACCESS_TOKEN: accessToken });
  await server.close();
});

test("one process has its cache in memory", { timeout: TEST_MS_MAX }, async () => {
  const only = await start({ OPENKV_URL: ":memory:" });
  const first = await settled([only]);
  assert.deepEqual(await all(only), first);
  await revalidate(only, tags);
  assertNew(await settled([only]), first);
  await only.kill();
});

test("the handlers are what Next.js declares", { timeout: TEST_MS_MAX }, () => {
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const { stdout } = spawnSync(process.execPath, [compiler, "-p", here], { encoding: "utf8" });
  assert.equal(stdout, "");
});

async function shared(env) {
  const [a, b] = await Promise.all([start(env), start(env)]);
  const first = await settled([a, b]);
  assert.deepEqual(await all(a), first);
  assert.deepEqual(await all(b), first);

  await revalidate(a, tags);
  const second = await settled([b, a]);
  assertNew(second, first);

  // One tag leaves the entries of the others alone.
  await revalidate(b, ["fetched"]);
  const third = await settled([a, b]);
  assert.deepEqual({ ...third, fetched: second.fetched }, second);
  assert.notEqual(third.fetched, second.fetched);

  // What a process has made is there after its end.
  await Promise.all([a.kill(), b.kill()]);
  const c = await start(env);
  assert.deepEqual(await all(c), third);
  await c.kill();
}

/** What processes answer, once all of them answer the same: an answer comes before its entry is stored. */
async function settled(these) {
  for (;;) {
    const [first, ...others] = await Promise.all(these.map(all));
    const again = await all(these[0]);
    const same = [...others, again].every((one) => JSON.stringify(one) === JSON.stringify(first));
    if (same) return first;
  }
}

async function all({ get }) {
  const [page, cached, fetched] = await Promise.all(Object.values(paths).map(get));
  return { page: /made (\S+) tagged (\S+) end/.exec(page).slice(1).join(), cached, fetched };
}

function assertNew(now, before) {
  for (const tag of tags) assert.notEqual(now[tag], before[tag], tag);
}

async function revalidate({ url }, names) {
  for (const name of names) {
    const { ok } = await fetch(`${url}/revalidate?tag=${name}`, { method: "POST" });
    assert.ok(ok, name);
  }
}

/** A process of the moved application. */
async function start(env) {
  const port = await freePort();
  const child = spawn(process.execPath, ["server.js"], {
    cwd: join(moved, ".site"),
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      ...process.env,
      ...env,
      PORT: `${port}`,
      HOSTNAME: "127.0.0.1",
      UPSTREAM: `http://127.0.0.1:${upstream.address().port}/`,
    },
  });
  let errors = "";
  child.stderr.on("data", (chunk) => (errors += chunk));
  const exited = once(child, "exit");
  const url = `http://127.0.0.1:${port}`;
  const one = {
    url,
    async get(path) {
      const response = await fetch(url + path);
      const body = await response.text();
      assert.equal(response.status, 200, `${path}: ${body}\n${errors}`);
      return body;
    },
    async kill() {
      processes.delete(one);
      child.kill("SIGKILL");
      await exited;
      assert.equal(errors, "");
    },
  };
  processes.add(one);
  const end = Date.now() + START_MS_MAX;
  for (;;) {
    try {
      await fetch(`${url}/started`);
      return one;
    } catch (error) {
      if (Date.now() > end || child.exitCode !== null) throw new Error(errors, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** The packages of this folder, and openkv as it would be published, with the addon of this machine. */
function install() {
  if (!existsSync(join(here, "node_modules", ".package-lock.json"))) {
    const args = ["ci", "--ignore-scripts"];
    const { status } = spawnSync("npm", args, { cwd: here, stdio: "inherit", shell });
    assert.equal(status, 0);
  }
  const target = join(here, "node_modules", "openkv");
  rmSync(target, { recursive: true, force: true });
  const addons = readdirSync(join(root, "dist/native")).filter((name) => name.endsWith(".node"));
  for (const path of [...packedFiles(), ...addons.map((name) => `dist/native/${name}`)]) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    cpSync(join(root, path), join(target, path));
  }
}

/** The application of app/, with the files that the page shows. */
function writeSite() {
  rmSync(site, { recursive: true, force: true });
  cpSync(join(here, "app"), join(site, "app"), { recursive: true });
  writeFileSync(join(site, "package.json"), '{ "name": "site", "private": true }\n');
  const page = readFileSync(join(root, "docs", "integrations.md"), "utf8");
  const files = [...page.matchAll(/```javascript\n(\/\/ (\S+)\n.*?)```/gs)];
  assert.equal(files.length, 3);
  for (const [, source, name] of files) {
    // node_modules is one folder above the site.
    const above = `outputFileTracingRoot: ${JSON.stringify(here)}, turbopack: { root: ${JSON.stringify(here)} },`;
    writeFileSync(
      join(site, name),
      source.replace("export default {", `export default { ${above}`),
    );
  }
}
