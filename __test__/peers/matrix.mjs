// Duty: our client, in Node.js, Bun and Deno, beside Deno's own, against our server or Deno's: every
// client writes every value, and every client reads what each has written. There is no difference,
// so any difference fails the run.
//
//   node __test__/peers/matrix.mjs   our server, as in CI
//   npm run test:denokv              Deno's, which is installed when it is missing: minutes

import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { serve } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { bun, deno } from "../runtime/binaries.mjs";
import { installDenokv, startDenokv } from "./denokv-server.mjs";
import { operations } from "./denokv-operations.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const RUN_MS_MAX = 120_000;
/** Values that a reader compares at least: fewer would mean that the matrix has gone. */
const COMPARED_MIN = 240;

const { server: which } = parseArgs({
  options: { server: { type: "string", default: "openkv" } },
}).values;
const denoFlags = ["run", "-A", "--quiet", "--no-lock", "--unstable-kv"];
const clients = {
  node: [process.execPath, [], "openkv"],
  bun: [bun(), [], "openkv"],
  deno: [deno(), denoFlags, "openkv"],
  "deno's own": [deno(), denoFlags, "deno"],
};

const folder = newFolder("denokv");
const accessToken = "token-of-the-matrix";
const path = join(folder, "kv.sqlite3");
const server =
  which === "denokv"
    ? await startDenokv(installDenokv(), path, accessToken)
    : await serve({ path, listen: "127.0.0.1:0", accessToken });

const found = new Map();
let failed = false;
for (const name of Object.keys(clients)) await run(name, "write", name);
for (const reader of Object.keys(clients)) {
  for (const writer of Object.keys(clients)) {
    const { compared } = await run(reader, "read", writer);
    if (compared < COMPARED_MIN) fail(`${reader} compared only ${compared} values of ${writer}`);
    console.log(`${writer.padEnd(10)} → ${reader.padEnd(10)} ${compared} values compared`);
  }
}
for (const [what, why] of found) fail(`${what}: ${why}`);
for (const why of await operations(server.url, accessToken, which)) fail(why);
await server.close();
console.log(failed ? "failed" : "no difference");
process.exitCode = failed ? 1 : 0;

function fail(why) {
  failed = true;
  console.error(`FAIL ${why}`);
}

/** Runs one client; notes what it found. */
async function run(client, step, writer) {
  const [command, flags, library] = clients[client];
  const args = [...flags, join(here, "matrix-client.mjs"), library, step, writer];
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: RUN_MS_MAX,
    env: {
      ...process.env,
      SERVER_URL: server.url,
      SERVER_TOKEN: accessToken,
      DENO_KV_ACCESS_TOKEN: accessToken,
      DENO_NO_UPDATE_CHECK: "1",
      NO_COLOR: "1",
    },
  });
  let out = "";
  child.stdout.on("data", (chunk) => (out += chunk));
  await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  let end;
  for (const line of out.split("\n").filter(Boolean)) {
    const told = JSON.parse(line);
    if (told.done) end = told;
    else {
      const way = step === "write" ? client : `${writer} → ${client}`;
      found.set(`${step}, ${way}, ${told.key} ${told.name}`, told.why);
    }
  }
  if (!end) throw new Error(`${client} did not come to the end of its ${step}`);
  return end;
}
