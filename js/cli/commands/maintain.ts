// Duty: backup, check, stats and vacuum: the maintenance of a database.

import type { Command } from "commander";
import { type GlobalOptions, withDatabase, withDatabaseAt } from "../database.js";
import { NotDone, untilInterrupted } from "../outcome.js";
import { note, print, printFacts } from "../output.js";
import { Progress } from "../progress.js";

export function addMaintenanceCommands(program: Command): void {
  program
    .command("backup")
    .description("copy the database into a new file while it is in use, and verify the copy")
    .argument("<database or file>", "the new file; the database, if a file follows (default: --db)")
    .argument("[file]", "the new file, which must not exist")
    .action(async (first: string, second: string | undefined, _: unknown, command: Command) => {
      const file = second ?? first;
      const db = second === undefined ? command.optsWithGlobals<GlobalOptions>().db : first;
      await withDatabaseAt(db, command, "existing", async (kv, style) => {
        const { signal, release } = untilInterrupted();
        let progress: Progress | undefined;
        try {
          const copy = await kv.backup(file, {
            signal,
            onProgress: ({ pagesDone, pages }) => {
              progress ??= new Progress("copied", pages, "pages");
              progress.update(pagesDone, pagesDone);
            },
          });
          progress?.end(copy.entries);
          await printFacts({ file, ...copy }, style);
        } catch (error) {
          progress?.end(0);
          if (signal.aborted) throw new NotDone("interrupted: the copy was removed", true);
          throw error;
        } finally {
          release();
        }
      });
    });

  program
    .command("check")
    .description(
      "check the integrity of every page, key and value; exit code 1 if there are findings",
    )
    .action(async (_: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const { ok, findings } = await kv.check();
        if (style.json) await print(JSON.stringify({ ok, findings }));
        else for (const finding of findings) await print(finding);
        if (!ok) throw new NotDone(`${findings.length} findings`);
        if (!style.json) note("no findings");
      });
    });

  program
    .command("stats")
    .description("print the size of the database")
    .option("--entries", "count the entries too; reads all of them")
    .action(async (options: { entries?: boolean }, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        await printFacts({ ...(await kv.stats(options)) }, style);
      });
    });

  program
    .command("vacuum")
    .description("rewrite the file without its free pages; writers wait meanwhile")
    .action(async (_: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        await printFacts(await kv.vacuum(), style);
      });
    });
}
