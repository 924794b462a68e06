// Duty: set and delete.

import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { Kv } from "../../kv.js";
import type { KvDeleteManyOptions, KvFilter, KvKey } from "../../types.js";
import { count, key, keys, type RangeOptions, selectorOf, withRange, withWhere, YES, some } from "../arguments.js";
import { confirm } from "../confirm.js";
import { withDatabase } from "../database.js";
import { parseLiteral } from "../literal.js";
import { NotDone } from "../outcome.js";
import { note, print, type Style } from "../output.js";
import { whereOf } from "./reads.js";

export function addWriteCommands(program: Command): void {
  program
    .command("set")
    .description("store a value")
    .argument("<key>", "the key", key)
    .argument("[value]", "the value as a literal", parseLiteral)
    .option("--file <path>", "store the bytes of a file; - is the standard input")
    .option("--text", "with --file: as a string")
    .option("--expire-in <ms>", "milliseconds until the entry ends", count)
    .option("--if-absent", "only if there is no entry; exit code 1 when there is")
    .action(async (of: KvKey, given: unknown, options: SetOptions, command: Command) => {
      const { expireIn, file, text, ifAbsent } = options;
      if (file === undefined && command.args.length < 2) {
        command.error("error: missing argument 'value' (or --file)");
      }
      const bytes = file === undefined ? null : readFileSync(file === "-" ? 0 : file);
      const value = bytes === null ? given : text ? bytes.toString() : new Uint8Array(bytes);
      await withDatabase(command, "any", async (kv, style) => {
        const operation = kv.atomic().set(of, value, expireIn === undefined ? {} : { expireIn });
        if (ifAbsent) operation.check({ key: of, versionstamp: null });
        const result = await operation.commit();
        if (!result.ok) throw new NotDone("there is an entry already");
        if (style.json) await print(JSON.stringify({ versionstamp: result.versionstamp }));
      });
    });

  const removal = program
    .command("delete")
    .description("remove entries; absent ones are fine")
    .argument("[key...]", "the keys", keys)
    .option("--prefix <key>", "instead of keys: all that extend this one", key);
  withWhere(withRange(removal))
    .option("-n, --limit <count>", "with --prefix or --where: most entries", some)
    .option("--atomic", "with --prefix or --where: all in one commit, or none")
    .option(...YES)
    .action(async (listed: KvKey[] | undefined, options: DeleteOptions, command: Command) => {
      // Without any, the parser answers an empty list.
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

interface SetOptions {
  file?: string;
  text?: boolean;
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
  const given: KvDeleteManyOptions = {
    ...whereOf(options),
    ...(limit !== undefined && { limit }),
    ...(atomic && { atomic }),
  };
  if (of === undefined) {
    const which = selectorOf(prefix, options);
    // Nobody is kept waiting for a number that is not to be shown.
    if (options.yes !== true) {
      const met = await kv.count(which, whereOf(options));
      await confirm(`Delete ${Math.min(met, limit ?? met)} entries`, false);
    }
    await tell(await kv.deleteMany(which, given), style);
  } else {
    await tell(await kv.deleteMany(of, given), style);
  }
}

async function tell(result: { count: number; versionstamp: string | null }, style: Style): Promise<void> {
  if (style.json) await print(JSON.stringify(result));
  else note(`deleted ${result.count}`);
}
