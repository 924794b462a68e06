// Duty: Deno's own server, denokv: installed once by cargo, started on a file of its own. For
// denokv.mjs and bench/server.mjs.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../kit/port.mjs";
import { sleep } from "../kit/time.mjs";

const VERSION = "0.14.0";
/** Where it is kept: beside what cargo builds, so that a clean checkout has none. */
const ROOT = join(
  dirname(fileURLToPath(import.meta.url)),
  "..",
  "..",
  "target",
  `denokv-${VERSION}`,
);
const START_MS_MAX = 20_000;

/**
 * The path of the server's binary: the one that DENOKV names, or the one in the cache, which is
 * compiled when it is missing. That takes minutes, a C compiler, and the registry of crates.
 */
export function installDenokv() {
  if (process.env.DENOKV) return process.env.DENOKV;
  const exe = process.platform === "win32" ? "denokv.exe" : "denokv";
  const binary = join(ROOT, "bin", exe);
  if (existsSync(binary)) return binary;
  console.error(`Installing denokv ${VERSION} into ${ROOT}; it compiles for some minutes.`);
  const install = ["cargo", "install", "denokv", "--locked", "--version", VERSION, "--root", ROOT];
  if (process.platform !== "win32") install.unshift("nice");
  const { status, error } = spawnSync(install[0], install.slice(1), { stdio: "inherit" });
  if (status !== 0) throw error ?? new Error(`cargo install ended with ${status}`);
  return binary;
}

/** Starts it on a file; answers when it listens. */
export async function startDenokv(binary, path, accessToken) {
  const port = await freePort();
  const args = ["--sqlite-path", path, "serve", "--addr", `127.0.0.1:${port}`];
  const child = spawn(binary, args, {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, DENO_KV_ACCESS_TOKEN: accessToken, RUST_LOG: "error" },
  });
  const gone = once(child, "exit");
  const url = `http://127.0.0.1:${port}`;
  await Promise.race([
    answers(url),
    gone.then(() => Promise.reject(new Error("denokv has ended"))),
  ]);
  const close = async () => {
    child.kill("SIGKILL");
    await gone;
  };
  return { url, pid: child.pid, close };
}

async function answers(url) {
  const until = Date.now() + START_MS_MAX;
  while (Date.now() < until) {
    if (
      await fetch(url).then(
        () => true,
        () => false,
      )
    )
      return;
    await sleep(20);
  }
  throw new Error(`denokv did not listen within ${START_MS_MAX} ms`);
}
