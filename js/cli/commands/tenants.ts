// Duty: db and token: the databases of a server and their tokens.

import { randomBytes } from "node:crypto";
import { type Command, Option } from "commander";
import { ask, type DatabaseView, type TokenView, withServer } from "../admin.js";
import { durationOf, type QuotaOptions, quotasOf, withQuotas, YES } from "../arguments.js";
import { confirm } from "../confirm.js";
import { styleOf } from "../database.js";
import { WrongUsage } from "../outcome.js";
import { note, print, printFacts, type Style } from "../output.js";

export function addTenantCommands(program: Command): void {
  const db = program
    .command("db")
    .description("the databases of a server that has a folder of them");

  withServer(db.command("list").description("print all databases")).action(
    async (_: unknown, command: Command) => {
      const style = styleOf(command);
      for (const view of await ask<DatabaseView[]>(command, "GET", ["databases"])) {
        if (style.json) await print(JSON.stringify(view));
        else
          await print(
            [view.name, sizeOf(view), `${view.tokens.length} tokens`, view.createdAt]
              .filter((part) => part !== undefined)
              .join("  "),
          );
      }
    },
  );

  const create = db
    .command("create")
    .description("create a database, and print its first token, which has admin rights");
  withServer(withQuotas(create.argument("<name>", "1 to 63 of a-z, 0-9, - and _"))).action(
    async (name: string, options: QuotaOptions, command: Command) => {
      const quotas = quotasOf(options);
      const made = await ask<DatabaseView>(command, "POST", ["databases"], { name, quotas });
      await printDatabase(made, styleOf(command));
      noteOnce(styleOf(command));
    },
  );

  withServer(
    db.command("show").description("print one database").argument("<name>", "its name"),
  ).action(async (name: string, _: unknown, command: Command) => {
    await printDatabase(
      await ask<DatabaseView>(command, "GET", ["databases", name]),
      styleOf(command),
    );
  });

  const quotas = db
    .command("quotas")
    .description("replace its quotas; a quota that is not given is removed");
  withServer(withQuotas(quotas.argument("<name>", "its name"))).action(
    async (name: string, options: QuotaOptions, command: Command) => {
      await ask(command, "PUT", ["databases", name, "quotas"], quotasOf(options));
    },
  );

  const archive = db
    .command("archive")
    .description("print the archive of a database, or set its policy");
  withServer(
    archive
      .argument("<name>", "its name")
      .option("--to <target>", "archive it there: an absolute path, or s3://, gs://, az://")
      .option("--snapshot-every <duration>", "with --to: time between two snapshots (default: 24h)")
      .option("--retention <duration>", "with --to: how long it reaches back (default: 30d)")
      .option("--off", "do not archive it, whatever the server does by default")
      .option("--default", "remove its policy: the default of the server holds"),
  ).action(async (name: string, options: ArchiveOptions, command: Command) => {
    const [method, body] = archiveRequest(options);
    if (method !== "GET") await ask(command, method, ["databases", name, "archive"], body);
    const view = await ask<Record<string, unknown>>(command, "GET", ["databases", name, "archive"]);
    await printFacts(view, styleOf(command));
  });

  const drop = db
    .command("drop")
    .description("drop a database; its watches end and its files are removed");
  withServer(drop.argument("<name>", "its name").option(...YES)).action(
    async (name: string, { yes }: { yes?: boolean }, command: Command) => {
      await confirm(`Drop the database ${name} with all its entries`, yes);
      await ask(command, "DELETE", ["databases", name]);
    },
  );

  addTokenCommands(program);
}

interface ArchiveOptions {
  to?: string;
  snapshotEvery?: string;
  retention?: string;
  off?: boolean;
  default?: boolean;
}

/** The request that the options of `db archive` are for. */
function archiveRequest(options: ArchiveOptions): [method: string, body?: object] {
  const { to, snapshotEvery, retention, off, default: inherits } = options;
  if ([to !== undefined, off, inherits].filter((given) => given === true).length > 1) {
    throw new WrongUsage("--to, --off and --default exclude each other: give one of them");
  }
  if (to === undefined && (snapshotEvery ?? retention) !== undefined) {
    const name = snapshotEvery === undefined ? "--retention" : "--snapshot-every";
    throw new WrongUsage(`${name} is for a policy: give --to too`);
  }
  if (off) return ["PUT", { to: null }];
  if (inherits) return ["DELETE"];
  if (to === undefined) return ["GET"];
  return [
    "PUT",
    {
      to,
      ...(snapshotEvery !== undefined && {
        snapshotEvery: durationOf("--snapshot-every", snapshotEvery),
      }),
      ...(retention !== undefined && { retention: durationOf("--retention", retention) }),
    },
  ];
}

function sizeOf({ bytes }: DatabaseView): string | undefined {
  return bytes === undefined ? undefined : `${bytes} bytes`;
}

async function printDatabase(view: DatabaseView, style: Style): Promise<void> {
  const { tokens, quotas, ...facts } = view;
  if (style.json) return await print(JSON.stringify({ ...facts, quotas, tokens }));
  await printFacts({ ...facts, quotas }, style);
  for (const token of tokens) await printToken(token, style);
}

function printToken({ id, rights, createdAt, token }: TokenView, style: Style): Promise<void> {
  return style.json
    ? print(JSON.stringify({ id, rights, createdAt, token }))
    : print(`token ${id}  ${rights}  ${createdAt}${token === undefined ? "" : `  ${token}`}`);
}

function noteOnce(style: Style): void {
  if (!style.json) note("this token is not shown again");
}

/** As many bits as the tokens of the server have. */
const TOKEN_BYTES = 32;

function addTokenCommands(program: Command): void {
  const token = program.command("token").description("the tokens of a server's databases");

  token
    .command("generate")
    .description("print a token for 'openkv serve', of 256 random bits")
    .action(async (_: unknown, command: Command) => {
      const made = randomBytes(TOKEN_BYTES).toString("base64url");
      await print(styleOf(command).json ? JSON.stringify({ token: made }) : made);
    });

  const list = token
    .command("list")
    .description("print the tokens of a database, or of the server, by id; not their text");
  withServer(list.argument("[name]", "the database (default: the server)")).action(
    async (name: string | undefined, _: unknown, command: Command) => {
      const tokens =
        name === undefined
          ? await ask<TokenView[]>(command, "GET", ["tokens"])
          : (await ask<DatabaseView>(command, "GET", ["databases", name])).tokens;
      for (const one of tokens) await printToken(one, styleOf(command));
    },
  );

  const create = token
    .command("create")
    .description(
      "create a token of a database, or one of the server for the metrics of all, and print it",
    );
  const rights = new Option("--rights <rights>", "the rights of the token").choices([
    "metrics",
    "read",
    "write",
    "admin",
  ]);
  withServer(
    create
      .argument("[name]", "the database; without one, --rights metrics")
      .addOption(rights.makeOptionMandatory()),
  ).action(async (name: string | undefined, options: { rights: string }, command: Command) => {
    if (name === undefined && options.rights !== "metrics") {
      throw new WrongUsage(
        `a token with the rights ${options.rights} is one of a database: give its name`,
      );
    }
    const body = { rights: options.rights };
    await printToken(await ask<TokenView>(command, "POST", tokensOf(name), body), styleOf(command));
    noteOnce(styleOf(command));
  });

  const revoke = token
    .command("revoke")
    .description("revoke a token, and the access tokens issued for it");
  withServer(
    revoke
      .argument("<name>", "the database; or the id of a token of the server, alone")
      .argument("[id]", "the token's id"),
  ).action(async (name: string, id: string | undefined, _: unknown, command: Command) => {
    const path = id === undefined ? [...tokensOf(undefined), name] : [...tokensOf(name), id];
    await ask(command, "DELETE", path);
  });
}

/** The path of the tokens of a database, or of the server. */
function tokensOf(name: string | undefined): string[] {
  return name === undefined ? ["tokens"] : ["databases", name, "tokens"];
}
