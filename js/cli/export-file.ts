// Duty: opens the file that an export writes: a new one, or one to be continued after its last
// complete line.
// Never: overwrites a file without --force, or a database or its log at all.

import { existsSync } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { NdjsonError, decodeLine } from "../interchange/decode.js";
import type { KvKey } from "../model/types.js";
import { sameFile } from "./database.js";
import { NotDone } from "./outcome.js";

export interface ExportFileOptions {
  /** Continue after the last complete line of the file. */
  resume?: boolean;
  /** Overwrite an existing file. */
  force?: boolean;
}

/** An open file, and the key after which the export continues. */
export interface ExportFile {
  readonly handle: FileHandle;
  readonly after: KvKey | undefined;
}

/** `source` is the resolved path of the exported database. */
export async function openExportFile(
  file: string,
  { resume, force }: ExportFileOptions,
  source: string,
): Promise<ExportFile> {
  const found = await stat(file).catch(() => undefined);
  // With "wx", a file that another process has created meanwhile is not overwritten.
  if (found === undefined) return { handle: await open(file, "wx"), after: undefined };
  // Overwriting a pipe or a device loses nothing.
  if (!found.isFile()) return { handle: await open(file, "w"), after: undefined };
  if (sameFile(file, source)) throw new NotDone(`${file} is the database that is to be exported`);
  if (await isDatabase(file))
    throw new NotDone(`${file} is a database, which no export writes over`);
  const database = file.replace(LOG, "");
  if (database !== file && existsSync(database) && (await isDatabase(database)))
    throw new NotDone(`${file} is a part of ${database}, which no export writes over`);
  if (resume) return await goOn(file, found.size);
  if (force) return { handle: await open(file, "w"), after: undefined };
  throw new NotDone(`${file} exists: give --resume to go on with it, or --force to write over it`);
}

/** The files beside a database that hold what is not in it yet. */
const LOG = /-(?:wal|shm|journal)$/;

/** The first bytes of every SQLite file. */
const DATABASE_MAGIC = "SQLite format 3\0";

async function isDatabase(file: string): Promise<boolean> {
  const handle = await open(file, "r");
  try {
    const start = await readAt(handle, 0, DATABASE_MAGIC.length);
    return start.toString("latin1") === DATABASE_MAGIC;
  } finally {
    await handle.close();
  }
}

/** Truncates the file after its last complete line, if that is a line of an export. */
async function goOn(file: string, size: number): Promise<ExportFile> {
  const handle = await open(file, "a+");
  try {
    if (size === 0) return { handle, after: undefined };
    const last = await lastWholeLine(handle, size);
    const after = keyOf(file, last?.text);
    await handle.truncate(last!.end);
    return { handle, after };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function keyOf(file: string, line: string | undefined): KvKey {
  const refuse = (what: string): never => {
    throw new NotDone(`${file} is no export to go on with, and stays as it is: ${what}`);
  };
  if (line === undefined) return refuse("it has no whole line");
  try {
    return decodeLine(line).key as KvKey;
  } catch (error) {
    if (!(error instanceof NdjsonError)) throw error;
    return refuse(`its last whole line: ${error.message}`);
  }
}

/**
 * The minimum and maximum number of bytes at the end of a file that are searched for its last line.
 */
const TAIL_BYTES_MIN = 64 * 1024;
const TAIL_BYTES_MAX = 128 * 1024 * 1024;
const LINE_END = 0x0a;

/** The text of the last complete line, and the position of its end. */
async function lastWholeLine(
  handle: FileHandle,
  size: number,
): Promise<{ text: string; end: number } | undefined> {
  for (let length = TAIL_BYTES_MIN; length <= TAIL_BYTES_MAX; length *= 2) {
    const from = Math.max(size - length, 0);
    const tail = await readAt(handle, from, size - from);
    const end = tail.lastIndexOf(LINE_END);
    const start = end < 1 ? 0 : tail.lastIndexOf(LINE_END, end - 1) + 1;
    const isWhole = end >= 0 && (start > 0 || from === 0);
    if (isWhole) return { text: tail.toString("utf8", start, end), end: from + end + 1 };
    if (from === 0) break;
  }
  return undefined;
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}
