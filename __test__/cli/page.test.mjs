// Duty: the commands of docs/cli.md run, block by block, in a folder with the entries that they name.
//
// The page copied into a database that the line before had filled, which is refused.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const page = readFileSync(join(root, "docs/cli.md"), "utf8");
const folder = newFolder("cli-page");
const path = join(folder, "app.sqlite3");
const has = (program) => spawnSync(program, ["--version"]).error === undefined;
/** A hang guard. */
const BLOCK_MS_MAX = 60_000;

/** Commands that other tests run: they go on until they are interrupted, or need what runs beside them. */
const ELSEWHERE = [/ watch /, / serve /, / (db|token) create /, /^openkv (-d|top) http/];

/** The time after the first write: the page's times are before the database began. */
let moment;

before(async () => {
  const kv = await openKv(path, { history: "7d" });
  await kv.set(["price"], 100);
  await kv.set(["user"], { name: "Ada", age: 36 });
  await kv.set(["any"], new Map([["a", 1n]]));
  await kv.set(["logo"], new Uint8Array(100));
  await kv.set(["session", "abc"], "s");
  await kv.set(["users", "alan"], { name: "Alan" });
  moment = new Date().toISOString();
  await kv.set(["price"], 120);
  const mail = kv.queue("mail");
  await mail.enqueue("due");
  for (let i = 0; i < 20; i++) await mail.enqueue(i, { backoffSchedule: [] });
  for (let i = 0; i < 20; i++) await (await mail.receive()).nack();
  await kv.close();
});

const blocks = [...page.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) => block);

test("the page has blocks", () => assert.ok(blocks.length >= 10));

for (const [at, block] of blocks.entries()) {
  const lines = block.split("\n").filter((line) => !ELSEWHERE.some((one) => one.test(line)));
  const skip =
    (!has("bash") && "needs bash") || (block.includes("jq ") && !has("jq") && "needs jq");
  test(`block ${at + 1} of docs/cli.md: ${lines[0]}`, { skip }, () => {
    const script = lines.join("\n").replace(/2026-11-2\d(?:T[\d:]+Z)?/g, moment);
    const shell = `set -e -o pipefail
      openkv() { '${process.execPath}' '${join(root, "dist/cli/openkv.js")}' "$@"; }
      ${script}`;
    const { status, stdout, stderr } = spawnSync("bash", ["-c", shell], {
      cwd: folder,
      input: "",
      encoding: "utf8",
      timeout: BLOCK_MS_MAX,
      env: { ...process.env, OPENKV_HISTORY: "" },
    });
    assert.equal(status, 0, `${script}\n${stdout}${stderr}`);
  });
}
