// Duty: get, set, delete, list, watch and enqueue.

import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import type { KvKey, KvListOptions, KvListSelector } from "../../types.js";
import { withDatabase } from "../database.js";
import { parseKey, parseLiteral } from "../literal.js";
import { NotDone, untilInterrupted } from "../outcome.js";
import { note, print, printEntry, printKey, printValue } from "../output.js";

export function addEntryCommands(program: Command): void {
  addReads(program);
  addWrites(program);
}

const key = (text: string): KvKey => parseKey(text) as KvKey;

/** A whole number that is not negative. */
export function count(text: string): number {
  const n = Number(text);
  if (!Number.isSafeInteger(n) || n < 0) throw new InvalidArgumentError("Not a whole number.");
  return n;
}

function addReads(program: Command): void {
  program
    .command("get")
    .description("print the value of a key; exit code 1 when there is none")
    .argument("<key>", "the key", key)
    .action(async (of: KvKey, _: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const entry = await kv.get(of);
        if (entry.versionstamp === null) throw new NotDone("there is no such entry");
        if (style.json) printEntry(entry, style);
        else printValue(entry.value, style);
      });
    });

  program
    .command("list")
    .description("print entries in key order")
    .argument("[prefix]", "only keys that extend this one", key, [])
    .option("--start <key>", "from this key on", key)
    .option("--end <key>", "up to, and without, this key", key)
    .option("-n, --limit <count>", "most entries", count)
    .option("-r, --reverse", "from the last key to the first")
    .option("-k, --keys-only", "keys without values")
    .action(async (prefix: KvKey, options: ListOptions, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const { limit, reverse, keysOnly } = options;
        const listed = kv.list(selectorOf(prefix, options), { limit, reverse } as KvListOptions);
        for await (const entry of listed) {
          if (keysOnly) printKey(entry, style);
          else printEntry(entry, style);
        }
      });
    });

  program
    .command("watch")
    .description("print entries whenever they change, until interrupted")
    .argument("<key...>", "the keys", (text: string, before: KvKey[] = []) => [...before, key(text)])
    .action(async (keys: KvKey[], _: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv, style) => {
        const { signal, release } = untilInterrupted();
        const reader = kv.watch(keys).getReader();
        signal.addEventListener("abort", () => void reader.cancel());
        for (;;) {
          const { done, value: entries } = await reader.read();
          if (done) break;
          for (const entry of entries) {
            if (entry.versionstamp !== null) printEntry(entry, style);
            else print(style.json ? JSON.stringify({ gone: true }) : "(no entry)");
          }
        }
        release();
      });
    });
}

interface ListOptions {
  start?: KvKey;
  end?: KvKey;
  limit?: number;
  reverse?: boolean;
  keysOnly?: boolean;
}

export function selectorOf(prefix: KvKey, { start, end }: ListOptions): KvListSelector {
  if (start !== undefined && end !== undefined && prefix.length === 0) return { start, end };
  return { prefix, ...(start && { start }), ...(end && { end }) } as KvListSelector;
}

function addWrites(program: Command): void {
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
        if (style.json) print(JSON.stringify({ versionstamp: result.versionstamp }));
      });
    });

  program
    .command("delete")
    .description("remove entries; absent ones are fine")
    .argument("<key...>", "the keys", (text: string, before: KvKey[] = []) => [...before, key(text)])
    .action(async (keys: KvKey[], _: unknown, command: Command) => {
      await withDatabase(command, "existing", async (kv) => {
        await Promise.all(keys.map((of) => kv.delete(of)));
      });
    });

  program
    .command("enqueue")
    .description("put a message into the queue of kv.enqueue()")
    .argument("<value>", "the message as a literal", parseLiteral)
    .option("--delay <ms>", "milliseconds until the first delivery", count)
    .action(async (value: unknown, { delay = 0 }: { delay?: number }, command: Command) => {
      await withDatabase(command, "any", async (kv, style) => {
        const { versionstamp } = await kv.enqueue(value, { delay });
        if (style.json) print(JSON.stringify({ versionstamp }));
        else note("enqueued");
      });
    });
}

interface SetOptions {
  file?: string;
  text?: boolean;
  expireIn?: number;
  ifAbsent?: boolean;
}
