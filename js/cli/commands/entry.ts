// Duty: ttl, touch, persist, sum and append: they read or change one entry without replacing its value.

import type { Command } from "commander";
import type { Kv } from "../../api/kv.js";
import type { KvKey, KvSumOptions } from "../../model/types.js";
import { UNITS, duration, KEY_WORDS, key, keyOf } from "../arguments.js";
import { withDatabase } from "../database.js";
import { parseLiteral, parseWord } from "../literal.js";
import { NotDone, WrongUsage, asOutcome } from "../outcome.js";
import { print, type Style } from "../output.js";

export function addEntryCommands(program: Command): void {
  program
    .command("ttl")
    .description(
      "print the milliseconds until an entry expires, and the time; exit code 1 if there is no entry",
    )
    .argument("<key...>", KEY_WORDS)
    .action(async (words: string[], _: unknown, command: Command) => {
      const of = keyOf(words);
      await withDatabase(command, "read", async (kv, style) => {
        const end = await kv.ttl(of);
        if (end === null && (await kv.get(of)).versionstamp === null) throw noEntry();
        await printEnd(end?.expireAt ?? null, style);
      });
    });

  program
    .command("touch")
    .description(
      "set the expiry of an entry; its value and versionstamp stay; exit code 1 if there is no entry",
    )
    .argument("<key...>", KEY_WORDS)
    .requiredOption("--expire-in <duration>", `time until it expires: ${UNITS}`, duration)
    .action(async (words: string[], { expireIn }: { expireIn: number }, command: Command) => {
      await setExpiry(command, keyOf(words), (kv, of) => kv.touch(of, { expireIn }));
    });

  program
    .command("persist")
    .description("remove the expiry of an entry; exit code 1 if there is no entry")
    .argument("<key...>", KEY_WORDS)
    .action(async (words: string[], _: unknown, command: Command) => {
      await setExpiry(command, keyOf(words), (kv, of) => kv.persist(of));
    });

  program
    .command("sum")
    .description(
      "add to a number; a missing entry counts as 0, and a bigint becomes a 64-bit number",
    )
    .usage("[options] <key...> <n>")
    .argument(
      "<words...>",
      `${KEY_WORDS}; then the number to add: a number, a bigint (5n) or u64(5)`,
    )
    .option(
      "--min <n>",
      "the smallest result, of the type of the number to add (default: none)",
      parseLiteral,
    )
    .option(
      "--max <n>",
      "the largest result, of the type of the number to add (default: none)",
      parseLiteral,
    )
    .option("--clamp", "store the bound instead of a result beyond it (default: the command fails)")
    .action(async (words: string[], options: KvSumOptions, command: Command) => {
      if (words.length < 2) command.error("error: missing argument 'n'");
      const of = keyOf(words.slice(0, -1));
      const n = parseLiteral(words.at(-1)!) as never;
      await commit(command, (kv) => kv.atomic().sum(of, n, options as never));
    });

  program
    .command("append")
    .description("add items to the end of an array; a missing entry counts as an empty array")
    .argument("<key>", "the key: an array, or one word", key)
    .argument("<item...>", "the items: literals, or else strings")
    .option("--string", "the items are strings as they are: 42, true, {a}; not literals")
    .option("--prepend", "add them in front")
    .action(
      async (of: KvKey, words: string[], { prepend, string }: AppendFlags, command: Command) => {
        const items = string ? words : words.map(parseWord);
        await commit(command, (kv) =>
          prepend ? kv.atomic().prepend(of, items) : kv.atomic().append(of, items),
        );
      },
    );
}

interface AppendFlags {
  prepend?: boolean;
  string?: boolean;
}

function noEntry(): NotDone {
  return new NotDone("there is no such entry");
}

function printEnd(expireAt: Date | null, style: Style): Promise<void> {
  const ms = expireAt === null ? null : expireAt.getTime() - Date.now();
  if (style.json) return print(JSON.stringify({ ttl: ms, expireAt }));
  return print(expireAt === null ? "stays" : `${ms} ms, until ${expireAt.toISOString()}`);
}

async function setExpiry(
  command: Command,
  of: KvKey,
  change: (kv: Kv, of: KvKey) => Promise<{ ok: boolean }>,
): Promise<void> {
  await withDatabase(command, "existing", async (kv, style) => {
    if (!(await change(kv, of)).ok) throw noEntry();
    if (style.json) await printEnd((await kv.ttl(of))?.expireAt ?? null, style);
  });
}

/** The operation reports what is wrong with a number or an item, and the database what is wrong with the entry. */
async function commit(command: Command, made: (kv: Kv) => ReturnType<Kv["atomic"]>): Promise<void> {
  await withDatabase(command, "any", async (kv, style) => {
    const operation = operationOf(kv, made);
    const result = await asOutcome(() => operation.commit());
    if (!result.ok) throw new NotDone("nothing was written");
    if (style.json) await print(JSON.stringify({ versionstamp: result.versionstamp }));
  });
}

function operationOf(kv: Kv, made: (kv: Kv) => ReturnType<Kv["atomic"]>): ReturnType<Kv["atomic"]> {
  try {
    return made(kv);
  } catch (error) {
    throw error instanceof TypeError ? new WrongUsage(error.message) : error;
  }
}
