// Duty: studio: the pages of a server in the browser, for a file or for the URL of a server.

import { randomBytes } from "node:crypto";
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import type { Command } from "commander";
import { serve } from "../../api/serve.js";
import { isPostgres, isServer } from "../../arguments/location.js";
import type { KvServer } from "../../model/types.js";
import { type GlobalOptions, isMemory, located, requireExisting, styleOf } from "../database.js";
import { NotDone, WrongUsage, asUsage, untilInterrupted } from "../outcome.js";
import { note, print } from "../output.js";

/** Random bytes of the token of one run. */
const TOKEN_BYTES = 32;

interface StudioFlags {
  open: boolean;
  readonly?: boolean;
}

export function addStudioCommand(program: Command): void {
  program
    .command("studio")
    .description("show a database in the browser, until SIGINT or SIGTERM")
    .argument("[file or URL]", "a file, or the URL of a server of openkv (default: --db)")
    .option("--no-open", "print the URL and open no browser")
    .option("--readonly", "of a file: refuse all writes")
    .action(async (place: string | undefined, flags: StudioFlags, from: Command) => {
      const { db, token } = from.optsWithGlobals<GlobalOptions>();
      const given = located(place ?? db);
      const json = styleOf(from).json;
      if (isServer(given)) await showServer(given, token, flags, json);
      else await showFile(given, flags, json);
    });
}

async function showFile(path: string, flags: StudioFlags, json: boolean): Promise<void> {
  if (isMemory(path) || isPostgres(path)) {
    throw new WrongUsage("studio opens a file or the URL of a server: see openkv serve");
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new WrongUsage(`${path} is a folder: serve it, and give the URL of the server`);
  }
  await requireExisting(path);
  // Before the start, so that a signal during the start ends the server too.
  const { signal, release } = untilInterrupted();
  const accessToken = randomBytes(TOKEN_BYTES).toString("base64url");
  const options = { path, listen: "127.0.0.1:0", accessToken, readonly: flags.readonly === true };
  const server: KvServer = await asUsage(() => serve(options));
  await show(`${server.url}/#token=${accessToken}`, flags, json);
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });
  // A second signal does not wait for slow clients.
  release();
  await server.close();
}

/** The studio of another server is its own: only the address is opened. */
async function showServer(
  location: string,
  token: string | undefined,
  flags: StudioFlags,
  json: boolean,
): Promise<void> {
  if (flags.readonly) throw new WrongUsage("--readonly is for a file: give a token that may read");
  const { origin, pathname } = new URL(location);
  const name = decodeURIComponent(pathname.split("/")[1] ?? "");
  if (!(await hasStudio(origin))) {
    throw new NotDone(`${origin} answers no studio: is it a server of openkv with its studio on?`);
  }
  const place = name === "" ? "/" : `/@${encodeURIComponent(name)}/overview`;
  const end = token === undefined ? "" : `?token=${encodeURIComponent(token)}`;
  await show(`${origin}/#${place}${end}`, flags, json);
}

async function hasStudio(origin: string): Promise<boolean> {
  try {
    return (await fetch(`${origin}/~studio/server.json`)).ok;
  } catch {
    return false;
  }
}

async function show(url: string, { open }: StudioFlags, json: boolean): Promise<void> {
  await print(json ? JSON.stringify({ url }) : url);
  if (open) openBrowser(url);
}

/** Commands that open a URL. None of them is a shell, which would interpret the URL. */
const OPENERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

function openBrowser(url: string): void {
  const [command, ...words] = OPENERS[process.platform] ?? ["xdg-open"];
  const child = spawn(command, [...words, url], { detached: true, stdio: "ignore" });
  child.on("error", () => note("no browser could be opened: open the URL yourself"));
  child.unref();
}
