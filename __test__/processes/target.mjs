// What is under test: openkv, or, with OPENKV_TEST_TARGET=deno under Deno, Deno's own KV as the
// oracle that tells whether a test asks for the right thing. Also how to start another process of
// the runtime we run in.

const runtime = globalThis.Deno ? "deno" : globalThis.Bun ? "bun" : "node";

/** Whether Deno's own KV is under test. */
export const isOracle = runtime === "deno" && process.env.OPENKV_TEST_TARGET === "deno";

const openkv = isOracle ? null : await import("../../index.mjs");

/** Starts a server; the oracle has none. */
export const serve = openkv?.serve;

/** @type {(path?: string, options?: object) => Promise<any>} */
export const openKv = isOracle ? (path) => globalThis.Deno.openKv(path) : openkv.openKv;

/** The class of openkv's own errors; with the oracle, any error. */
export const KvError = isOracle ? Error : openkv.KvError;

/** @type {new (value: bigint) => any} */
export const KvU64 = isOracle ? globalThis.Deno.KvU64 : openkv.KvU64;

/** The arguments before the script's path that run a script in this runtime. */
export const runtimeArguments =
  runtime === "deno"
    ? ["run", "--allow-all", "--quiet", ...(isOracle ? ["--unstable-kv"] : [])]
    : [];
