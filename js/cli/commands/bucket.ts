// Duty: bucket: the state of a database in an object store, and whether its objects are whole. Opens no database, and
// writes nothing.

import type { Command } from "commander";
import { runArchiveJob } from "../../maintenance/archive.js";
import { styleOf } from "../database.js";
import { NotDone } from "../outcome.js";
import { note, print, printFacts } from "../output.js";

interface Status {
  database: string;
  leader: string | null;
  released: boolean;
  beat: number;
  snapshot: string | null;
  snapshotBytes: number;
  snapshots: number;
  logObjects: number;
  logBytes: number;
  mergedObjects: number;
  mergedBytes: number;
  openingObjects: number;
  openingBytes: number;
}

interface Verified {
  snapshots: number;
  logObjects: number;
  voidObjects: number;
  mergedObjects: number;
  versionstamp: string;
  findings: string[];
}

const URL = "s3://bucket/path, gs://bucket/path, az://container/path or bucket+file:///folder";

export function addBucketCommands(program: Command): void {
  const bucket = program
    .command("bucket")
    .description("a database in an object store, looked at without opening it");

  bucket
    .command("status")
    .description(
      "print the leader, the newest snapshot, the log with its merged copies, and what an opening reads",
    )
    .argument("<url>", URL)
    .action(async (url: string, _: unknown, command: Command) => {
      const status = await runArchiveJob<Status>({ kind: "bucketStatus", url });
      await printFacts({ ...status }, styleOf(command));
    });

  bucket
    .command("verify")
    .description(
      "read all snapshots, the log and its merged copies, and check every hash; exit code 1 if there are findings",
    )
    .argument("<url>", URL)
    .action(async (url: string, _: unknown, command: Command) => {
      const verified = await runArchiveJob<Verified>({ kind: "bucketVerify", url });
      const { findings, ...facts } = verified;
      const style = styleOf(command);
      await printFacts(style.json ? { ok: findings.length === 0, ...verified } : facts, style);
      if (!style.json) for (const finding of findings) await print(finding);
      if (findings.length > 0) throw new NotDone(`${findings.length} findings`);
      if (!style.json) note("no findings");
    });
}
