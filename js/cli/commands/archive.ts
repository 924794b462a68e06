// Duty: archive: archives a database, and lists, verifies and prunes an archive. Restores one, for the
// command restore.

import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { bytesOf } from "../../codec/key-bytes.js";
import { type ArchiveJob, runArchiveJob, targetOf } from "../../maintenance/archive.js";
import type { KvArchive, KvKey } from "../../model/types.js";
import { durationOf } from "../arguments.js";
import type { Moment } from "../at.js";
import { styleOf, withDatabaseAt } from "../database.js";
import { NotDone, asOutcome, asUsage, notDoneBy, untilInterrupted } from "../outcome.js";
import { note, print, printFacts } from "../output.js";
import { Progress } from "../progress.js";

/** How often `archive run` looks at the state of its archiver. */
const LOOK_MS = 500;

interface Listing {
  database: string;
  owner: string | null;
  archived: [versionstamp: string, completeMs: number] | null;
  timelines: {
    number: number;
    begunMs: number;
    snapshots: {
      versionstamp: string;
      atMs: number;
      takenMs: number;
      entries: number;
      bytes: number;
    }[];
    damaged: string[];
    objects: number;
    bytes: number;
    last: string | null;
  }[];
}

interface Verified {
  snapshots: number;
  compared: number;
  segments: number;
  versionstamp: string;
  findings: string[];
}

interface Restored {
  versionstamp: string;
  atMs: number;
  entries: number;
  bytes: number;
  content: string;
  snapshot: string;
  segments: number;
  compared: boolean;
}

const TARGET = "a folder, or s3://bucket/path, gs://bucket/path, az://container/path";

export function addArchiveCommands(program: Command): void {
  const archive = program
    .command("archive")
    .description("archives of a database, which 'restore' restores to any moment");

  archive
    .command("run")
    .description("archive a database, also one in use, until SIGINT or SIGTERM")
    .argument("<file>", "the database, or the URL of one on PostgreSQL")
    .argument("<target>", TARGET)
    .option(
      "--snapshot-every <duration>",
      "time between two snapshots, with a unit: 12h, 1h30m (default: 24h)",
    )
    .option(
      "--retention <duration>",
      "how long the archive reaches back, with a unit (default: 30d)",
    )
    .action(async (file: string, target: string, options: RunOptions, command: Command) => {
      const { snapshotEvery, retention } = options;
      if (snapshotEvery !== undefined) durationOf("--snapshot-every", snapshotEvery);
      if (retention !== undefined) durationOf("--retention", retention);
      await asUsage(() => targetOf(target));
      await withDatabaseAt(file, command, "existing", async (kv, style) => {
        const { signal, release } = untilInterrupted();
        try {
          const given = {
            to: target,
            ...(snapshotEvery !== undefined && { snapshotEvery }),
            ...(retention !== undefined && { retention }),
          };
          const running = await asOutcome(() => kv.archive(given));
          note(`archiving to ${target}`);
          await follow(running, signal);
          await running.stop();
          const { state: _, reports, ...facts } = running.status();
          for (const report of reports) note(report);
          await printFacts(facts, style);
          if (facts.error !== null) throw new NotDone(facts.error);
        } finally {
          release();
        }
      });
    });

  archive
    .command("list")
    .description("print the snapshots and the extent of an archive")
    .argument("<target>", TARGET)
    .action(async (target: string, _: unknown, command: Command) => {
      const listing = await asOutcome(() =>
        runArchiveJob<Listing>({ kind: "list", target: targetOf(target) }),
      );
      if (styleOf(command).json) return await print(JSON.stringify(inJson(listing)));
      for (const line of linesOf(listing)) await print(line);
    });

  archive
    .command("verify")
    .description("repeat the archived changes in memory and compare with the snapshots")
    .argument("<target>", TARGET)
    .action(async (target: string, _: unknown, command: Command) => {
      const scratch = join(tmpdir(), "openkv-verify");
      const job = { kind: "verify", target: targetOf(target), scratch } as const;
      const { findings, ...facts } = await withProgress<Verified>("verified", job);
      const style = styleOf(command);
      await printFacts(style.json ? { ...facts, findings } : facts, style);
      if (!style.json) for (const finding of findings) await print(finding);
      if (findings.length > 0) throw new NotDone(`${findings.length} findings`);
    });

  archive
    .command("prune")
    .description("remove what no restore to a time within the retention needs")
    .argument("<target>", TARGET)
    .requiredOption("--retention <duration>", "how long the archive reaches back, with a unit: 30d")
    .action(async (target: string, options: { retention: string }, command: Command) => {
      const beforeMs = Date.now() - durationOf("--retention", options.retention);
      const job = { kind: "prune", target: targetOf(target), beforeMs } as const;
      const pruned = await asOutcome(() => runArchiveJob<Record<string, number>>(job));
      await printFacts(pruned, styleOf(command));
    });
}

interface RunOptions {
  snapshotEvery?: string;
  retention?: string;
}

/** Prints what an operator should know, until the signal. Rejects when the archiver ends by itself. */
async function follow(running: KvArchive, signal: AbortSignal): Promise<void> {
  let reported: string | null = null;
  while (!signal.aborted) {
    const { reports, state, error } = running.status();
    for (const report of reports) note(report);
    if (state === "stopped") throw new NotDone(error ?? "the archiver has stopped");
    if (error !== reported) note(error === null ? "archiving again" : `archiving fails: ${error}`);
    reported = error;
    await pause(signal);
  }
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, LOOK_MS);
    signal.addEventListener("abort", end);
  });
}

/** A listing with its times in ISO 8601, as other commands print them. */
function inJson({ archived, timelines, ...listing }: Listing): object {
  const iso = (ms: number): string => new Date(ms).toISOString();
  return {
    ...listing,
    archived: archived && [archived[0], iso(archived[1])],
    timelines: timelines.map(({ begunMs, snapshots, ...timeline }) => ({
      ...timeline,
      begunAt: iso(begunMs),
      snapshots: snapshots.map(({ atMs, takenMs, ...snapshot }) => ({
        ...snapshot,
        at: iso(atMs),
        takenAt: iso(takenMs),
      })),
    })),
  };
}

function linesOf({ database, owner, archived, timelines }: Listing): string[] {
  const lines = [`database ${database}${owner === null ? "" : `  archived by ${owner}`}`];
  for (const { number, snapshots, objects, bytes, last } of timelines) {
    lines.push(
      `history ${number}: ${objects} objects with changes, ${bytes} bytes, to ${last ?? "none"}`,
    );
    for (const { versionstamp, atMs, entries, bytes: size } of snapshots) {
      const at = new Date(atMs).toISOString();
      lines.push(`  snapshot ${versionstamp}  ${at}  ${entries} entries  ${size} bytes`);
    }
  }
  for (const { damaged } of timelines) {
    for (const name of damaged) lines.push(`damaged: ${name}; a restore does without it`);
  }
  if (archived !== null) {
    const [versionstamp, completeMs] = archived;
    lines.push(`complete to ${versionstamp} at ${new Date(completeMs).toISOString()}`);
  }
  return lines;
}

async function withProgress<Result>(what: string, job: ArchiveJob): Promise<Result> {
  const { signal, release } = untilInterrupted();
  let progress: Progress | undefined;
  try {
    return await runArchiveJob<Result>(job, {
      signal,
      onProgress: (done, all) => {
        progress ??= new Progress(what, all, "bytes");
        progress.expect(all);
        progress.update(done, done);
      },
    });
  } catch (error) {
    if (signal.aborted) throw new NotDone("interrupted: nothing was written", true);
    throw notDoneBy(error);
  } finally {
    progress?.end(0);
    release();
  }
}

/** Restores an archive into a new file. */
export async function restoreArchive(
  target: string,
  file: string,
  options: { at?: Moment; prefix?: KvKey },
  command: Command,
): Promise<void> {
  const { at, prefix } = options;
  const job = {
    kind: "restore",
    target: targetOf(target),
    file: resolve(file),
    ...(at !== undefined && { at: typeof at === "string" ? at : at.getTime() }),
    ...(prefix !== undefined && { prefix: Buffer.from(bytesOf(prefix), "latin1").toString("hex") }),
  } as const;
  const { atMs, ...facts } = await withProgress<Restored>("restored", job);
  await printFacts({ file, ...facts, at: new Date(atMs).toISOString() }, styleOf(command));
}
