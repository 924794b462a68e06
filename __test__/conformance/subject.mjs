// Duty: the implementation under test, under one set of names: openkv, or Deno's own KV as oracle.

/** `{ name, openKv, serve, KvU64, Kv, AtomicOperation, KvListIterator }`; Deno has no `serve`. */
export async function loadSubject(oracle) {
  if (!oracle) return { name: "openkv", ...(await import("../../index.mjs")) };
  const deno = globalThis.Deno;
  if (typeof deno?.openKv !== "function") {
    throw new Error("--oracle needs Deno: deno run -A --unstable-kv __test__/conformance/run.mjs");
  }
  const { openKv, KvU64, Kv, AtomicOperation, KvListIterator } = deno;
  return { name: "Deno.openKv", openKv, KvU64, Kv, AtomicOperation, KvListIterator };
}

/** node, bun or deno. */
export const runtime = globalThis.Deno ? "deno" : globalThis.Bun ? "bun" : "node";
