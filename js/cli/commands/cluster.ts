// Duty: cluster: what an administrator of PostgreSQL does for openkv.

import type { Command } from "commander";
import { isElsewhere } from "../../arguments/location.js";
import { loadBinding } from "../../native/load.js";
import { NativeAnswer } from "../../native/native-answer.js";
import { port } from "../../native/port.js";
import { type GlobalOptions, styleOf } from "../database.js";
import { WrongUsage, asUsage } from "../outcome.js";
import { print, put } from "../output.js";

const RIGHTS = `
-- For each user:
-- GRANT USAGE ON SCHEMA openkv TO …;
-- GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA openkv TO …;
`;

export function addClusterCommands(program: Command): void {
  const cluster = program.command("cluster").description("the place of the databases of servers");

  cluster
    .command("schema")
    .description("print the SQL that creates the tables on PostgreSQL, for users who may not")
    .action(async () => await put(loadBinding().postgresSchema() + RIGHTS));

  cluster
    .command("status")
    .description(
      "print all databases of servers, and who leads them; on PostgreSQL their last commits",
    )
    .option("--engine <url>", "the URL of their engine (default: --db; env: OPENKV_ENGINE)")
    .action(async ({ engine }: { engine?: string }, command: Command) => {
      const { db } = command.optsWithGlobals<GlobalOptions>();
      const url = engine ?? db ?? process.env.OPENKV_ENGINE;
      if (url === undefined || !isElsewhere(url)) {
        throw new WrongUsage(
          "give --engine, the URL of the servers' engine: postgres://user@host/database or s3://bucket/path",
        );
      }
      const databases = await asUsage(() => status(url));
      const style = styleOf(command);
      for (const database of databases) {
        await print(style.json ? JSON.stringify(database) : lineOf(database));
      }
    });
}

/** A database in the answer of `clusterStatus` (js/native/contract.md). */
interface DatabaseStatus {
  servedAs: string | null;
  kv: string;
  version: number | null;
  epoch: number | null;
  leader: string | null;
  leaseMs: number | null;
}

async function status(url: string): Promise<DatabaseStatus[]> {
  const thread = port();
  const answer = new NativeAnswer(thread);
  thread.native.clusterStatus(thread.attachment, answer.id, url);
  await answer.answered;
  return JSON.parse(answer.answer().toString());
}

function lineOf({ servedAs, kv, version, epoch, leader, leaseMs }: DatabaseStatus): string {
  const name = servedAs === null ? `kv=${kv}` : `${servedAs}  kv=${kv}`;
  if (epoch === null) {
    // Only the leader knows how long its lease lasts.
    const led = leader === null ? "led by nobody" : `led by ${leader}, unless it has died`;
    return `${name}  ${led}`;
  }
  const lease = (leaseMs ?? 0) > 0 ? `for ${leaseMs} ms more` : "whose lease has ended";
  const led = leader === null ? "led by nobody" : `led by ${leader} ${lease}`;
  return `${name}  commit ${version}  epoch ${epoch}  ${led}`;
}
