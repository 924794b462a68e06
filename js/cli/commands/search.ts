// Duty: search, and indexes of both types.

import { type Command, InvalidArgumentError } from "commander";
import type { KvFilter, KvIndexOptions, KvKey, KvSearchOptions } from "../../model/types.js";
import { count, counts, indexPath, key, withWhere, some } from "../arguments.js";
import { withDatabase } from "../database.js";
import { NotDone, asOutcome } from "../outcome.js";
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
      await withDatabase(command, "read", async (kv, style) => {
        const all = { ...given, ...whereOf({ where } as Filtered) };
        // The database may have no such index.
        const found = await asOutcome(() => kv.search(prefix, query, all));
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
  const index = program.command("index").description("create, list and drop indexes");

  index
    .command("create")
    .description(
      "create an index of the text in values, or of the values, and wait until it is complete",
    )
    .argument("<prefix>", "of the keys that extend this one", key)
    .argument(
      "<field...>",
      'paths into the values: name details.maker; of a value index also \'{ path: "joined", order: "desc" }\'',
    )
    .option("--type <type>", "fulltext, or value for lists by a value (default: fulltext)", typeOf)
    .option("--unique", "of type value: no two entries have the same values under all paths")
    .option("--multi", "of type value: each element of an array has an entry")
    .option("--sparse", "of type value: without entries that lack the first path")
    .option("--tokenize <how>", "auto, unicode61, porter, ascii or trigram (default: auto)")
    .option(
      "--prefix-lengths <n,n...>",
      "lengths in characters of word prefixes with fast searches (default: none)",
      counts,
    )
    .option(
      "--name <name>",
      "its name (default: derived from the prefix, and of type value from the paths)",
    )
    .option(
      "--replace",
      "drop an index of the prefix that differs, or of type value one of the name",
    )
    .option("--no-wait", "do not wait; the next process that opens the file continues")
    .action(async (prefix: KvKey, fields: string[], options: CreateFlags, command: Command) => {
      const { wait, ...given } = options;
      const wanted = wantedIndex(prefix, fields, given, command);
      await withDatabase(command, "existing", async (kv, style) => {
        const made = await kv.createIndex(wanted as KvIndexOptions);
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
      await withDatabase(command, "read", async (kv, style) => {
        for (const info of await kv.listIndexes()) await printFacts({ ...info }, style);
      });
    });

  index
    .command("drop")
    .description("remove an index; the entries stay; exit code 1 if there is none")
    .argument("[prefix]", "the prefix of a full-text index", key)
    .option("--name <name>", "instead of the prefix: the name of an index of either type")
    .action(async (prefix: KvKey | undefined, { name }: { name?: string }, command: Command) => {
      if ((prefix === undefined) === (name === undefined)) {
        command.error("error: give either a prefix or --name");
      }
      await withDatabase(command, "existing", async (kv) => {
        if (!(await kv.dropIndex(prefix ?? name!))) throw new NotDone("there is no such index");
      });
    });
}

/** The options of createIndex. */
function wantedIndex(
  prefix: KvKey,
  fields: string[],
  given: Omit<CreateFlags, "wait">,
  command: Command,
): object {
  const { tokenize, prefixLengths, unique, multi, sparse } = given;
  if (given.type !== "value") {
    if (unique || multi || sparse) {
      command.error("error: --unique, --multi and --sparse need --type value");
    }
    return { prefix, fields, ...given };
  }
  if (tokenize !== undefined || prefixLengths !== undefined) {
    command.error("error: --tokenize and --prefix-lengths are of full-text indexes");
  }
  return { prefix, on: fields.map(indexPath), ...given };
}

function typeOf(text: string): string {
  if (text === "fulltext" || text === "value") return text;
  throw new InvalidArgumentError("Give fulltext or value.");
}

interface CreateFlags {
  type?: string;
  unique?: boolean;
  multi?: boolean;
  sparse?: boolean;
  tokenize?: string;
  prefixLengths?: number[];
  name?: string;
  replace?: boolean;
  wait: boolean;
}
