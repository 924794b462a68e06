// Duty: search and index: full text.

import type { Command } from "commander";
import type { KvFilter, KvIndexOptions, KvKey, KvSearchOptions } from "../../model/types.js";
import { count, counts, key, withWhere, some } from "../arguments.js";
import { withDatabase } from "../database.js";
import { NotDone } from "../outcome.js";
import { note, print, printFacts, printFound } from "../output.js";
import { Progress } from "../progress.js";
import { whereOf } from "./reads.js";

export function addSearchCommands(program: Command): void {
  const search = program
    .command("search")
    .description("print the entries that match a full-text query, best first")
    .argument("<prefix>", "the prefix of the index", key)
    .argument("<query>", 'words, "a phrase", bik*, a OR b, a NOT b, field:word');
  withWhere(search)
    .option("-n, --limit <count>", "most entries, up to 1000 (default: 20)", some)
    .option("--offset <count>", "entries to skip (default: 0)", count)
    .option("--cursor <text>", "continue after the result with this cursor")
    .option("--highlight", "print the matching text instead of the value")
    .action(async (prefix: KvKey, query: string, options: SearchFlags, command: Command) => {
      const { where, ...given } = options;
      await withDatabase(command, "existing", async (kv, style) => {
        const found = await kv.search(prefix, query, {
          ...given,
          ...whereOf({ where } as Filtered),
        });
        for (const entry of found.entries) await printFound(entry, style);
        if (!found.complete) note("the index is still being built: older entries may be missing");
        if (found.cursor !== null) note(`--cursor ${found.cursor} goes on from here`);
      });
    });
  addIndexCommands(program);
}

type Filtered = { where?: KvFilter };

interface SearchFlags extends Omit<KvSearchOptions, "where">, Filtered {}

function addIndexCommands(program: Command): void {
  const index = program.command("index").description("create, list and drop full-text indexes");

  index
    .command("create")
    .description("create an index of the text in values, and wait until it is complete")
    .argument("<prefix>", "of the keys that extend this one", key)
    .argument("<field...>", "paths into the values: name details.maker")
    .option("--tokenize <how>", "auto, unicode61, porter, ascii or trigram (default: auto)")
    .option(
      "--prefix-lengths <n,n...>",
      "lengths in characters of word prefixes with fast searches (default: none)",
      counts,
    )
    .option("--name <name>", "its name (default: derived from the prefix)")
    .option("--replace", "drop an index of the prefix that differs")
    .option("--no-wait", "do not wait; the next process that opens the file continues")
    .action(async (prefix: KvKey, fields: string[], options: CreateFlags, command: Command) => {
      const { wait, ...given } = options;
      await withDatabase(command, "existing", async (kv, style) => {
        const made = await kv.createIndex({ prefix, fields, ...given } as KvIndexOptions);
        if (wait) {
          const progress = new Progress("indexed", undefined);
          let indexed = 0;
          for await (const step of made.progress) {
            indexed = step.indexed;
            progress.expect(step.total ?? undefined);
            progress.update(indexed, indexed);
            if (step.done) break;
          }
          const summary = progress.end(indexed);
          if (!style.json) note(summary);
        }
        if (style.json) await print(JSON.stringify({ name: made.name, state: made.state }));
        else note(`${made.name} is ${made.state}`);
      });
    });

  index
    .command("list")
    .description("print all indexes and their progress")
    .action(async (_: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        for (const info of await kv.listIndexes()) await printFacts({ ...info }, style);
      });
    });

  index
    .command("drop")
    .description("remove an index; the entries stay; exit code 1 if there is none")
    .argument("[prefix]", "its prefix", key)
    .option("--name <name>", "instead of the prefix: its name")
    .action(async (prefix: KvKey | undefined, { name }: { name?: string }, command: Command) => {
      if ((prefix === undefined) === (name === undefined)) {
        command.error("error: give either a prefix or --name");
      }
      await withDatabase(command, "existing", async (kv) => {
        if (!(await kv.dropIndex(prefix ?? name!))) throw new NotDone("there is no such index");
      });
    });
}

interface CreateFlags {
  tokenize?: string;
  prefixLengths?: number[];
  name?: string;
  replace?: boolean;
  wait: boolean;
}
