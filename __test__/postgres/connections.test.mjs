// Duty: connections that end under load: by an administrator, because their process is stopped, by a restart, and by a
// limit.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startPostgres } from "../kit/postgres.mjs";
import { sleep, until } from "../kit/time.mjs";
import { startLoad } from "./load.mjs";

const ROUNDS = 6;
const COMMITS = 60;
const USER = "app";

const TERMINATE = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`;

const STOPPED = `SELECT count(*) FROM pg_stat_activity
  WHERE usename = '${USER}' AND state = 'idle in transaction'`;

let server;

before(async () => {
  server = await startPostgres({ settings: { fsync: "on" } });
  await server.sql(`CREATE ROLE ${USER} LOGIN; GRANT CREATE ON DATABASE postgres TO ${USER}`);
});
after(() => server.close());

test("every connection is terminated, again and again", async () => {
  const url = server.url({ user: USER });
  const load = await startLoad(url);
  let terminated = 0;
  for (let round = 0; round < ROUNDS; round++) {
    await load.progress(COMMITS);
    terminated += Number(await server.sql(TERMINATE));
  }
  assert.ok(terminated >= ROUNDS, "there were connections to terminate");
  await load.progress(COMMITS);
  await load.stop();
  assert.deepEqual([...load.refused], []);
  await load.check(url);
});

test("a process is stopped inside a transaction for longer than the server waits", {
  skip: process.platform === "win32" && "there is no SIGSTOP",
}, async () => {
  const url = server.url({ user: USER });
  const load = await startLoad(url, { processes: 1 });
  const [worker] = load.workers;
  const hasTransaction = async () => Number(await server.sql(STOPPED)) > 0;
  for (let stopped = 0; stopped < 3; ) {
    await load.progress(5);
    worker.pause();
    // What it has sent is answered.
    await sleep(50);
    if (await hasTransaction()) {
      stopped++;
      await until(async () => !(await hasTransaction()), "the server ends the transaction");
    }
    worker.resume();
  }
  await load.progress(COMMITS);
  await load.stop();
  assert.deepEqual([...load.refused], []);
  await load.check(url);
});

for (const mode of ["fast", "immediate"]) {
  test(`PostgreSQL restarts, by the shutdown "${mode}"`, async () => {
    const url = server.url({ user: USER });
    const load = await startLoad(url);
    for (let round = 0; round < 2; round++) {
      await load.progress(COMMITS);
      await server.restart(mode);
    }
    await load.progress(COMMITS);
    await load.stop();
    await load.check(url);
  });
}

test("no connection is to be had for a while", async () => {
  const url = server.url({ user: USER });
  const load = await startLoad(url);
  await load.progress(COMMITS);
  await server.sql(`ALTER ROLE ${USER} CONNECTION LIMIT 0`);
  await server.sql(TERMINATE);
  await until(() => load.refused.size > 0, "a commit is refused");
  await server.sql(`ALTER ROLE ${USER} CONNECTION LIMIT -1`);
  await load.progress(COMMITS);
  await load.stop();
  await load.check(url);
});
