// Duty: studio: the pages of a server in the browser, for a file or for the URL of a server.

import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import type { Command } from "commander";
import { serve, studioIsBuilt } from "../../api/serve.js";
import { isElsewhere, isServer } from "../../arguments/location.js";
import type { KvServer } from "../../model/types.js";
import { openBrowser, tunnelTo } from "../browser.js";
import { type GlobalOptions, isMemory, located, requireExisting, styleOf } from "../database.js";
import { NotDone, WrongUsage, asUsage, untilInterrupted } from "../outcome.js";
import { note, print } from "../output.js";

/** Random bytes of the token of one run. */
const TOKEN_BYTES = 32;
/** How long a server may take to say that it has a studio. */
const ANSWER_MS_MAX = 10_000;

/** Says so if browsers get no studio: in a checkout it is built by a script of its own. */
export function noteIfUnbuilt(): void {
  if (studioIsBuilt()) return;
  note("the studio is not built, so browsers see no databases: `npm run build:studio` builds it");
}

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
      if (place === undefined && db === undefined) requireDefault(given);
      const json = styleOf(from).json;
      if (isServer(given)) await showServer(given, token, flags, json);
      else await showFile(given, flags, json);
    });
}

/** Without a place the command uses the default one, which must exist. */
function requireDefault(path: string): void {
  if (isServer(path) || isMemory(path) || isElsewhere(path) || existsSync(path)) return;
  throw new NotDone(`${path} does not exist: name a file or URL, as in openkv studio app.sqlite3`);
}

async function showFile(path: string, flags: StudioFlags, json: boolean): Promise<void> {
  if (isMemory(path) || isElsewhere(path)) {
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
  const shown = json ? undefined : `showing ${path}; Ctrl-C ends it`;
  noteIfUnbuilt();
  await show(`${server.url}/#token=${accessToken}`, flags, json, shown);
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
  const fault = await faultOf(origin);
  if (fault !== undefined) {
    throw new NotDone(fault);
  }
  const place = name === "" ? "/" : `/@${encodeURIComponent(name)}/overview`;
  const end = token === undefined ? "" : `?token=${encodeURIComponent(token)}`;
  await show(`${origin}/#${place}${end}`, flags, json);
}

/** Why a server has no studio to show; undefined if it has one. */
async function faultOf(origin: string): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MS_MAX);
    const { ok } = await fetch(`${origin}/~studio/server.json`, { signal });
    if (ok) return undefined;
    return `${origin} answers no studio: is it a server of openkv with its studio on?`;
  } catch (error) {
    const { cause = error } = error as { cause?: unknown };
    const { code, message } = cause as { code?: unknown; message: string };
    const why = message === "" ? String(code) : message;
    return `${origin} cannot be reached: ${why}: does the server run, and is its port right?`;
  }
}

async function show(
  url: string,
  { open }: StudioFlags,
  json: boolean,
  more?: string,
): Promise<void> {
  await print(json ? JSON.stringify({ url }) : url);
  if (more !== undefined) note(more);
  if (open && !(await openBrowser(url))) {
    note(`no browser could be opened here: open the URL yourself${tunnelTo(url)}`);
  }
}
