// A pooler of transactions between openkv and PostgreSQL is refused: `npm run test:pooler`. A script,
// because PgBouncer is not a part of PostgreSQL and not on every platform (Debian: `pgbouncer`).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { openKv } from "../../index.mjs";
import { freePort } from "../kit/port.mjs";
import { startPostgres } from "../kit/postgres.mjs";
import { until } from "../kit/time.mjs";

/** PgBouncer refuses to run as root. */
const USER = "postgres";

const server = await startPostgres();
try {
  await withPooler("transaction", async (url) => {
    await assert.rejects(openKv(url), { code: "UNSUPPORTED", message: /pooler of transactions/ });
  });
  await withPooler("session", async (url) => {
    const kv = await openKv(url);
    await kv.set(["a"], 1);
    assert.equal((await kv.get(["a"])).value, 1);
    await kv.close();
  });
  console.log("pool_mode = transaction is refused, pool_mode = session works");
} finally {
  server.close();
}

async function withPooler(mode, work) {
  const folder = mkdtempSync(join(tmpdir(), "openkv-pooler-"));
  chmodSync(folder, 0o755);
  const port = await freePort();
  writeFileSync(join(folder, "users"), `"${USER}" ""\n`);
  writeFileSync(
    join(folder, "settings"),
    `[databases]
${USER} = host=127.0.0.1 port=${server.port} user=${USER}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
auth_file = ${join(folder, "users")}
pool_mode = ${mode}
`,
  );
  const options = process.getuid?.() === 0 ? ["-u", USER] : [];
  const pooler = spawn("pgbouncer", ["-q", ...options, join(folder, "settings")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const failed = new Promise((_, reject) => pooler.once("error", reject));
  const worked = async () => {
    await until(() => answers(port), "PgBouncer listens");
    await work(`postgres://${USER}@127.0.0.1:${port}/${USER}?kv=pooled`);
  };
  try {
    await Promise.race([failed, worked()]);
  } finally {
    pooler.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}
