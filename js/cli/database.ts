// Duty: the database of a command line: opened for one command, closed after it whatever happens.

import { existsSync } from "node:fs";
import type { Command } from "commander";
import { Kv } from "../kv.js";
import { openKv } from "../open.js";
import type { OpenKvOptions } from "../types.js";
import { NotDone } from "./outcome.js";
import type { Style } from "./output.js";

/** What every command takes. */
export interface GlobalOptions {
  db?: string;
  token?: string;
  json?: boolean;
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
  const { json = false, color } = command.optsWithGlobals<GlobalOptions>();
  return { json, color: color && process.stdout.isTTY === true && !process.env.NO_COLOR };
}

/** A slip of the pen must not make an empty database. */
export function requireExisting(path: string | undefined): void {
  if (path === undefined || path === ":memory:" || /^\w{2,}:/.test(path) || existsSync(path)) return;
  throw new NotDone(`${path} does not exist`);
}

/** Whether it is a server's. */
export function isUrl(path: string | undefined): boolean {
  return path !== undefined && /^https?:/.test(path);
}

/** Opens a database by what was typed. */
export async function openTyped(
  path: string | undefined,
  options: OpenKvOptions = {},
): Promise<Kv> {
  return await openKv(path, isUrl(path) ? options : { limits: LIMITS, ...options });
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
  if (wanted === "existing") requireExisting(db);
  const given = token === undefined ? options : ({ ...options, accessToken: token } as OpenKvOptions);
  const kv = await openTyped(db, given);
  try {
    return await work(kv, styleOf(command));
  } finally {
    kv.close();
  }
}
