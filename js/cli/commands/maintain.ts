// Duty: backup, check, stats and vacuum: the maintenance of a database.

import type { Command } from "commander";
import { type GlobalOptions, withDatabase, withDatabaseAt } from "../database.js";
import { NotDone, notDoneBy, untilInterrupted } from "../outcome.js";
import { note, print, printFacts } from "../output.js";
import { Progress } from "../progress.js";
import type { Kv } from "../../api/kv.js";

/** What a vacuum of a file without steps writes in a second on the disk of docs/operating.md, at least. */
const REWRITTEN_BYTES_PER_SECOND = 20_000_000;
/** The pause between two lines of progress. */
const PROGRESS_MS = 500;

export function addMaintenanceCommands(program: Command): void {
  program
    .command("backup")
    .description("copy the database into a new file while it is in use, and verify the copy")
    .argument("<database or file>", "the new file; the database, if a file follows (default: --db)")
    .argument("[file]", "the new file, which must not exist")
    .action(async (first: string, second: string | undefined, _: unknown, command: Command) => {
      const file = second ?? first;
      const db = second === undefined ? command.optsWithGlobals<GlobalOptions>().db : first;
      await withDatabaseAt(db, command, "read", async (kv, style) => {
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
          throw notDoneBy(error);
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
      await withDatabase(command, "read", async (kv, style) => {
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
      await withDatabase(command, "read", async (kv, style) => {
        await printFacts({ ...(await kv.stats(options)) }, style);
      });
    });

  program
    .command("vacuum")
    .description(
      "give the free pages of the file back to the system; what is done stays after Ctrl-C",
    )
    .action(async (_: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const { signal, release } = untilInterrupted();
        const progress = await tellVacuum(kv);
        try {
          await printFacts(await kv.vacuum({ signal }), style);
        } catch (error) {
          if (signal.aborted) throw new NotDone("interrupted: the next vacuum goes on", true);
          throw error;
        } finally {
          progress.end();
          release();
        }
      });
    });
}

/** Tells how far a vacuum has come, or how long it keeps writers waiting. */
async function tellVacuum(kv: Kv): Promise<{ end(): void }> {
  const { freePages, databaseBytes, pageSize, vacuumInSteps } = await kv.stats();
  if (!vacuumInSteps) {
    const seconds = Math.ceil((databaseBytes - freePages * pageSize) / REWRITTEN_BYTES_PER_SECOND);
    if (databaseBytes > 0) note(`the file is written anew; writers wait, for about ${seconds} s`);
    return { end: () => {} };
  }
  const progress = new Progress("freed", freePages, "pages");
  const timer = setInterval(() => {
    const show = (free: number): void => progress.update(freePages - free, freePages - free);
    // A call that fails then fails the vacuum too.
    kv.stats().then(
      (now) => show(now.freePages),
      () => {},
    );
  }, PROGRESS_MS);
  return {
    end: () => {
      clearInterval(timer);
      progress.end(0);
    },
  };
}
