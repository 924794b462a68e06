// Duty: export: a database as NDJSON, as a stream that can be resumed after an interruption.

import type { Command } from "commander";
import { exportChunks } from "../../interchange/export.js";
import { visible } from "../../codec/key-text.js";
import type { Kv } from "../../api/kv.js";
import type { KvKey } from "../../model/types.js";
import { key } from "../arguments.js";
import { AT, type AtOptions, withDatabaseReading } from "../at.js";
import { locatedBy } from "../database.js";
import { type ExportFile, type ExportFileOptions, openExportFile } from "../export-file.js";
import { NotDone, unlessAborted, untilInterrupted } from "../outcome.js";
import { note, print, put } from "../output.js";
import { Progress } from "../progress.js";

export const STANDARD = "-";

export function addExportCommand(program: Command): void {
  program
    .command("export")
    .description("write all entries as NDJSON, one a line (the form of @deno/kv-utils)")
    .argument("<file>", "the new file; - is the standard output")
    .option("--prefix <key>", "only keys that extend this one", key)
    .option(...AT)
    .option("--resume", "continue after the last whole line of the file")
    .option("--force", "overwrite an existing file; never a database")
    .action(async (name: string, options: ExportFlags, command: Command) => {
      if (options.resume && options.force) command.error("error: give either --resume or --force");
      await withDatabaseReading(command, options, async (kv, { json }) => {
        const isFile = name !== STANDARD;
        const file = isFile ? await openExportFile(name, options, locatedBy(command)) : undefined;
        try {
          await exportTo(kv, file, options.prefix, json);
        } finally {
          await file?.handle.close();
        }
      });
    });
}

interface ExportFlags extends ExportFileOptions, AtOptions {
  prefix?: KvKey;
}

/** Without a `file`, to the standard output. */
async function exportTo(
  kv: Kv,
  file: ExportFile | undefined,
  prefix: KvKey | undefined,
  json: boolean,
): Promise<void> {
  const { signal, release } = untilInterrupted();
  const progress = new Progress("exported", undefined);
  const write = (bytes: Buffer): Promise<void> => {
    if (file) return file.handle.writeFile(bytes);
    // The escapes mean the same in JSON.
    return put(process.stdout.isTTY ? visible(bytes.toString(), true) : bytes);
  };
  let entries = 0;
  try {
    for await (const chunk of exportChunks(kv, {
      prefix,
      after: file?.after,
      signal,
      onWithoutExpiry,
    })) {
      await unlessAborted(write(chunk.bytes), signal);
      entries += chunk.entries;
      progress.update(entries, entries);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    release();
  }
  const summary = progress.end(entries);
  if (signal.aborted) {
    throw new NotDone(`${summary}, interrupted${file ? ": --resume goes on" : ""}`, true);
  }
  if (file && json) await print(JSON.stringify({ exported: entries }));
  else note(summary);
}

/** Warns that the server does not send the expiry of entries. */
export function onWithoutExpiry(): void {
  note("the server does not send the expiry of entries: the copies do not expire");
}
