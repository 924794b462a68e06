// Duty: set and delete.

import { readFileSync, statSync } from "node:fs";
import { type Command, Option } from "commander";
import type { Kv } from "../../api/kv.js";
import type { KvDeleteManyOptions, KvFilter, KvKey } from "../../model/types.js";
import { notUnique } from "../../session/violations.js";
import {
  duration,
  KEY_WORDS,
  key,
  keyOf,
  keys,
  type RangeOptions,
  selectorOf,
  withRange,
  withWhere,
  YES,
  some,
  UNITS,
} from "../arguments.js";
import { confirm } from "../confirm.js";
import { readsInput, withDatabase } from "../database.js";
import { parseWord } from "../literal.js";
import { NotDone, interruptibly } from "../outcome.js";
import { note, print, type Style } from "../output.js";
import { KINDS, type Kind, readRaw } from "../raw.js";
import { STANDARD } from "./export.js";
import { whereOf } from "./reads.js";

export function addWriteCommands(program: Command): void {
  program
    .command("set")
    .description("store a value under a key")
    .usage("[options] <key...> <value>")
    .argument("<words...>", `${KEY_WORDS}; then the value: a literal, or else a string`)
    .option("--raw", "the value as text, not a literal; - is the standard input, as bytes")
    .option("--file <path>", "store the contents of a file as the value; - is the standard input")
    .addOption(
      new Option(
        "--as <kind>",
        "with --raw and --file: the type of the value; entry reads a line of --json",
      ).choices(KINDS),
    )
    .option("--string", "the value is a string as it is: 42, true, {a}; not a literal")
    .option("--text", "with --file: as --as text")
    .option(
      "--expire-in <duration>",
      `time until the entry expires: ${UNITS} (default: never)`,
      duration,
    )
    .option("--if-absent", "only if there is no entry; exit code 1 if there is one")
    .action(async (words: string[], options: SetOptions, command: Command) => {
      const { expireIn, file, ifAbsent } = options;
      const given = file === undefined ? words.at(-1)! : undefined;
      const of = given === undefined ? words : words.slice(0, -1);
      if (of.length === 0) command.error("error: missing argument 'value' (or --file)");
      const key = keyOf(of);
      const value = valueOf(given, options, command);
      await withDatabase(command, "any", async (kv, style) => {
        const operation = kv.atomic().set(key, value, expireIn === undefined ? {} : { expireIn });
        if (ifAbsent) operation.check({ key, versionstamp: null });
        const result = await operation.commit();
        if (!result.ok && result.violations !== undefined) throw notUnique(result.violations);
        if (!result.ok) throw new NotDone("there is an entry already");
        if (style.json) await print(JSON.stringify({ versionstamp: result.versionstamp }));
      });
    });

  const removal = program
    .command("delete")
    .description("delete entries; missing ones are no error")
    .argument("[key...]", "the keys", keys)
    .option("--prefix <key>", "instead of keys: all keys that extend this one", key);
  withWhere(withRange(removal))
    .option("-n, --limit <count>", "with --prefix or --where: most entries (default: all)", some)
    .option("--atomic", "with --prefix or --where: all in one commit, or none")
    .option(...YES)
    .action(async (listed: KvKey[] | undefined, options: DeleteOptions, command: Command) => {
      // Without keys, the parser returns an empty list.
      const of = listed?.length ? listed : undefined;
      const ranged = options.prefix ?? options.start ?? options.end;
      if ((of === undefined) === (ranged === undefined)) {
        command.error("error: give either keys or --prefix");
      }
      if (of !== undefined && options.where === undefined) {
        if (options.limit !== undefined || options.atomic) {
          command.error("error: --limit and --atomic need --prefix or --where");
        }
      }
      await withDatabase(command, "existing", async (kv, style) => {
        if (of !== undefined && options.where === undefined) {
          await Promise.all(of.map((one) => kv.delete(one)));
        } else {
          await deleteMany(kv, of, options, style);
        }
      });
    });
}

/** `given` is the last argument, unless there is a file. */
function valueOf(
  given: string | undefined,
  { raw, file, text, as, string }: SetOptions,
  command: Command,
): unknown {
  if (raw && file !== undefined) command.error("error: give either --raw or --file");
  if (string && (raw || file !== undefined || text || as !== undefined)) {
    command.error("error: --string goes with none of --raw, --file, --as and --text");
  }
  if (string) return given;
  if (!raw && file === undefined) {
    if (as !== undefined || text) command.error("error: --as and --text need --raw or --file");
    return parseWord(given!);
  }
  const from = file ?? given!;
  if (from === STANDARD) readsInput(command);
  const kind = as ?? (text ? "text" : undefined);
  if (raw && from !== STANDARD) return readRaw(Buffer.from(from), kind ?? "text");
  if (from !== STANDARD && statSync(from).isDirectory()) {
    throw new NotDone(`${from} is a folder: name a file`);
  }
  return readRaw(readFileSync(from === STANDARD ? 0 : from), kind ?? "bytes");
}

interface SetOptions {
  raw?: boolean;
  string?: boolean;
  file?: string;
  text?: boolean;
  as?: Kind;
  expireIn?: number;
  ifAbsent?: boolean;
}

interface DeleteOptions extends RangeOptions {
  prefix?: KvKey;
  where?: KvFilter;
  limit?: number;
  atomic?: boolean;
  yes?: boolean;
}

async function deleteMany(
  kv: Kv,
  of: KvKey[] | undefined,
  options: DeleteOptions,
  style: Style,
): Promise<void> {
  const { prefix = [], limit, atomic } = options;
  const which = of === undefined ? selectorOf(prefix, options) : undefined;
  // The count is needed for the question only.
  if (which !== undefined && options.yes !== true) {
    const met = await kv.count(which, whereOf(options));
    await confirm(`Delete ${Math.min(met, limit ?? met)} entries`, false);
  }
  const given: KvDeleteManyOptions = {
    ...whereOf(options),
    ...(limit !== undefined && { limit }),
    ...(atomic && { atomic }),
  };
  const deleted = await interruptibly("some entries may be deleted", (signal) =>
    kv.deleteMany((which ?? of) as KvKey[], { ...given, signal }),
  );
  await tell(deleted, style);
}

async function tell(
  result: { count: number; versionstamp: string | null },
  style: Style,
): Promise<void> {
  if (style.json) await print(JSON.stringify(result));
  else note(`deleted ${result.count}`);
}
