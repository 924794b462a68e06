// The test's interface to subject.mjs and faults.c.

import { spawnSync } from "node:child_process";
import { closeSync, openSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { newFolder } from "../../kit/folder.mjs";
import { guard, until } from "../../kit/time.mjs";
import { startChild } from "../../processes/children.mjs";

/** Far more than anything takes that a test waits for; catches hangs. */
const HANG_MS = 30_000;

/** Kinds of calls, as faults.c counts them. */
export const KINDS = { open: 1, map: 2, thread: 4, read: 8, notify: 16 };
/** Locks of the open file description, which a process has from its start or not at all. */
export const OFD = 32;

const glibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
/** Why such a process cannot be started here; false if it can. */
export const skip =
  process.platform !== "linux" || !glibc
    ? "calls are made to fail through glibc's LD_PRELOAD"
    : spawnSync("cc", ["--version"]).status !== 0 && "the library that makes calls fail needs cc";

const SUBJECT = new URL("subject.mjs", import.meta.url);
const FAULTS = fileURLToPath(new URL("faults.c", import.meta.url));

/** Builds the library that makes calls fail; answers the variables of a process with it, and its control. */
export function makeFaults(folder) {
  const library = join(folder, "faults.so");
  const built = spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, FAULTS, "-ldl"]);
  if (built.status !== 0) throw new Error(`faults.c does not compile: ${built.stderr}`);
  const controlPath = join(folder, "control");
  writeFileSync(controlPath, new Uint8Array(16));
  return { env: { LD_PRELOAD: library, OPENKV_TEST_FAULTS: controlPath }, controlPath };
}

/** Starts a subject. Its `folder` goes with it. */
export async function startSubject() {
  const folder = newFolder("faults");
  const faults = makeFaults(folder);
  const control = openSync(faults.controlPath, "r+");

  const said = [];
  let marks = 0;
  const looks = new Set();
  const env = { ...process.env, ...faults.env };
  const onLine = (line) => {
    said.push(JSON.parse(line));
    for (const look of looks) look();
  };
  const child = startChild(SUBJECT, {}, { onLine, spawn: { env } });

  /** The first thing said, not taken before, that `wanted` wants. */
  function hear(wanted, what) {
    let look;
    const heard = new Promise((resolve, reject) => {
      look = () => {
        const at = said.findIndex(wanted);
        if (at >= 0) resolve(said.splice(at, 1)[0]);
      };
      child.ended.then(() => reject(new Error(`the process ended: ${child.stderr}`)));
      looks.add(look);
      look();
    });
    return guard(heard, HANG_MS, `${what}; said: ${JSON.stringify(said.slice(-5))}`).finally(() =>
      looks.delete(look),
    );
  }

  await hear((it) => it.ready, "the process is ready");
  return {
    folder,
    said,
    hear,
    child,
    async do(does, rest = {}) {
      child.say(JSON.stringify({ does, ...rest }));
      const answer = await hear((it) => "answer" in it || "refused" in it, `it does ${does}`);
      if ("refused" in answer)
        throw Object.assign(new Error(answer.message), { code: answer.refused });
      return answer.answer;
    },
    /** From here on `times` calls of these kinds fail, from the `first` on. */
    arm(kinds, first = 1, times = 0x3fffffff) {
      writeSync(control, new Uint8Array(new Int32Array([0, first, times, 0]).buffer), 0, 16, 0);
      writeSync(control, new Uint8Array(new Int32Array([kinds]).buffer), 0, 4, 0);
    },
    /** How many calls there were since it was armed. */
    calls() {
      const calls = new Int32Array(1);
      readSync(control, new Uint8Array(calls.buffer), 0, 4, 12);
      return calls[0];
    },
    /** Nothing fails any more; answers how many calls there were. */
    disarm() {
      writeSync(control, new Uint8Array(4), 0, 4, 0);
      return this.calls();
    },
    /** Waits until the subject's feed has failed, or is open: from then on it tells of every commit. */
    async feedOpens() {
      const mark = `open ${marks++}`;
      const hasOpened = async () => {
        await this.do("set", { key: ["f", 0], value: mark });
        return said.some(
          (it) => it.failed === "feed" || (it.heard === "feed" && it.value === mark),
        );
      };
      await until(hasOpened, "the feed is open");
    },
    async end() {
      child.kill();
      await child.ended;
      closeSync(control);
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}
