// Duty: restore: replaces a database by a backup.

import type { Command } from "commander";
import { restore } from "../../maintenance/restore.js";
import { styleOf } from "../database.js";
import { NotDone, untilInterrupted } from "../outcome.js";
import { printFacts } from "../output.js";
import { Progress } from "../progress.js";

export function addRestoreCommand(program: Command): void {
  program
    .command("restore")
    .description("replace a closed database by a backup, and verify it")
    .argument("<backup>", "a file that 'backup' has made, or a copy of a closed database")
    .argument("<file>", "the database to replace or to create")
    .option("--force", "replace an existing file and its log")
    .action(
      async (backup: string, file: string, { force }: { force?: boolean }, command: Command) => {
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
          throw error;
        } finally {
          release();
        }
      },
    );
}
