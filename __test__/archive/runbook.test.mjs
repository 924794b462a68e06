// Duty: the runbook of docs/backup.md, step by step as it is printed: the page is the source of what runs here.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { openKv, serve } from "../../index.mjs";
import { newestTimeline } from "./listing.mjs";
import { bin, contents, folderOfTests, outcomeOf, withoutShell } from "../cli/running.mjs";
import { until } from "../kit/time.mjs";

const inFolder = folderOfTests();
const MOMENT = "2026-01-31T12:03:00Z";
const PLACE = "/mnt/backup";

/** The blocks of the shell in the section whose heading begins like this, without their indent. */
function stepsOf(heading) {
  const page = readFileSync(new URL("../../docs/backup.md", import.meta.url), "utf8");
  const section = page.split(/^## /m).find((one) => one.startsWith(heading));
  assert.ok(section, `docs/backup.md has no section ${heading}`);
  return [...section.matchAll(/^ *```sh\n(.*?)^ *```/gms)].map(([, block]) =>
    block.replace(/^ +/gm, "").trim(),
  );
}

/** Runs a block in the folder of the test, as a person would paste it. An archiver is ended after a while. */
async function paste(block, moment) {
  const script = block.replaceAll(MOMENT, moment).replaceAll(PLACE, inFolder("mnt"));
  const env = {
    ...process.env,
    NO_COLOR: "1",
    PATH: inFolder("bin") + delimiter + process.env.PATH,
  };
  const runsOn = script.split("\n").findLastIndex((line) => line.includes("archive run"));
  const foreground = script.split("\n");
  const archiver = runsOn < 0 ? undefined : foreground.splice(runsOn, 1)[0];
  const outcome = await outcomeOf(
    spawn("sh", ["-e", "-c", foreground.join("\n")], { cwd: inFolder("."), env }),
  );
  assert.equal(outcome.code, 0, `${script}\n${outcome.err}`);
  if (archiver === undefined) return outcome.out;
  const child = spawn("sh", ["-c", `exec ${archiver}`], { cwd: inFolder("."), env });
  const ended = outcomeOf(child);
  const target = archiver.split(" ").at(-1);
  await until(() => hasNewest(target), `${target} has a snapshot`);
  child.kill("SIGTERM");
  const { code, err } = await ended;
  assert.equal(code, 0, `${archiver}\n${err}`);
  return outcome.out;
}

/** Whether the newest history of an archive has a snapshot. */
async function hasNewest(target) {
  const timeline = await newestTimeline(target);
  return timeline !== undefined && timeline.owner !== null && timeline.snapshots.length > 0;
}

async function prepare() {
  mkdirSync(inFolder("bin"), { recursive: true });
  const command = `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`;
  writeFileSync(inFolder("bin/openkv"), command);
  chmodSync(inFolder("bin/openkv"), 0o755);
  mkdirSync(inFolder("mnt"));
}

test("the runbook restores a database as it is printed", { skip: withoutShell }, async () => {
  await prepare();
  const kv = await openKv(inFolder("app.sqlite3"));
  const archive = await kv.archive({ to: join(inFolder("mnt"), "app") });
  await kv.set(["users", 1], "Ada");
  const good = new Date(Date.now() + 5).toISOString();
  await pause(20);
  await kv.set(["users", 1], "damaged");
  await archive.stop();
  await kv.close();
  const before = await contents(inFolder("app.sqlite3"));
  const steps = stepsOf("Runbook");
  const promote = steps.pop();
  for (const step of steps) {
    const out = await paste(step, good);
    if (step.includes("archive list")) assert.match(out, /snapshot/);
    if (step.includes("archive verify")) assert.doesNotMatch(out, /in no object|damaged/);
  }
  for (const command of ["list", "verify", "prune", "run"]) {
    assert.ok(
      steps.some((step) => step.includes(`openkv archive ${command}`)),
      command,
    );
  }
  assert.ok(existsSync(inFolder("lost/app.sqlite3")));
  assert.deepEqual(await contents(inFolder("app.sqlite3")), before);
  assert.deepEqual(await contents(inFolder("before.sqlite3")), [[["users", 1], "Ada"]]);

  const accessToken = "token-of-the-runbook-test";
  const path = inFolder("app.sqlite3");
  const server = await serve({ path, accessToken, listen: "127.0.0.1:0" });
  const near = await openKv(server.url, { accessToken, replica: inFolder("near.sqlite3") });
  await near.replica.ready();
  await near.close();
  await server.close();
  await paste(promote, good);
  assert.deepEqual(await contents(inFolder("near.sqlite3")), before);
  const promoted = await openKv(inFolder("near.sqlite3"));
  assert.ok((await promoted.set(["users", 2], "Grace")).ok);
  await promoted.close();
});
