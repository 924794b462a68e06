// Duty: the command `openkv`: its commands and its exit code.

import { Command, CommanderError, Option } from "commander";
import { visible } from "../codec/key-text.js";
import { isRefusedInput } from "../model/errors.js";
import { inWords } from "./advice.js";
import { addArchiveCommands } from "./commands/archive.js";
import { addAtomicCommand } from "./commands/atomic.js";
import { addBucketCommands } from "./commands/bucket.js";
import { addClusterCommands } from "./commands/cluster.js";
import { addCompletionCommand } from "./commands/completion.js";
import { addCopyCommand } from "./commands/copy.js";
import { addDeadCommands } from "./commands/dead.js";
import { addEntryCommands } from "./commands/entry.js";
import { addExportCommand } from "./commands/export.js";
import { addHistoryCommands } from "./commands/history.js";
import { addImportCommand } from "./commands/import.js";
import { addMaintenanceCommands } from "./commands/maintain.js";
import { addMcpCommand } from "./commands/mcp.js";
import { addQueueCommands } from "./commands/queues.js";
import { addReadCommands } from "./commands/reads.js";
import { addPromoteCommand } from "./commands/promote.js";
import { addRestoreCommand } from "./commands/restore.js";
import { addSearchCommands } from "./commands/search.js";
import { addServeCommand } from "./commands/serve.js";
import { addShellCommand } from "./commands/shell.js";
import { addStudioCommand } from "./commands/studio.js";
import { addTenantCommands } from "./commands/tenants.js";
import { addTopCommand } from "./commands/top.js";
import { addWriteCommands } from "./commands/writes.js";
import { DONE, INTERRUPTED, NOT_DONE, WRONG_USAGE } from "./exit-codes.js";
import { LiteralError, QUOTING } from "./literal.js";
import { addManual } from "./manual.js";
import { NotDone, WrongUsage } from "./outcome.js";
import { OutputError, fail } from "./output.js";

/** An unknown option that may be an argument, such as -1n or -Infinity. */
const DASHED = /^error: unknown option '-[^-]/;
const BEHIND = "(an argument that begins with - goes behind --, as in: sum key -- -1n)\n";

/** Creates the program, without parsing any argument. */
export function makeProgram(): Command {
  const { version } = require("../../package.json") as { version: string };
  const program = new Command("openkv")
    .description("A transactional key-value store: look into a database, change it, move it.")
    .version(version)
    .addOption(
      new Option("-d, --db <path or URL>", "the database (default: as openKv() finds it)").env(
        "OPENKV_URL",
      ),
    )
    .option(
      "--token <token>",
      "access token of a database that is opened by URL (default: OPENKV_ACCESS_TOKEN)",
    )
    .option(
      "--timeout <duration>",
      "of a database that is opened by URL: how long opening and each call may take, with attempts to reach " +
        "the server (default: one attempt to open, 10s for a call)",
    )
    .option(
      "--json",
      "print JSON, one entry a line: lossless; with --json=plain as jq and others know it",
    )
    .addOption(new Option("--json-plain").hideHelp())
    .option("--no-color", "print without colours")
    .showHelpAfterError("(openkv --help tells how)")
    // The message quotes the words of the command line.
    .configureOutput({
      outputError: (text, write) => write(visible(text + (DASHED.test(text) ? BEHIND : ""), true)),
    })
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  addReadCommands(program);
  addHistoryCommands(program);
  addWriteCommands(program);
  addEntryCommands(program);
  addAtomicCommand(program);
  addQueueCommands(program);
  addDeadCommands(program);
  addSearchCommands(program);
  addExportCommand(program);
  addImportCommand(program);
  addCopyCommand(program);
  addMaintenanceCommands(program);
  addTopCommand(program);
  addRestoreCommand(program);
  addPromoteCommand(program);
  addArchiveCommands(program);
  addBucketCommands(program);
  addServeCommand(program);
  addStudioCommand(program);
  addMcpCommand(program);
  addTenantCommands(program);
  addClusterCommands(program);
  addShellCommand(program, { makeProgram, run: outcome });
  addCompletionCommand(program);
  addManual(program);
  program.addHelpText(
    "after",
    `
Keys are arrays, typed as in JavaScript, '["users", 42, 1n, true, u8"00ff"]', or a word for each part.
Values are typed the same way; beyond JSON5 there are 42n, u8"00ff", u64(42), date("2026-01-01"),
set([1]), map([["a", 1]]), regexp("/a/g"), undefined, NaN and Infinity. Text that is none of these is a
string: hello, 2026-01-01, /tmp/x, 1.2.3. A string that looks like a literal has quotes, '"42"', or --string.
Values are printed in the same form. Durations are 30s, 1h30m or 2d; a number alone is milliseconds.

Examples:
  openkv -d app.sqlite3 set '["users", "ada"]' '{ name: "Ada", born: date("1815-12-10") }'
  openkv -d app.sqlite3 list users
  openkv -d app.sqlite3 export backup.ndjson
  openkv -d app.sqlite3 count users --where '{ born: { $lt: date("1900-01-01") } }'
  openkv copy app.sqlite3 copy.sqlite3
  openkv serve --path app.sqlite3 --listen 127.0.0.1:4512`,
  );
  return program;
}

/**
 * The value of the option `--json` follows `=` only: commander would take the name of the command
 * for its value.
 */
function withForms(argv: readonly string[]): string[] {
  const end = argv.indexOf("--");
  return argv.map((word, at) => {
    if (!word.startsWith("--json=") || (end !== -1 && at > end)) return word;
    const form = JSON_FORMS[word.slice("--json=".length)];
    if (form === undefined)
      throw new WrongUsage(`${word}: the forms are --json, --json=lossless and --json=plain`);
    return form;
  });
}

const JSON_FORMS: Readonly<Record<string, string>> = { lossless: "--json", plain: "--json-plain" };

/** Runs a command line and sets the exit code of the process. */
export async function run(argv: readonly string[]): Promise<void> {
  // Errors of writing to standard output reject their promise; errors of notes are ignored.
  process.stdout.on("error", () => {});
  process.stderr.on("error", () => {});
  // An empty variable is none, as for openKv().
  if (process.env.OPENKV_URL === "") delete process.env.OPENKV_URL;
  const code = await outcome(makeProgram(), argv.slice(2));
  process.exitCode = code;
  // An interrupted command may still wait for input or output; the process does not wait for it.
  if (code === INTERRUPTED) process.exit();
}

/** Runs a command line without the program's name, prints an error, and returns the exit code. */
async function outcome(program: Command, words: readonly string[]): Promise<number> {
  try {
    await program.parseAsync(withForms(words), { from: "user" });
    return DONE;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : WRONG_USAGE;
    if (error instanceof NotDone) {
      fail(inWords(error.message));
      return error.interrupted ? INTERRUPTED : NOT_DONE;
    }
    // A reader that has closed the pipe (`| head`) is no failure.
    if (error instanceof OutputError && error.readerGone) return DONE;
    const message = (error as Error).message ?? String(error);
    // It quotes the literal of the user.
    fail(error instanceof LiteralError ? `${message}; ${QUOTING}` : inWords(message));
    const isUsage =
      error instanceof LiteralError || error instanceof WrongUsage || isRefusedInput(error);
    return isUsage ? WRONG_USAGE : NOT_DONE;
  }
}
