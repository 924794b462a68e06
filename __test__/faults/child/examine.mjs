// Opens files that may be damaged, of another program or without permission, uses them in every
// way, and reports the result: one JSON request per line, one JSON answer per line. After a panic,
// an abort or a hang the process ends or does not answer, which the test detects.
// Request: { path?, options?, write? }; answer: { open, ok, wrong, missing, extra, prefix, errors
// }.

import { isDeepStrictEqual } from "node:util";

import { args, listen, tell } from "../../processes/child.mjs";
import { KvError, openKv } from "../../processes/target.mjs";
import { content, write } from "./content.mjs";

// A superuser may write anything: the tests of permissions give that up first.
if (args.uid !== undefined) {
  process.setgroups([]);
  process.setgid(args.uid);
  process.setuid(args.uid);
}
if (args.cwd !== undefined) process.chdir(args.cwd);

const alive = setInterval(() => {}, 1 << 30);
let before = Promise.resolve();
listen(
  (line) => (before = before.then(() => answer(JSON.parse(line)))),
  () => clearInterval(alive),
);

async function answer({ path, options, does }) {
  if (does === "stay open") return await stayOpen(path);
  const answer = { open: null, ok: 0, wrong: 0, missing: 0, extra: 0, prefix: true, errors: [] };
  try {
    const kv = await openKv(path, options);
    try {
      if (does === "create") await write(kv);
      else await use(kv, answer, does === "read");
    } finally {
      await kv.close();
    }
  } catch (error) {
    answer.open = told("open", error);
  }
  tell(JSON.stringify(answer));
}

/** Writes everything and keeps the file open, until killed: what is written stays in the log. */
async function stayOpen(path) {
  await write(await openKv(path));
  tell(JSON.stringify({ written: true }));
}

async function use(kv, answer, readOnly) {
  const attempt = async (does, action) => {
    try {
      return await action();
    } catch (error) {
      answer.errors.push(told(does, error));
    }
  };
  const expected = content();
  const found = await attempt("list", () => all(kv.list({ prefix: ["k"] })));
  await attempt("list in reverse", () =>
    all(kv.list({ prefix: [] }, { reverse: true, batchSize: 7 })),
  );
  if (found) {
    answer.extra = found.filter(({ key }) => !(key[1] < BigInt(expected.length))).length;
    answer.prefix = found.every(({ key }, at) => key[1] === BigInt(at));
  }
  for (const { key, value } of expected) {
    const entry = await attempt("get", () => kv.get(key));
    if (entry === undefined) continue;
    if (entry.versionstamp === null) answer.missing++;
    else if (isDeepStrictEqual(entry.value, value)) answer.ok++;
    else answer.wrong++;
  }
  await attempt("getMany", () => kv.getMany(expected.slice(0, 10).map(({ key }) => key)));
  await attempt("watch", () =>
    firstOf(
      kv.watch([
        ["k", 0n],
        ["k", 1n],
      ]),
    ),
  );
  if (readOnly) return;
  await attempt("set", () => kv.set(["new"], { at: "last" }));
  await attempt("set again", () => kv.set(["new"], "x".repeat(20_000)));
  await attempt("sum", () => kv.atomic().sum(["sum"], 1n).commit());
  await attempt("check", async () =>
    kv
      .atomic()
      .check(await kv.get(["new"]))
      .delete(["new"])
      .commit(),
  );
  await attempt("expire", () => kv.set(["short"], new Uint8Array(3000), { expireIn: 1 }));
  await attempt("enqueue", () => kv.enqueue("m", { delay: 3_600_000 }));
  for (const { key } of expected.slice(20, 40))
    await attempt("overwrite", () => kv.set(key, "over"));
  for (const { key } of expected.slice(30, 50)) await attempt("delete", () => kv.delete(key));
}

async function all(iterator) {
  const entries = [];
  for await (const entry of iterator) entries.push(entry);
  return entries;
}

async function firstOf(stream) {
  const reader = stream.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return value;
}

function told(does, error) {
  return {
    does,
    name: error?.name,
    code: error?.code,
    message: String(error?.message),
    stack: error?.stack,
    typed: isTyped(error),
  };
}

/**
 * Whether an error says what to do: never a bug of ours, a bare Error, or an accident of
 * JavaScript.
 */
function isTyped(error) {
  if (error instanceof KvError) return typeof error.code === "string" && error.code !== "INTERNAL";
  if (error instanceof RangeError) return error.message.startsWith("could not deserialize value");
  return (
    error instanceof TypeError &&
    /^(Filename |The value encoding |file name contained )/.test(error.message)
  );
}
