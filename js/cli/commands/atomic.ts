// Duty: atomic: checks, mutations and messages in one commit.

import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { KvUniqueError } from "../../model/errors.js";
import type { KvViolation } from "../../model/types.js";
import { notUnique } from "../../session/violations.js";
import { applySteps, parseSteps, type Step, textsOf } from "../atomic-description.js";
import { readsInput, withDatabase } from "../database.js";
import { NotDone, asOutcome } from "../outcome.js";
import { note, print, shownKey } from "../output.js";
import { plainValue } from "../plain-json.js";
import { textOf } from "../raw.js";
import { STANDARD } from "./export.js";

export function addAtomicCommand(program: Command): void {
  program
    .command("atomic")
    .description(
      "checks, changes and messages in one commit; exit code 1 when a check fails, and nothing is written",
    )
    .argument(
      "[step...]",
      "each an object, or an array of them; - or none is the standard input, one in a line",
    )
    .action(async (given: string[], _: unknown, command: Command) => {
      const isInput = given.length === 0 || (given.length === 1 && given[0] === STANDARD);
      if (isInput) readsInput(command);
      const steps = parseSteps(isInput ? textsOf(textOf(readFileSync(0))) : given);
      await withDatabase(command, "any", async (kv, style) => {
        const operation = kv.atomic();
        applySteps(operation, steps);
        const tellRefusal = async (failed: number[], violations?: KvViolation[]): Promise<void> => {
          if (style.json) await print(await plainValue({ ok: false, failed, violations }));
        };
        const result = await asOutcome(() => operation.commit()).catch(async (error: unknown) => {
          // Without checks, a commit that breaks a unique index rejects.
          if (error instanceof KvUniqueError) await tellRefusal([], error.violations);
          throw error;
        });
        if (!result.ok) {
          const { failed, violations } = result;
          await tellRefusal(failed, violations);
          if (violations !== undefined) throw notUnique(violations);
          throw new NotDone(refusal(steps, failed));
        }
        if (style.json)
          await print(JSON.stringify({ ok: true, versionstamp: result.versionstamp }));
        else note(`committed as ${result.versionstamp}`);
      });
    });
}

function refusal(steps: readonly Step[], failed: readonly number[]): string {
  const checks = steps.filter(({ method }) => method === "check");
  const keys = failed.map((at) => shownKey(checks[at]!.of as unknown[]));
  return `a check failed, and nothing was written${keys.length > 0 ? `: ${keys.join(", ")}` : ""}`;
}
