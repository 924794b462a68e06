// Duty: serve: a server in the foreground, until a signal ends it.

import { statSync } from "node:fs";
import { type Command, InvalidArgumentError, Option } from "commander";
import { serve } from "../../api/serve.js";
import type { KvServer, ServeOptions } from "../../model/types.js";
import { inFlags } from "../advice.js";
import {
  UNITS,
  count,
  duration,
  durationOf,
  type QuotaOptions,
  quotasOf,
  withQuotas,
} from "../arguments.js";
import { type GlobalOptions, styleOf } from "../database.js";
import { NotDone, WrongUsage, asUsage, untilInterrupted } from "../outcome.js";
import { note, print } from "../output.js";
import { noteIfUnbuilt } from "./studio.js";

export function addServeCommand(program: Command): void {
  const command = program
    .command("serve")
    .description("serve a file, or a folder of databases, over KV Connect until SIGINT or SIGTERM")
    .option("--path <path>", "a file: one database; a folder (exists or ends with /): many")
    .option(
      "--engine <url>",
      "instead of --path: many databases on PostgreSQL or in an object store (env: OPENKV_ENGINE)",
    )
    .option(
      "--cache <folder>",
      "with --engine in an object store: where copies of its databases stay for the next start",
    )
    .option(
      "--replica-of <url>",
      "answer reads from replicas: of this database in a file, of a server's databases in a folder",
    )
    .option(
      "--replica-token <token>",
      "with --replica-of: the token for that database or, with a folder, the server's admin token " +
        "(env: OPENKV_REPLICA_TOKEN)",
    )
    .option(
      "--advertise <url>",
      "with --engine or --replica-of: the URL by which clients reach this server",
    )
    .option("--region <name>", "with --replica-of and --advertise: where this server is")
    .option("--forward", "with --engine, behind one address: hand writes over to their leader")
    .option("--listen <host:port>", "port 0 is any that is free (default: 127.0.0.1:4512)", address)
    .option("--public-url <url>", "by which clients reach the HTTP API, if not by --listen")
    .option("--cors-origin <origin>", "the origin whose pages may use the HTTP API")
    .option("--no-studio", "answer browsers with no pages")
    .option("--access-token <token>", "of a file: may read and write (env: OPENKV_ACCESS_TOKEN)")
    .option("--read-token <token>", "of a file: may only read (env: OPENKV_READ_TOKEN)")
    .option(
      "--admin-token <token>",
      "of a folder or engine: opens the admin API (env: OPENKV_ADMIN_TOKEN)",
    )
    .option("--tls-cert <path>", "certificate with its chain, in PEM; without: clear text")
    .option("--tls-key <path>", "the key of the certificate, in PEM")
    .option(
      "--archive <target>",
      "archive the file, or each database of the folder below it, to a folder or object store",
    )
    .option(
      "--archive-snapshot-every <duration>",
      "with --archive: time between two snapshots (default: 24h)",
    )
    .option(
      "--archive-retention <duration>",
      "with --archive: how long the archive reaches back (default: 30d)",
    )
    .option("--readonly", "of a file: refuse all writes")
    .option(
      "--data-token-ms <duration>",
      `lifetime of an issued token: ${UNITS} (default: 15m)`,
      duration,
    )
    .option("--connections-max <count>", "connections at one time (default: 4096)", count)
    .option(
      "--max-open <count>",
      "databases in files that are kept open at one time (default: by the limit of descriptors)",
      count,
    )
    .option(
      "--keyval-strings",
      "for clients of KeyVal: whole numbers in paths and queries are texts",
    )
    .option(
      "--keyval-lock-duration <duration>",
      `for clients of KeyVal: how long a message is locked: ${UNITS} (default: 30s)`,
      duration,
    )
    .addOption(
      new Option("--log <form>", "the form of the log on standard error")
        .choices(["none", "text", "json"])
        .default("text"),
    );
  withQuotas(command).action(async (options: ServeFlags, from: Command) => {
    const { tlsCert, tlsKey } = options;
    if ((tlsCert === undefined) !== (tlsKey === undefined)) {
      from.error("error: --tls-cert and --tls-key go together");
    }
    const { token } = from.optsWithGlobals<GlobalOptions>();
    const { archive, path } = options;
    if (archive !== undefined && path === undefined) {
      throw new WrongUsage(
        "--archive is for --path: archive each database on PostgreSQL with 'openkv archive run'",
      );
    }
    const { archiveSnapshotEvery, archiveRetention } = options;
    if (archive === undefined && (archiveSnapshotEvery ?? archiveRetention) !== undefined) {
      const name =
        archiveSnapshotEvery === undefined ? "--archive-retention" : "--archive-snapshot-every";
      throw new WrongUsage(`${name} is for an archive: give --archive too`);
    }
    await run(optionsOf(options, token), styleOf(from).json);
  });
}

/** The largest port. */
const PORT_MAX = 65_535;

/** A host and a port. One that is wrong is reported before anything that it implies, such as a token. */
export function address(text: string): string {
  const port = /^(?:\[[^\]]+\]|[^:[\]]+):(\d{1,5})$/.exec(text)?.[1];
  if (port !== undefined && Number(port) <= PORT_MAX) return text;
  throw new InvalidArgumentError(
    `Give HOST:PORT, with a port from 0 to ${PORT_MAX}, as 127.0.0.1:4512 or [::1]:4512.`,
  );
}

interface ServeFlags extends QuotaOptions {
  path?: string;
  engine?: string;
  cache?: string;
  replicaOf?: string;
  replicaToken?: string;
  advertise?: string;
  region?: string;
  forward?: boolean;
  listen?: string;
  publicUrl?: string;
  corsOrigin?: string;
  studio: boolean;
  accessToken?: string;
  readToken?: string;
  adminToken?: string;
  tlsCert?: string;
  tlsKey?: string;
  archive?: string;
  archiveSnapshotEvery?: string;
  archiveRetention?: string;
  readonly?: boolean;
  dataTokenMs?: number;
  connectionsMax?: number;
  maxOpen?: number;
  keyvalStrings?: boolean;
  keyvalLockDuration?: number;
  log: "none" | "text" | "json";
}

/** Environment variables are for all commands; one that has no meaning for this server is ignored. */
function optionsOf(flags: ServeFlags, token: string | undefined): ServeOptions {
  const { path, listen, readonly, dataTokenMs, connectionsMax, log, tlsCert: cert, tlsKey } = flags;
  const { OPENKV_ACCESS_TOKEN, OPENKV_READ_TOKEN, OPENKV_ADMIN_TOKEN, OPENKV_ENGINE } = process.env;
  const engine = flags.engine ?? (path === undefined ? OPENKV_ENGINE : undefined);
  if (path === undefined && engine === undefined) {
    throw new WrongUsage(
      "give --path, a file or a folder, or --engine, the URL of PostgreSQL or of an object store",
    );
  }
  const { replicaOf } = flags;
  const replicaToken =
    flags.replicaToken ??
    (replicaOf === undefined ? undefined : (token ?? process.env.OPENKV_REPLICA_TOKEN));
  // A read server has no tokens of its own.
  const hasNone = replicaOf !== undefined;
  const hasMany = engine !== undefined || isFolder(path!);
  const quotas = quotasOf(flags);
  const given = {
    path,
    engine,
    cache: flags.cache,
    replicaOf,
    replicaToken,
    advertise: flags.advertise,
    region: flags.region,
    forward: flags.forward,
    listen,
    publicUrl: flags.publicUrl,
    corsOrigin: flags.corsOrigin,
    studio: flags.studio ? undefined : false,
    accessToken:
      flags.accessToken ?? (hasMany || hasNone ? undefined : (token ?? OPENKV_ACCESS_TOKEN)),
    readToken: flags.readToken ?? (hasMany || hasNone ? undefined : OPENKV_READ_TOKEN),
    adminToken:
      flags.adminToken ?? (hasMany && !hasNone ? (token ?? OPENKV_ADMIN_TOKEN) : undefined),
    tls: cert === undefined ? undefined : { cert, key: tlsKey },
    readonly,
    quotas: Object.keys(quotas).length === 0 ? undefined : quotas,
    dataTokenMs,
    connectionsMax,
    maxOpen: flags.maxOpen,
    archive: archiveOf(flags),
    keyvalStrings: flags.keyvalStrings,
    keyvalLockDuration: flags.keyvalLockDuration,
    log,
  };
  const present = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as unknown as ServeOptions;
}

function archiveOf(flags: ServeFlags): ServeOptions["archive"] {
  const { archive: to, archiveSnapshotEvery, archiveRetention } = flags;
  if (to === undefined) return undefined;
  return {
    to,
    ...(archiveSnapshotEvery !== undefined && {
      snapshotEvery: durationOf("--archive-snapshot-every", archiveSnapshotEvery),
    }),
    ...(archiveRetention !== undefined && {
      retention: durationOf("--archive-retention", archiveRetention),
    }),
  };
}

function isFolder(path: string): boolean {
  return /[/\\]$/.test(path) || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Starts the server. An error names the options of the command. */
async function started(options: ServeOptions): Promise<KvServer> {
  try {
    return await asUsage(() => serve(options));
  } catch (error) {
    const message = inFlags((error as Error).message);
    throw error instanceof WrongUsage ? new WrongUsage(message) : new NotDone(message);
  }
}

async function run(options: ServeOptions, json: boolean): Promise<void> {
  // Before the start, so that a signal during the start ends the server too.
  const { signal, release } = untilInterrupted();
  const server = await started(options);
  if (options.studio !== false && !json) noteIfUnbuilt();
  const { url, port } = server;
  await print(json ? JSON.stringify({ url, port }) : `listening on ${url}`);
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });
  // A second signal does not wait for slow clients.
  release();
  if (!json) note("ending; once more to end at once");
  await server.close();
}
