// Duty: opens the database of a command line for one command, and closes it after the command in
// any case.

import { existsSync, realpathSync, statSync } from "node:fs";
import type { Command } from "commander";
import type { Kv } from "../api/kv.js";
import {
  MEMORY,
  isBucket,
  isElsewhere,
  isServer,
  locate,
  urlsOf,
  withoutLogin,
} from "../arguments/location.js";
import { openKv } from "../api/open.js";
import { KvError } from "../model/errors.js";
import type { OpenKvOptions } from "../model/types.js";
import { inWords } from "./advice.js";
import { durationOf } from "./arguments.js";
import { NotDone, WrongUsage, asUsage } from "./outcome.js";
import type { Style } from "./output.js";
import { showLine } from "./progress.js";

/** How long a server may be silent before the terminal says so. */
const SILENCE_MS = 800;

/** The options of every command. */
export interface GlobalOptions {
  db?: string;
  token?: string;
  timeout?: string;
  json?: boolean;
  jsonPlain?: boolean;
  color: boolean;
}

/**
 * High limits, so that a command line can handle every database, whatever the limits of its
 * program.
 */
const LIMITS = {
  valueBytesMax: 64 * 1024 * 1024,
  messageBytesMax: 64 * 1024 * 1024,
  mutationsMax: 10_000,
  checksMax: 1000,
  commitBytesMax: 128 * 1024 * 1024,
  commitKeyBytesMax: 64 * 1024 * 1024,
  rangesMax: 1000,
};

export function styleOf(command: Command): Style {
  const {
    json = false,
    jsonPlain: plain = false,
    color,
  } = command.optsWithGlobals<GlobalOptions>();
  return {
    json: json || plain,
    plain,
    color: color && process.stdout.isTTY === true && !process.env.NO_COLOR,
  };
}

/** Resolves a path or URL as `openKv` does, without creating a folder. */
export function located(path: string | undefined): string {
  try {
    return locate(path, true);
  } catch (error) {
    throw error instanceof TypeError ? new WrongUsage(error.message) : error;
  }
}

/** The resolved path or URL of the database of a command line. */
export function locatedBy(command: Command): string {
  return located(command.optsWithGlobals<GlobalOptions>().db);
}

export function isMemory(located: string): boolean {
  return located === MEMORY;
}

/** Rejects if the database does not exist, so that a mistyped name or an empty file does not become an empty one. */
export async function requireExisting(located: string): Promise<void> {
  if (isElsewhere(located)) {
    // An opening for reading creates nothing, and its error names the databases that exist.
    await (await openKv(located, { readonly: true })).close();
    return;
  }
  if (isServer(located) || isMemory(located)) return;
  const found = statSync(located, { throwIfNoEntry: false });
  if (found === undefined) throw new NotDone(`${located} does not exist`);
  // An opening makes a database of an empty file.
  if (found.isFile() && found.size === 0)
    throw new NotDone(`${located} is an empty file: it has no database`);
}

/** The canonical path or URL of an existing database. It holds no password. */
export function identityOf(located: string): string {
  if (isElsewhere(located)) return withoutLogin(located);
  return isMemory(located) || isServer(located) ? located : realpathSync(located);
}

/** Whether two paths lead to the same existing file. */
export function sameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) =>
    statSync(path, { bigint: true, throwIfNoEntry: false }),
  );
  return one !== undefined && other !== undefined && one.dev === other.dev && one.ino === other.ino;
}

/** Whether two resolved paths or URLs are the same database. */
export function sameDatabase(a: string, b: string): boolean {
  if (a === b) return true;
  if (isElsewhere(a) && isElsewhere(b)) return withoutLogin(a) === withoutLogin(b);
  if (isServer(a) || isServer(b)) return haveCommon(serversOf(a), serversOf(b));
  return sameFile(a, b);
}

/** The URLs of the servers of a database. A slash at the end makes no difference. */
function serversOf(located: string): string[] {
  return isServer(located) ? urlsOf(located).map((url) => url.replace(/\/$/, "")) : [];
}

function haveCommon(some: readonly string[], others: readonly string[]): boolean {
  return some.some((one) => others.includes(one));
}

/**
 * The limits for a file, or for a server: openkv's servers have the set "wide", others enforce
 * theirs.
 */
function limitsOf(path: string | undefined): NonNullable<OpenKvOptions["limits"]> {
  return isServer(located(path)) ? "wide" : LIMITS;
}

/** Opens a database by the path or URL of a command line. */
export async function openTyped(
  path: string | undefined,
  options: OpenKvOptions = {},
): Promise<Kv> {
  const all = { limits: limitsOf(path), ...options };
  const end = sayWhyItWaits(path, all);
  try {
    return await asUsage(() => openKv(path, all));
  } finally {
    end();
  }
}

/**
 * Says on a terminal that a server has not answered yet. At the next attempt, says why: what an opening with
 * one attempt says. Returns the end of that.
 */
function sayWhyItWaits(path: string | undefined, options: OpenKvOptions): () => void {
  if (process.stderr.isTTY !== true || !isServer(located(path))) return () => {};
  const attempt = new AbortController();
  let clear = () => {};
  const say = (line: string) => {
    if (!attempt.signal.aborted) clear = showLine(line);
  };
  const silence = setTimeout(
    () => say(`no answer yet from ${urlsOf(located(path)).join(", ")}`),
    SILENCE_MS,
  );
  if (options.timeout !== undefined) {
    openKv(path, { ...options, timeout: undefined, signal: attempt.signal }).then(
      (kv) => kv.close(),
      (error: Error) => {
        clearTimeout(silence);
        say(`${inWords(error.message)}; asking again for ${options.timeout} ms`);
      },
    );
  }
  return () => {
    clearTimeout(silence);
    attempt.abort();
    clear();
  };
}

/** The options of `openKv` that the options of every command are. */
export function remoteOptions({ token, timeout }: GlobalOptions): OpenKvOptions {
  return {
    ...(token !== undefined && { accessToken: token }),
    ...(timeout !== undefined && { timeout: durationOf("--timeout", timeout) }),
  };
}

/** The database that a shell has opened for its commands. */
export interface Shared {
  readonly kv: Kv;
  /** The path or URL as given to the shell. A command with another one opens another database. */
  readonly db: string | undefined;
}

const sharing = new WeakMap<Command, Shared>();

/** Makes the commands of a program use an open database. */
export function share(program: Command, shared: Shared): void {
  sharing.set(program, shared);
}

function programOf(command: Command): Command {
  return command.parent === null ? command : programOf(command.parent);
}

/** Throws if the shell reads the standard input. */
export function readsInput(command: Command): void {
  if (sharing.has(programOf(command)))
    throw new WrongUsage("in a shell the standard input is its own: name a file");
}

/** What a command does to its database: it only reads it, writes one that must exist, or creates it if need be. */
export type Use = "read" | "existing" | "any";

/** Runs work on the database of the command line. */
export async function withDatabase<T>(
  command: Command,
  use: Use,
  work: (kv: Kv, style: Style) => Promise<T>,
  options: OpenKvOptions = {},
): Promise<T> {
  const { db } = command.optsWithGlobals<GlobalOptions>();
  return await withDatabaseAt(db, command, use, work, options);
}

/** Runs work on a database that the command line names by an argument of its own. */
export async function withDatabaseAt<T>(
  db: string | undefined,
  command: Command,
  use: Use,
  work: (kv: Kv, style: Style) => Promise<T>,
  options: OpenKvOptions = {},
): Promise<T> {
  const given = {
    ...options,
    ...(use === "read" && readingOptions(located(db))),
    ...remoteOptions(command.optsWithGlobals<GlobalOptions>()),
  };
  const shared = sharing.get(programOf(command));
  if (shared !== undefined && shared.db === db) return await work(shared.kv, styleOf(command));
  if (use !== "any" && given.lead !== "never") await requireExisting(located(db));
  const { kv, refusal } = await openToRead(db, given);
  try {
    return await work(kv, styleOf(command));
  } catch (error) {
    throw refusal !== null && isDenied(error) ? refusal : error;
  } finally {
    await kv.close();
  }
}

/**
 * The options of a command that only reads: it does not keep the application of a database in an
 * object store from leading it, and needs no right to write. Such an opening creates nothing.
 */
export function readingOptions(located: string): OpenKvOptions {
  return isBucket(located) ? { lead: "never" } : {};
}

/**
 * Opens a database, for reading if it may not be written: a file on a read-only mount or of another
 * user. `refusal` is then the error of the opening for writing.
 */
export async function openToRead(
  db: string | undefined,
  options: OpenKvOptions,
): Promise<{ kv: Kv; refusal: unknown }> {
  try {
    return { kv: await openTyped(db, options), refusal: null };
  } catch (refusal) {
    if (!isDenied(refusal) || !existsSync(located(db))) throw refusal;
    return { kv: await openTyped(db, { ...options, readonly: true }), refusal };
  }
}

function isDenied(error: unknown): boolean {
  return error instanceof KvError && error.code === "DENIED";
}
