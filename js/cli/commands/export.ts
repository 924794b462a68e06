// Duty: export: a whole database as NDJSON, streaming, and going on where it was cut off.

import type { Command } from "commander";
import { exportChunks } from "../../interchange/export.js";
import { visible } from "../../key-text.js";
import type { Kv } from "../../kv.js";
import type { KvKey } from "../../types.js";
import { key } from "../arguments.js";
import { locatedBy, withDatabase } from "../database.js";
import { type ExportFile, type ExportFileOptions, openExportFile } from "../export-file.js";
import { NotDone, unlessAborted, untilInterrupted } from "../outcome.js";
import { note, print, put } from "../output.js";
import { Progress } from "../progress.js";

export const STANDARD = "-";

export function addExportCommand(program: Command): void {
  program
    .command("export")
    .description("write all entries as NDJSON, one a line (the form of @deno/kv-utils)")
    .argument("<file>", "where to, a new file; - is the standard output")
    .option("--prefix <key>", "only keys that extend this one", key)
    .option("--resume", "go on behind the last whole line of the file")
    .option("--force", "write over a file that is there; never over a database")
    .action(async (name: string, options: ExportFlags, command: Command) => {
      if (options.resume && options.force) command.error("error: give either --resume or --force");
      await withDatabase(command, "existing", async (kv, { json }) => {
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

interface ExportFlags extends ExportFileOptions {
  prefix?: KvKey;
}

/** `file`: none is the standard output. */
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
    for await (const chunk of exportChunks(kv, { prefix, after: file?.after, signal, untold })) {
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

/** Told when the ends of entries stay behind. */
export function untold(): void {
  note("the server does not tell when entries end: they arrive as entries that stay");
}
