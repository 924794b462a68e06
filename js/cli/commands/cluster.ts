// Duty: cluster: what an administrator of PostgreSQL does for openkv.

import type { Command } from "commander";
import { loadBinding } from "../../native/load.js";
import { put } from "../output.js";

const RIGHTS = `
-- For each user:
-- GRANT USAGE ON SCHEMA openkv TO …;
-- GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA openkv TO …;
`;

export function addClusterCommands(program: Command): void {
  const cluster = program.command("cluster").description("the PostgreSQL server of databases");

  cluster
    .command("schema")
    .description("print the SQL that creates the tables, for users who may not create them")
    .action(async () => await put(loadBinding().postgresSchema() + RIGHTS));
}
