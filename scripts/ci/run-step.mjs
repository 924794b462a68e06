// Duty: runs one step as a child process: collects its output, and ends it when its time is over.

import { spawn } from "node:child_process";

/**
 * Of every step. CI compiles each form of the crate once, so the files of incremental builds would only fill the disk.
 *
 * Clippy compiles our crates, for the tests and for the addon, instead of checking all crates once more: a check is a tenth
 * of the whole run. A warning is an error. Clippy's compiler leaves out rustc's own optimisations, those before LLVM, so
 * nothing that is published or measured comes from it.
 */
const STEP_ENV = {
  CARGO_TERM_COLOR: "never",
  NO_COLOR: "1",
  CARGO_INCREMENTAL: "0",
  RUSTC_WORKSPACE_WRAPPER: "clippy-driver",
  // As `cargo clippy` hands them to its driver: each argument ends with this word.
  CLIPPY_ARGS: "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
};

/**
 * Of a step that fetches no packages for later ones. Without it each process of Node.js reads the certificates that the
 * machine trusts beside those of Node.js, which is two thirds of its start. Tests that install openkv use what is cached,
 * or a registry that Node.js trusts.
 */
const LOCAL_ENV = { NODE_EXTRA_CA_CERTS: "" };

/** Time for a step to end before it is killed. */
const GRACE_MS = 5_000;

const running = new Set();

/**
 * Runs a step and returns `{ ok, end, output, seconds }`, where `end` describes in a word how it
 * ended. Ends the step after `guardMs`. Never rejects.
 */
export async function runStep(step, root, guardMs) {
  const started = Date.now();
  const seconds = () => (Date.now() - started) / 1000;
  if (step.command === null) {
    return { ok: true, end: "nothing to do", output: "", seconds: 0 };
  }
  const [command, ...args] = step.command;
  const windows = process.platform === "win32";
  const child = spawn(command, args, {
    cwd: root,
    env: { ...process.env, ...STEP_ENV, ...(step.downloads ? {} : LOCAL_ENV) },
    stdio: ["ignore", "pipe", "pipe"],
    // A process group of its own, so that all processes of the step end together.
    detached: !windows,
    shell: windows,
  });
  running.add(child);
  const chunks = [];
  child.stdout.on("data", (chunk) => chunks.push(chunk));
  child.stderr.on("data", (chunk) => chunks.push(chunk));

  let timedOut = false;
  const guard = setTimeout(() => {
    timedOut = true;
    end(child);
  }, guardMs);
  const { code, signal, error } = await new Promise((resolve) => {
    child.on("error", (error) => resolve({ error }));
    child.on("close", (code, signal) => resolve({ code, signal }));
  });
  clearTimeout(guard);
  running.delete(child);
  const how = timedOut
    ? `ended after ${Math.round(guardMs / 1000)} s`
    : describe(code, signal, error);
  const output = Buffer.concat(chunks).toString("utf8").trimEnd();
  return { ok: code === 0 && !timedOut, end: how, output, seconds: seconds() };
}

/** Ends every running step with all of its processes. */
export function endAll() {
  for (const child of running) {
    end(child);
  }
}

function end(child) {
  signalGroup(child, "SIGTERM");
  setTimeout(() => signalGroup(child, "SIGKILL"), GRACE_MS).unref();
}

function signalGroup(child, signal) {
  try {
    if (process.platform === "win32") {
      child.kill(signal);
    } else {
      process.kill(-child.pid, signal);
    }
  } catch {
    // It has already ended.
  }
}

function describe(code, signal, error) {
  if (error !== undefined) {
    return error.message;
  }
  return code === 0 ? "ok" : `failed (${signal ?? `exit code ${code}`})`;
}
