// Duty: restore(): replaces a database by a backup.

import { resolve } from "node:path";
import { checkOptions, shown } from "../arguments/check.js";
import { refuseElsewhere } from "../arguments/location.js";
import { onAbort } from "../arguments/signal.js";
import { clearInterval, setInterval } from "../model/clock.js";
import { readCopied } from "./backup.js";
import { bugOf, errorOf, invalid, misuse } from "../model/errors.js";
import { NativeAnswer } from "../native/native-answer.js";
import type { NativeRestore } from "../native/binding.js";
import { port } from "../native/port.js";
import type { KvBackup, KvRestoreOptions } from "../model/types.js";
import { isAbortSignal } from "../model/brands.js";

/** Interval of polling the progress. */
const PROGRESS_MS = 100;

export async function restore(
  backup: string,
  path: string,
  given?: KvRestoreOptions,
): Promise<KvBackup> {
  for (const [name, value] of Object.entries({ backup, path })) {
    if (typeof value !== "string" || value === "") {
      throw invalid(`restore: ${name} must be a file path: received ${shown(value)}`);
    }
  }
  refuseElsewhere(path, "restore", "restore to a file, and copy its entries with openkv copy");
  const options = checkOptions("restore", given, ["force", "onProgress", "signal"]);
  const { force, onProgress, signal } = options as KvRestoreOptions;
  if (force !== undefined && typeof force !== "boolean") {
    throw invalid(`restore: force must be a boolean: received ${shown(force)}`);
  }
  if (onProgress !== undefined && typeof onProgress !== "function") {
    throw misuse(`restore: onProgress must be a function: received ${shown(onProgress)}`);
  }
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw misuse(`restore: signal must be an AbortSignal: received ${shown(signal)}`);
  }
  if (signal?.aborted) throw signal.reason;
  const thread = port();
  const answered = new NativeAnswer(thread);
  let native: NativeRestore;
  try {
    const { Restore } = thread.native;
    const paths = [resolve(backup), resolve(path)] as const;
    native = new Restore(thread.attachment, answered.id, ...paths, force === true);
  } catch (error) {
    answered.end(bugOf(error));
    throw errorOf(bugOf(error));
  }
  let failure: { error: unknown } | undefined;
  const tell = async (): Promise<void> => {
    try {
      const [pagesDone = 0, pages = 0] = native.progress();
      if (pages > 0) await onProgress?.({ pagesDone, pages });
    } catch (error) {
      failure ??= { error };
      native.cancel();
    }
  };
  const timer = onProgress && setInterval(() => void tell(), PROGRESS_MS);
  const unfollow = signal && onAbort(signal, () => native.cancel());
  try {
    await answered.answered;
    if (failure !== undefined) throw failure.error;
    return readCopied(answered.answer());
  } catch (error) {
    if (failure === undefined) signal?.throwIfAborted();
    throw error;
  } finally {
    clearInterval(timer);
    unfollow?.();
  }
}
