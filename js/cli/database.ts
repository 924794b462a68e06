// Duty: the database of a command line: opened for one command, closed after it whatever happens.

import { existsSync, realpathSync, statSync } from "node:fs";
import type { Command } from "commander";
import type { Kv } from "../api/kv.js";
import { MEMORY, isServer, locate } from "../arguments/location.js";
import { openKv } from "../api/open.js";
import type { OpenKvOptions } from "../model/types.js";
import { NotDone, WrongUsage, asUsage } from "./outcome.js";
import type { Style } from "./output.js";

/** What every command takes. */
export interface GlobalOptions {
  db?: string;
  token?: string;
  json?: boolean;
  jsonPlain?: boolean;
  color: boolean;
}

/** A command line is not to be stopped by the limits of the program that wrote the database. */
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

/** Where a database is that was typed: as `openKv` finds it, without making its folder. */
export function located(path: string | undefined): string {
  try {
    return locate(path, true);
  } catch (error) {
    throw error instanceof TypeError ? new WrongUsage(error.message) : error;
  }
}

/** Where the database of a command line is. */
export function locatedBy(command: Command): string {
  return located(command.optsWithGlobals<GlobalOptions>().db);
}

export function isMemory(located: string): boolean {
  return located === MEMORY;
}

/** A slip of the pen must not make an empty database. */
export function requireExisting(located: string): void {
  if (isMemory(located) || isServer(located) || existsSync(located)) return;
  throw new NotDone(`${located} does not exist`);
}

/** What an existing database is called, whichever way led to it. */
export function identityOf(located: string): string {
  return isMemory(located) || isServer(located) ? located : realpathSync(located);
}

/** Whether two paths lead to one file that exists. */
export function sameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) =>
    statSync(path, { bigint: true, throwIfNoEntry: false }),
  );
  return one !== undefined && other !== undefined && one.dev === other.dev && one.ino === other.ino;
}

/** Whether two places hold one database. */
export function sameDatabase(a: string, b: string): boolean {
  if (a === b) return true;
  if (isServer(a) || isServer(b)) return a.replace(/\/$/, "") === b.replace(/\/$/, "");
  return sameFile(a, b);
}

/** A server holds its own limits: those of openkv's are "wide", and a plain one's are told by it. */
function limitsOf(path: string | undefined): NonNullable<OpenKvOptions["limits"]> {
  return isServer(located(path)) ? "wide" : LIMITS;
}

/** Opens a database by what was typed. */
export async function openTyped(
  path: string | undefined,
  options: OpenKvOptions = {},
): Promise<Kv> {
  return await asUsage(() => openKv(path, { limits: limitsOf(path), ...options }));
}

/** The database that a shell has opened for the commands that are typed into it. */
export interface Shared {
  readonly kv: Kv;
  /** As it was named: another name in a command is another database. */
  readonly db: string | undefined;
}

const sharing = new WeakMap<Command, Shared>();

/** Lets the commands of a program use one open database. */
export function share(program: Command, shared: Shared): void {
  sharing.set(program, shared);
}

function programOf(command: Command): Command {
  return command.parent === null ? command : programOf(command.parent);
}

/** Throws where the standard input is the shell's. */
export function readsInput(command: Command): void {
  if (sharing.has(programOf(command)))
    throw new WrongUsage("in a shell the standard input is its own: name a file");
}

/** Whether a command may make the database that it names. */
export type Wanted = "existing" | "any";

/** Runs something on the database that the command line names. */
export async function withDatabase<T>(
  command: Command,
  wanted: Wanted,
  work: (kv: Kv, style: Style) => Promise<T>,
  options: OpenKvOptions = {},
): Promise<T> {
  const { db, token } = command.optsWithGlobals<GlobalOptions>();
  const shared = sharing.get(programOf(command));
  if (shared !== undefined && shared.db === db) return await work(shared.kv, styleOf(command));
  if (wanted === "existing") requireExisting(located(db));
  const given =
    token === undefined ? options : ({ ...options, accessToken: token } as OpenKvOptions);
  const kv = await openTyped(db, given);
  try {
    return await work(kv, styleOf(command));
  } finally {
    await kv.close();
  }
}
