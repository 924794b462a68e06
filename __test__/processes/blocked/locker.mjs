// Holds the write lock of a file from its start until it is told something. Run by Bun, whose own
// SQLite opens the file: openkv holds the lock no longer than a transaction takes.

import { Database } from "bun:sqlite";
import { args, listen, tell } from "../child.mjs";

const database = new Database(args.path);
database.exec("PRAGMA busy_timeout = 30000");
database.exec("BEGIN IMMEDIATE");
const alive = setInterval(() => {}, 1 << 30);
listen(() => {
  database.exec("COMMIT");
  clearInterval(alive);
  tell("freed");
});
tell("held");
