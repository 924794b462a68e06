// Duty: programs of a test, run by the runtime that runs the test: Node.js, Bun or Deno.

/** The arguments of `process.execPath` that run the source of a module. */
export function argumentsFor(source) {
  if (globalThis.Deno) return ["eval", "--quiet", "--no-lock", source];
  return ["--input-type=module", "--eval", source];
}
