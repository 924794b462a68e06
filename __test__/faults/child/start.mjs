// The test's interface to examine.mjs.

import assert from "node:assert/strict";
import { chmodSync, rmSync } from "node:fs";

import { newFolder } from "../../kit/folder.mjs";
import { guard } from "../../kit/time.mjs";
import { startChild } from "../../processes/children.mjs";

const EXAMINE = new URL("examine.mjs", import.meta.url);

/** Far more than examining a small file takes, five seconds of waiting for a lock included. */
export const HANG_MS = 60_000;

/**
 * A directory of the test's own. Before it is removed, what `undo` holds by then is done, the last
 * first.
 */
export function newDirectory(t, undo = []) {
  const directory = newFolder("fault");
  t.after(() => {
    undo.reverse().forEach((action) => action());
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  });
  return directory;
}

/** A directory with permissions that might keep it from being removed. */
export function newDirectoryWith(t, mode) {
  const undo = [];
  const directory = newDirectory(t, undo);
  undo.push(() => chmodSync(directory, 0o755));
  chmodSync(directory, mode);
  return directory;
}

/** Starts a process that examines files. `args.uid`: as whom; `args.cwd`: from where. */
export function startExaminer(t, args = {}) {
  const child = startChild(EXAMINE, args);
  t.after(() => child.kill());
  const ask = async (request) => {
    child.say(JSON.stringify(request));
    const line = await guard(child.line(), HANG_MS, `${request.does ?? "use"} ${request.path}`);
    assert.ok(
      line !== undefined,
      `the process ended on ${JSON.stringify(request)}: ${child.stderr}`,
    );
    const answer = JSON.parse(line);
    for (const error of [answer.open, ...(answer.errors ?? [])]) {
      if (error) assert.ok(error.typed, `not a typed error: ${JSON.stringify(error, null, 1)}`);
    }
    return answer;
  };
  return {
    child,
    /** Opens and uses a file in every way; what happened. Every error it met was a typed one. */
    examine: (path, options) => ask({ path, options }),
    /** The same without writing. */
    read: (path, options) => ask({ path, options, does: "read" }),
    /** Makes a file with known content. */
    create: async (path) => {
      const { open, errors } = await ask({ path, does: "create" });
      assert.deepEqual([open, errors], [null, []], "the file to be tested could be made");
    },
    /** The same, but the file stays open, and so the content stays in the log. */
    stayOpen: (path) => ask({ path, does: "stay open" }),
    /** It ends by itself, and never said anything on standard error. */
    end: async () => {
      child.hangUp();
      const { code, signal } = await guard(child.ended, HANG_MS, "the process ends");
      assert.deepEqual(
        { code, signal, stderr: child.stderr },
        { code: 0, signal: null, stderr: "" },
      );
    },
  };
}

/** The open was refused with this code. */
export function assertRefused(answer, codes, message) {
  assert.ok(answer.open !== null, "it should not have been opened");
  const { name, code } = answer.open;
  assert.ok([codes].flat().includes(code ?? name), `${code ?? name}: ${answer.open.message}`);
  if (message) assert.match(answer.open.message, message);
}

/** Everything is there, and nothing failed. */
export function assertWhole({ open, errors, ok, wrong, missing, extra }, entries) {
  assert.deepEqual(
    { open, errors, ok, wrong, missing, extra },
    { open: null, errors: [], ok: entries, wrong: 0, missing: 0, extra: 0 },
  );
}
