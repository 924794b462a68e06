// Duty: checks a document by a schema: one of the Standard Schema, or a function.

import { KvValidationError, misuse } from "../model/errors.js";
import { shown } from "../arguments/check.js";
import type { KvSchemaIssue } from "../model/types.js";

/** Returns the document as it is stored, or throws. */
export type Validate = (method: string, value: unknown) => unknown;

/** The check that a schema makes. */
export function validatorOf(schema: unknown): Validate {
  if (typeof schema === "object" && schema !== null && "~standard" in schema) {
    return standard(schema["~standard"]);
  }
  // The schemas of arktype are functions, and have both.
  if (typeof schema === "function") {
    const own = (schema as { "~standard"?: unknown })["~standard"];
    if (own !== undefined) return standard(own);
    return (method, value) => refusePromise(method, "schema", schema(value));
  }
  throw misuse(
    "kv.collection: schema must be a schema of zod, valibot, arktype or another library with the " +
      `Standard Schema, or a function that returns the document: received ${shown(schema)}`,
  );
}

function standard(own: unknown): Validate {
  const { version, validate } = (own ?? {}) as { version?: unknown; validate?: unknown };
  if (version !== 1 || typeof validate !== "function") {
    throw misuse(
      `kv.collection: schema must have version 1 of the Standard Schema: received version ${shown(version)}`,
    );
  }
  return (method, value) => {
    const result = refusePromise(method, "schema", validate(value)) as {
      value?: unknown;
      issues?: readonly KvSchemaIssue[] | undefined;
    };
    if (result.issues === undefined) return result.value;
    throw new KvValidationError(`${method}: ${listed(result.issues)}`, result.issues);
  };
}

/** What a function that must answer at once does with what was made before. */
const AT_ONCE = { schema: "check that by the schema", change: "use that in the change" } as const;

/** Refuses the promise of such a function. */
export function refusePromise(
  method: string,
  what: keyof typeof AT_ONCE,
  result: unknown,
): unknown {
  const { then } = (result ?? {}) as { then?: unknown };
  if (typeof then === "function") {
    // Its rejection is not a second error of the program.
    then.call(
      result,
      () => {},
      () => {},
    );
    throw misuse(
      `${method}: the ${what} is asynchronous: make what it has to wait for before, and ${AT_ONCE[what]}`,
    );
  }
  return result;
}

const SHOWN_ISSUES_MAX = 5;

function listed(issues: readonly KvSchemaIssue[]): string {
  const texts = issues.slice(0, SHOWN_ISSUES_MAX).map(({ message, path = [] }) => {
    const steps = path.map((step) => String(typeof step === "object" ? step.key : step));
    return steps.length === 0 ? message : `${steps.join(".")}: ${message}`;
  });
  const more = issues.length - texts.length;
  return texts.join("; ") + (more > 0 ? `; and ${more} more` : "");
}
