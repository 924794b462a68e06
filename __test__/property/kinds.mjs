// Duty: the kinds of database of the property tests of value indexes: how each is opened, and its part of the rounds,
// which take longer over a network.

import { join } from "node:path";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { startServer } from "../kit/server.mjs";

/** `[part of the rounds, opens a database]` by the name of the kind; files are in `folder`. */
export const kindsIn = (folder) => ({
  memory: [1, () => openKv(":memory:")],
  file: [1, () => openKv(join(folder, "kv.sqlite3"))],
  "a URL": [
    0.5,
    async () => {
      const accessToken = "the-token-of-these-tests";
      const server = await startServer({ path: join(folder, "served.sqlite3"), accessToken });
      return openKv(server.url, { accessToken });
    },
  ],
  PostgreSQL: [0.5, async () => openKv((await sharedPostgres()).url())],
  "PostgreSQL, led": [
    0.5,
    async () => openKv((await sharedPostgres()).url({ more: "&lead=test" })),
  ],
});
