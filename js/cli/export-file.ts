// Duty: the file that an export writes: a new one, or one that goes on behind its last whole line.
// Never: a file written over of which nobody said so, and never one that is a database.

import { type FileHandle, open, stat } from "node:fs/promises";
import { NdjsonError, decodeLine } from "../interchange/decode.js";
import type { KvKey } from "../model/types.js";
import { sameFile } from "./database.js";
import { NotDone } from "./outcome.js";

export interface ExportFileOptions {
  /** Go on behind the last whole line of the file. */
  resume?: boolean;
  /** Write over a file that is there. */
  force?: boolean;
}

/** An open file, and the key behind which it goes on. */
export interface ExportFile {
  readonly handle: FileHandle;
  readonly after: KvKey | undefined;
}

/** `source`: where the database is that is exported. */
export async function openExportFile(
  file: string,
  { resume, force }: ExportFileOptions,
  source: string,
): Promise<ExportFile> {
  const found = await stat(file).catch(() => undefined);
  // What made it meanwhile keeps it.
  if (found === undefined) return { handle: await open(file, "wx"), after: undefined };
  // A pipe or a device holds nothing that could be lost.
  if (!found.isFile()) return { handle: await open(file, "w"), after: undefined };
  if (sameFile(file, source)) throw new NotDone(`${file} is the database that is to be exported`);
  if (await isDatabase(file))
    throw new NotDone(`${file} is a database, which no export writes over`);
  if (resume) return await goOn(file, found.size);
  if (force) return { handle: await open(file, "w"), after: undefined };
  throw new NotDone(`${file} exists: give --resume to go on with it, or --force to write over it`);
}

/** How every file of SQLite begins. */
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

/** Cuts off what follows the last whole line, once that line has said that this is an export. */
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

/** Bytes at the end of a file in which its last line is looked for, at first and at last. */
const TAIL_BYTES_MIN = 64 * 1024;
const TAIL_BYTES_MAX = 128 * 1024 * 1024;
const LINE_END = 0x0a;

/** The text of the last line that has an end, and where that is. */
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
