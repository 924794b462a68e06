// Duty: runs the test suite that BullMQ's backends share, from a clone of its repository, on the backend of
// openkv/bullmq, and prints how many tests passed, were skipped and failed.
//
//   git clone https://github.com/taskforcesh/bullmq FOLDER && cd FOLDER && npm install
//   npm run generate:raw:scripts && npm run transform:commands
//   node __test__/integrations/bullmq-suite.mjs FOLDER                    on a file
//   node __test__/integrations/bullmq-suite.mjs FOLDER --place url        on a server of openkv; or memory, postgres
//   node __test__/integrations/bullmq-suite.mjs FOLDER worker.test flow   files with such names
//
// Left out are the files about Redis and its clients, those about PostgreSQL, and those that load no backend.
// In FOLDER the script writes node_modules/openkv, openkv.setup.ts and openkv.config.ts.

import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { packedFiles } from "../../scripts/pack.mjs";
import { startPostgres } from "../kit/postgres.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const accessToken = "the-token-of-the-suite";
/** What a test is told that asks for the client of Redis behind a queue: it says nothing about other backends. */
const ABOUT_REDIS = "this test asks for a client of Redis";
/** A hang guard for the whole run. */
const RUN_MS_MAX = 3_600_000;

/**
 * Files about Redis, its clients or PostgreSQL; that of sandboxes opens connections to Redis in its hooks, and
 * child_stdio_null replaces a module that a setup file has loaded.
 */
const OTHER_STORES =
  /\.redis\.test|adapter|child_stdio|bun-redis|cluster|connection\.test|connection-closed|ioredis|node-redis|postgres|sandboxed|script_loader|scripts\.test|valkey/;

const { values, positionals } = parseArgs({
  options: { place: { type: "string", default: "file" }, names: { type: "string" } },
  allowPositionals: true,
});
const [given, ...wanted] = positionals;
if (given === undefined || !existsSync(join(given, "vitest.postgres.setup.ts"))) {
  console.error("Give the folder of a clone of github.com/taskforcesh/bullmq at version 6.");
  process.exit(1);
}
if (!["file", "memory", "url", "postgres"].includes(values.place)) {
  console.error(`--place is file, memory, url or postgres: received ${values.place}`);
  process.exit(1);
}
const folder = resolve(given);
const target = join(folder, "node_modules", "openkv");
install();
const scratch = mkdtempSync(join(tmpdir(), "openkv-bullmq-suite-"));
const { serve } = await import(join(target, "index.mjs"));
const server =
  values.place === "url"
    ? await serve({ path: join(scratch, "served.sqlite3"), listen: "127.0.0.1:0", accessToken })
    : null;
const postgres = values.place === "postgres" ? await startPostgres() : null;
writeFileSync(join(folder, "openkv.setup.ts"), setup());
writeFileSync(join(folder, "openkv.config.ts"), config());
const files = readdirSync(join(folder, "tests"))
  .filter((name) => name.endsWith(".test.ts") && !OTHER_STORES.test(name))
  .filter((name) => wanted.length === 0 || wanted.some((word) => name.startsWith(word)))
  .map((name) => `tests/${name}`);
const results = join(scratch, "results.json");
await run(files);
const { testResults } = JSON.parse(readFileSync(results, "utf8"));
await server?.close();
await postgres?.close();
rmSync(scratch, { recursive: true, force: true });
const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
const isAbout = ({ failureMessages }) => failureMessages.some((text) => text.includes(ABOUT_REDIS));
const redis = tests.filter((test) => test.status === "failed" && isAbout(test));
const failed = tests.filter((test) => test.status === "failed" && !isAbout(test));
for (const { fullName } of redis) console.log(`about Redis: ${fullName}`);
for (const { fullName, failureMessages } of failed) {
  console.log(`failed: ${fullName}\n  ${failureMessages[0]?.split("\n")[0]}`);
}
const skipped = tests.filter(({ status }) => status === "pending" || status === "skipped");
for (const { fullName } of skipped) console.log(`skipped: ${fullName}`);
const broken = testResults.filter(
  ({ status, assertionResults }) => status === "failed" && assertionResults.length === 0,
);
for (const { name, message } of broken) console.log(`not loaded: ${name}: ${message}`);
const passed = tests.filter(({ status }) => status === "passed").length;
console.log(
  `${values.place}: ${passed} passed, ${skipped.length} skipped, ${redis.length} about Redis, ${failed.length} failed of ${tests.length} in ${files.length} files`,
);
process.exit(failed.length === 0 && broken.length === 0 ? 0 : 1);

/** openkv as it would be published, with the addon of this machine. */
function install() {
  rmSync(target, { recursive: true, force: true });
  const addons = readdirSync(join(root, "dist/native")).filter((name) => name.endsWith(".node"));
  for (const path of [...packedFiles(), ...addons.map((name) => `dist/native/${name}`)]) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    cpSync(join(root, path), join(target, path));
  }
}

/** Connections do nothing, and each file of tests has a database of its own. */
function setup() {
  const database = {
    file: `${JSON.stringify(scratch)} + "/" + process.pid + "-" + Date.now() + ".sqlite3"`,
    memory: '":memory:"',
    url: JSON.stringify(server?.url.toString() ?? ""),
    postgres: JSON.stringify(postgres?.url().toString() ?? ""),
  }[values.place];
  const open = { file: { durability: "normal" }, memory: {}, url: { accessToken }, postgres: {} }[
    values.place
  ];
  return `
import { openKv } from "openkv";
import { openKvBackend, OpenKvQueueBackend } from "openkv/bullmq";
import { setConnectionFactory } from "./tests/utils/connection-factory";
import { setDefaultBackendFactory } from "./src/utils/create-backend";
const none: any = { isCluster: false, status: "ready", options: {}, quit: async () => "OK" };
for (const name of ["connect", "disconnect"]) none[name] = async () => undefined;
for (const name of ["duplicate", "on", "once", "off", "removeListener"]) none[name] = () => none;
none.emit = () => false;
setConnectionFactory(() => none);
// Tests that start other processes with clients of Redis skip themselves by this.
process.env.BULLMQ_TEST_BACKEND = "postgres";
const refused = () => {
  throw new Error(${JSON.stringify(ABOUT_REDIS)});
};
for (const name of ["lpush", "rpush", "hset", "set", "del", "zadd", "xread"]) none[name] = refused;
for (const name of ["client", "blockingClient", "connection", "redisVersion"]) {
  Object.defineProperty(OpenKvQueueBackend.prototype, name, { get: refused, configurable: true });
}
const kv = await openKv(${database}, { limits: "wide", ...${JSON.stringify(open)} });
const backend: any = openKvBackend(kv);
setDefaultBackendFactory((name: string, { connection, ...opts }: any, options: any) =>
  backend(name, { ...opts, connection: {} }, options),
);
`;
}

/** The backend and the suite have to load one copy of BullMQ: its sources. */
function config() {
  return `
import { defineConfig } from "vitest/config";
export default defineConfig({
  resolve: { alias: [{ find: /^bullmq$/, replacement: ${JSON.stringify(join(folder, "src/index.ts"))} }] },
  test: {
    include: ["tests/**/*.test.ts"],
    setupFiles: ["./openkv.setup.ts"],
    testTimeout: 10000,
    hookTimeout: 10000,
    sequence: { concurrent: false },
    server: { deps: { inline: [/openkv\\/dist\\/drivers/] } },
  },
});
`;
}

/** Runs vitest in a process of its own, while this one serves. */
async function run(names) {
  const args = [
    ...["node_modules/vitest/vitest.mjs", "run", "--config", "openkv.config.ts", "--maxWorkers=2"],
    ...["--reporter=dot", "--reporter=json", `--outputFile.json=${results}`],
    ...(values.names === undefined ? [] : ["-t", values.names]),
    ...names,
  ];
  const running = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
    timeout: RUN_MS_MAX,
    env: { ...process.env, NO_COLOR: "1", CI: "1" },
  });
  await once(running, "close");
}
