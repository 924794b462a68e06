// Duty: checks the options of openKv that are stored in the database: the replication log, the history.

import { invalid } from "../model/errors.js";
import type { NativeLog } from "../native/binding.js";
import { checkOptions, shown } from "./check.js";
import { checkDuration } from "./duration.js";

const RETENTION_MS_DEFAULT = 86_400_000;
const BYTES_MAX_DEFAULT = 1024 ** 3;
const BYTES_MAX_MIN = 1024 ** 2;

/** How the replication log is to be kept; undefined: as the database has it. */
export function checkLog(given: unknown): NativeLog | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== "boolean" && (typeof given !== "object" || given === null)) {
    throw invalid(
      `log must be a boolean, or an object with retention, maxBytes and messages: received ${shown(given)}`,
    );
  }
  const options = typeof given === "boolean" ? {} : given;
  const {
    retention = RETENTION_MS_DEFAULT,
    maxBytes = BYTES_MAX_DEFAULT,
    messages = false,
  } = checkOptions("openKv: log", options, ["retention", "maxBytes", "messages"]);
  const retentionMs = checkDuration("log.retention", retention);
  if (!Number.isSafeInteger(maxBytes) || (maxBytes as number) < BYTES_MAX_MIN) {
    throw invalid(
      `log.maxBytes must be an integer from ${BYTES_MAX_MIN} (bytes): received ${shown(maxBytes)}`,
    );
  }
  if (typeof messages !== "boolean") {
    throw invalid(`log.messages must be a boolean: received ${shown(messages)}`);
  }
  return { on: given !== false, messages, retentionMs, bytesMax: maxBytes as number };
}

/** How long replaced values are to be kept, in ms; 0: not at all; undefined: as the database has it. */
export function checkHistory(given: unknown): number | undefined {
  if (given === undefined) return undefined;
  return given === false ? 0 : checkDuration("history", given);
}
