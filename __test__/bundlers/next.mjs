// Duty: a Next.js application that uses openkv, built as docs/bundlers.md says (output: "standalone"),
// moved to another folder and run there. Not in CI: Next.js is large, and its build takes a minute.
//
//   node __test__/bundlers/next.mjs

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pack } from "../../scripts/pack.mjs";
import { newFolder } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";

const NEXT = ["next@16", "react@19", "react-dom@19"];
const ANSWER_MS_MAX = 60_000;

const ROUTE = `
import { openKv } from "openkv";
export const dynamic = "force-dynamic";
export async function GET() {
  try {
    const kv = await openKv("./next.sqlite3");
    await kv.atomic().sum(["visits"], 1).commit();
    const { value } = await kv.get(["visits"]);
    await kv.close();
    return Response.json({ visits: value });
  } catch (error) {
    return Response.json({ code: error.code, message: error.message });
  }
}
`;
const LAYOUT = "export default ({ children }) => <html><body>{children}</body></html>;\n";

const page = readFileSync(new URL("../../docs/bundlers.md", import.meta.url), "utf8");
const [, configuration] = /```js\n(\/\/ next\.config\.mjs\n.*?)```/s.exec(page);
const folder = newFolder("next");
const site = join(folder, "site");
try {
  const tarballs = pack({ out: join(folder, "tarballs") }).map(({ file }) => file);
  mkdirSync(join(site, "app", "kv"), { recursive: true });
  writeFileSync(join(site, "package.json"), '{ "name": "site", "private": true }\n');
  writeFileSync(join(site, "app", "layout.jsx"), LAYOUT);
  writeFileSync(join(site, "app", "kv", "route.js"), ROUTE);
  execute("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...NEXT, ...tarballs]);

  const told = await answersOf(configuration);
  assert.deepEqual(told, [{ visits: 1 }, { visits: 2 }]);
  const [{ code, message }] = await answersOf(
    configuration.replace(/.*serverExternalPackages.*\n/, ""),
  );
  assert.equal(code, "ERR_OPENKV_ADDON");
  assert.match(message, /serverExternalPackages: \["openkv"\]/);
  console.log("Next.js: works when it is configured, and says how when it is not");
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Builds the site, moves its server away and asks it twice. */
async function answersOf(source) {
  writeFileSync(join(site, "next.config.mjs"), source);
  rmSync(join(site, ".next"), { recursive: true, force: true });
  execute("npx", ["next", "build"]);
  const moved = newFolder("next-moved");
  cpSync(join(site, ".next", "standalone"), moved, { recursive: true, verbatimSymlinks: true });
  const port = await freePort();
  const env = { ...process.env, PORT: `${port}`, HOSTNAME: "127.0.0.1" };
  const server = spawn(process.execPath, ["server.js"], { cwd: moved, env, stdio: "ignore" });
  try {
    const url = `http://127.0.0.1:${port}/kv`;
    return [await answer(url), await answer(url)];
  } finally {
    server.kill("SIGKILL");
    rmSync(moved, { recursive: true, force: true });
  }
}

async function answer(url) {
  const end = Date.now() + ANSWER_MS_MAX;
  for (;;) {
    try {
      return await (await fetch(url)).json();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

function execute(command, args) {
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: site, encoding: "utf8", env });
  assert.equal(status, 0, `${command} ${args.join(" ")}\n${stdout}${stderr}`);
}
