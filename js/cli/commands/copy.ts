// Duty: copy: all entries of one database into another, files and URLs alike.
// Never: replaces an entry of the destination without an option that says so.

import { existsSync } from "node:fs";
import type { Command } from "commander";
import { type ExportedEntry, encodeValue } from "../../interchange/encode.js";
import { listWithExpiry } from "../../interchange/list-with-expiry.js";
import type { Kv } from "../../api/kv.js";
import { isServer } from "../../arguments/location.js";
import type { KvKey, OpenKvOptions } from "../../model/types.js";
import { AT, type AtOptions, momentOf } from "../at.js";
import { ENCODING, key } from "../arguments.js";
import { CopyBatch } from "../copy-batch.js";
import { CommonHistory, type CopyRule, verdict } from "../copy-rule.js";
import {
  type GlobalOptions,
  located,
  openToRead,
  openTyped,
  readingOptions,
  remoteOptions,
  requireExisting,
  sameDatabase,
  styleOf,
} from "../database.js";
import { NotDone, WrongUsage, asOutcome, untilInterrupted } from "../outcome.js";
import { note, print, shownKey } from "../output.js";
import { Progress } from "../progress.js";
import { type Beside, sideBySide, stampsOf } from "../side-by-side.js";
import { onWithoutExpiry } from "./export.js";

export function addCopyCommand(program: Command): void {
  program
    .command("copy")
    .description("copy all entries from one database into another, files and URLs alike")
    .argument("<source>", "path or URL")
    .argument("<destination>", "path or URL; refused if it has an entry that would be replaced")
    .option("--prefix <key>", "only keys that extend this one", key)
    .option(...AT)
    .option("--skip-existing", "keep entries that the destination already has")
    .option(
      "--if-newer",
      "between two states of one database: replace entries that only the source changed",
    )
    .option("--force", "replace entries that the destination already has")
    .option(...ENCODING)
    .option(
      "--to-token <token>",
      "access token of the destination, if it differs (env: OPENKV_TO_TOKEN)",
    )
    .action(async (source: string, destination: string, options: CopyFlags, command: Command) => {
      const rule = ruleOf(options);
      const [from, to] = [located(source), located(destination)];
      if (sameDatabase(from, to))
        throw new WrongUsage("source and destination are the same database");
      await requireExisting(from);
      const given = command.optsWithGlobals<GlobalOptions>();
      const { prefix = [], encoding } = options;
      const toToken = options.toToken ?? process.env.OPENKV_TO_TOKEN ?? given.token;
      const opened = await openToRead(source, {
        ...readingOptions(from),
        ...forServer(from, given),
      });
      const reader = await momentOf(opened.kv, options.at);
      try {
        const isNew = !existsSync(to);
        const writer = await openTyped(destination, {
          ...forServer(to, { ...given, ...(toToken !== undefined && { token: toToken }) }),
          ...(encoding !== undefined && { encoding }),
        });
        try {
          const most =
            rule === "replace"
              ? COPY_ENTRIES_MAX
              : isServer(to)
                ? SERVER_CHECKS_MAX
                : COPY_ENTRIES_MAX;
          const batch = new CopyBatch(writer, most, rule !== "replace");
          if (encoding === undefined && isNew && existsSync(to) && !styleOf(command).json)
            note(`${to} is new, with values in CBOR: for a file that Deno opens, --encoding v8`);
          await asOutcome(() =>
            copyAll({ from: reader, to: writer, prefix, rule }, batch, styleOf(command).json),
          );
        } finally {
          await writer.close();
        }
      } finally {
        await reader.close();
      }
    });
}

interface CopyFlags extends AtOptions {
  prefix?: KvKey;
  skipExisting?: boolean;
  ifNewer?: boolean;
  force?: boolean;
  encoding?: "cbor" | "v8";
  toToken?: string;
}

function ruleOf({ skipExisting, ifNewer, force }: CopyFlags): CopyRule {
  if ([skipExisting, ifNewer, force].filter(Boolean).length > 1) {
    throw new WrongUsage("give one of --skip-existing, --if-newer and --force");
  }
  return skipExisting ? "keep" : ifNewer ? "if-newer" : force ? "replace" : "refuse";
}

/** A token has no meaning for a file. */
/** The options of every command that are for the URL of a server. */
function forServer(located: string, given: GlobalOptions): OpenKvOptions {
  return isServer(located) ? remoteOptions(given) : {};
}

/** Entries of one read, and at most of one commit. */
const COPY_ENTRIES_MAX = 500;
/** Checks that every server of KV Connect takes in one commit. */
const SERVER_CHECKS_MAX = 100;

interface Copying {
  readonly from: Kv;
  readonly to: Kv;
  readonly prefix: KvKey;
  readonly rule: CopyRule;
}

async function copyAll(copying: Copying, batch: CopyBatch, json: boolean): Promise<void> {
  const { rule } = copying;
  const { signal, release } = untilInterrupted();
  const progress = new Progress("copied", undefined);
  let kept = 0;
  let conflicts = 0;
  try {
    const common = await prepare(copying);
    for await (const { source, destination } of await pairsOf(copying)) {
      if (signal.aborted) break;
      if (source === null) continue;
      const theirs = destination?.versionstamp ?? null;
      const decided = verdict(rule, source.versionstamp, theirs, common);
      if (decided === "copy") await batch.add(source, theirs);
      else kept++;
      if (decided === "conflict") conflicts++;
      progress.update(batch.copied, batch.copied);
    }
    await batch.end();
  } finally {
    release();
  }
  kept += batch.lost;
  const summary = [
    progress.end(batch.copied),
    ...(kept > 0 ? [`${kept} left as they are in the destination`] : []),
    ...(conflicts > 0 ? [`${conflicts} of them changed on both sides`] : []),
  ].join(", ");
  if (signal.aborted) throw new NotDone(`${summary}, interrupted`, true);
  if (json) await print(JSON.stringify(countsOf(rule, batch.copied, kept, conflicts)));
  else note(summary);
  if (rule === "refuse" && kept > 0)
    throw new NotDone(`${kept} entries were written to the destination meanwhile, and were kept`);
}

function countsOf(rule: CopyRule, copied: number, kept: number, conflicts: number): object {
  if (rule === "if-newer") return { copied, kept, conflicts };
  return rule === "replace" || (rule === "refuse" && kept === 0) ? { copied } : { copied, kept };
}

/** The entries to copy, in key order, each with the destination's entry if the rule needs it. */
async function pairsOf({
  from,
  to,
  prefix,
  rule,
}: Copying): Promise<AsyncIterable<Beside<ExportedEntry>>> {
  const entries = await listWithExpiry(from, { prefix }, COPY_ENTRIES_MAX, onWithoutExpiry);
  if (rule === "replace" || rule === "refuse") return alone(entries);
  return sideBySide(entries, await stampsOf(to, prefix, COPY_ENTRIES_MAX));
}

async function* alone<T>(
  entries: AsyncIterable<T>,
): AsyncGenerator<{ source: T; destination: null }> {
  for await (const source of entries) yield { source, destination: null };
}

/**
 * Checks the databases before anything is copied. Returns the last commit that both have in common,
 * if the rule needs it.
 */
async function prepare({ from, to, prefix, rule }: Copying): Promise<string | null> {
  if (rule === "keep" || rule === "replace") return null;
  // The most common destination is empty.
  const first = await to.list({ prefix }, { limit: 1 }).next();
  if (first.done) return null;
  const history = new CommonHistory();
  let shared: KvKey | null = null;
  const [ours, theirs] = [
    await stampsOf(from, prefix, COPY_ENTRIES_MAX),
    await stampsOf(to, prefix, COPY_ENTRIES_MAX),
  ];
  for await (const { source, destination } of sideBySide(ours, theirs)) {
    if (rule === "refuse" && source !== null && destination !== null) {
      throw new NotDone(
        `the destination has an entry ${shownKey(source.key)} already, and nothing was copied: ` +
          "give --skip-existing to leave such entries, --force to replace them, or --if-newer",
      );
    }
    const before = history.shared;
    history.add({
      source: source?.versionstamp ?? null,
      destination: destination?.versionstamp ?? null,
    });
    if (history.shared !== before) shared = source!.key;
  }
  if (history.met && (shared === null || !(await isOneEntry(from, to, shared)))) {
    throw new NotDone(
      "no entry is from a commit that both databases have: --if-newer compares versionstamps, which count " +
        "the commits of one database and are good between its states only (a file and a backup of it); " +
        "nothing was copied: give --skip-existing or --force",
    );
  }
  return history.last;
}

/** Whether entries with the same versionstamp on both sides are the same entry: unrelated databases may
 * have equal versionstamps. */
async function isOneEntry(from: Kv, to: Kv, of: KvKey): Promise<boolean> {
  const [ours, theirs] = await Promise.all([from.get(of), to.get(of)]);
  return (await encodeValue(ours.value)) === (await encodeValue(theirs.value));
}
