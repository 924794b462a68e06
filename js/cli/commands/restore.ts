// Duty: restore: replaces a database by a backup, or restores an archive into a new file.

import { existsSync, statSync } from "node:fs";
import type { Command } from "commander";
import { restore } from "../../maintenance/restore.js";
import type { KvKey } from "../../model/types.js";
import { type Moment, moment } from "../at.js";
import { styleOf } from "../database.js";
import { parseKey } from "../literal.js";
import { NotDone, WrongUsage, notDoneBy, untilInterrupted } from "../outcome.js";
import { printFacts } from "../output.js";
import { Progress } from "../progress.js";
import { restoreArchive } from "./archive.js";

export function addRestoreCommand(program: Command): void {
  program
    .command("restore")
    .description(
      "replace a closed database by a backup, or restore an archive into a new file; both verified",
    )
    .argument(
      "<backup>",
      "a file of 'backup', a copy of a closed database, or the target of an archive",
    )
    .argument("<file>", "the database to replace or to create")
    .option("--force", "of a backup: replace an existing file and its log")
    .option(
      "--at <moment>",
      "of an archive: a time (2026-11-24T15:00:00Z), a duration ago or a versionstamp (default: the newest)",
      moment,
    )
    .option("--prefix <key>", "of an archive: only the entries below this key", key)
    .action(async (backup: string, file: string, options: RestoreFlags, command: Command) => {
      const { force, at, prefix } = options;
      if (isArchive(backup)) {
        if (force) throw new WrongUsage("--force: a restore of an archive replaces nothing");
        return await restoreArchive(
          backup,
          file,
          { ...(at !== undefined && { at }), ...(prefix !== undefined && { prefix }) },
          command,
        );
      }
      if (at !== undefined || prefix !== undefined) {
        throw new WrongUsage(
          existsSync(backup)
            ? `--at and --prefix are for archives, and ${backup} is a backup`
            : `${backup} does not exist: name the folder or the URL of an archive`,
        );
      }
      const { signal, release } = untilInterrupted();
      let progress: Progress | undefined;
      try {
        const restored = await restore(backup, file, {
          force: force === true,
          signal,
          onProgress: ({ pagesDone, pages }) => {
            progress ??= new Progress("restored", pages, "pages");
            progress.update(pagesDone, pagesDone);
          },
        });
        progress?.end(restored.entries);
        await printFacts({ file, ...restored }, styleOf(command));
      } catch (error) {
        progress?.end(0);
        if (signal.aborted) throw new NotDone("interrupted: nothing was replaced", true);
        throw notDoneBy(error);
      } finally {
        release();
      }
    });
}

interface RestoreFlags {
  force?: boolean;
  at?: Moment;
  prefix?: KvKey;
}

function key(text: string): KvKey {
  return parseKey(text) as KvKey;
}

/** A folder, or the URL of a place in an object store. */
function isArchive(path: string): boolean {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) return true;
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
