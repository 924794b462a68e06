// Duty: kv.backup and kv.check, the integrity check.

import { invalid, misuse } from "../model/errors.js";
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { call, writesCalledBefore } from "../session/call.js";
import { checkOptions, shown } from "../arguments/check.js";
import { refuseElsewhere } from "../arguments/location.js";
import { clearInterval, setInterval } from "../model/clock.js";
import { Writer } from "../codec/writer.js";
import { readStamp } from "../native/frame.js";
import { CALL_BACKUP, CALL_BACKUP_PROGRESS, CALL_CHECK, STAMP_BYTES } from "../native/contract.js";
import type { Session } from "../session/session.js";
import { checkSignal, onAbort } from "../arguments/signal.js";
import type { KvBackup, KvBackupOptions } from "../model/types.js";

/** Interval of polling the progress of a backup. */
const PROGRESS_MS = 100;

/** Bytes of the random name of a running backup. */
const NAME_BYTES = 8;

export async function backup(
  session: Session,
  path: string,
  options: KvBackupOptions | undefined,
): Promise<KvBackup> {
  if (typeof path !== "string" || path === "") {
    throw invalid(`kv.backup: path must be a file path: received ${shown(path)}`);
  }
  refuseElsewhere(path, "kv.backup", "back up to a file, and store that there");
  const { onProgress, signal: given } = checkOptions("kv.backup", options, [
    "onProgress",
    "signal",
  ]);
  if (onProgress !== undefined && typeof onProgress !== "function") {
    throw misuse(`kv.backup: onProgress must be a function: received ${shown(onProgress)}`);
  }
  const signal = checkSignal("kv.backup", given);
  signal?.throwIfAborted();
  // Before the listener: the addon ignores the end of a backup that has not begun.
  await writesCalledBefore(session, signal);
  signal?.throwIfAborted();
  // All threads of a process have their backups in one table, so a name must be unique among them.
  const name = randomBytes(NAME_BYTES);
  const frame = new Writer();
  frame.bytes(name);
  frame.bytes(Buffer.from(resolve(path)));
  const follower = new Follower(session, name, onProgress as KvBackupOptions["onProgress"]);
  const unfollow = signal && onAbort(signal, () => follower.end());
  try {
    const answer = await call(session, CALL_BACKUP, frame);
    follower.throwFailure();
    return readCopied(answer);
  } catch (error) {
    signal?.throwIfAborted();
    follower.throwFailure();
    throw error;
  } finally {
    follower.stop();
    unfollow?.();
  }
}

/** The facts of a verified copy (`push_copied` in crates/wire/src/protocol/frame/answer.rs). */
export function readCopied(answer: Buffer): KvBackup {
  return {
    bytes: answer.readDoubleLE(0),
    entries: answer.readDoubleLE(8),
    versionstamp: readStamp(answer, 16),
    sha256: answer.toString("hex", 16 + STAMP_BYTES),
  };
}

/** Polls the progress of a backup and reports it to the caller. */
class Follower {
  readonly #session: Session;
  readonly #name: Uint8Array;
  readonly #onProgress: KvBackupOptions["onProgress"];
  readonly #timer: NodeJS.Timeout | undefined;
  /** The error that `onProgress` threw. */
  #failure: { error: unknown } | undefined;

  constructor(session: Session, name: Uint8Array, onProgress: KvBackupOptions["onProgress"]) {
    this.#session = session;
    this.#name = name;
    this.#onProgress = onProgress;
    if (onProgress !== undefined) this.#timer = setInterval(() => void this.#report(), PROGRESS_MS);
  }

  /** Ends the backup. The call fails only when the session ends, and that ends the backup too. */
  end(): void {
    this.#ask(true).catch(() => {});
  }

  throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #report(): Promise<void> {
    try {
      const [pagesDone, pages] = await this.#ask(false);
      if (pages > 0) await this.#onProgress?.({ pagesDone, pages });
    } catch (error) {
      this.#failure ??= { error };
      this.stop();
      this.end();
    }
  }

  async #ask(end: boolean): Promise<[pagesDone: number, pages: number]> {
    if (this.#session.closed) return [0, 0];
    const frame = new Writer();
    frame.bytes(this.#name);
    frame.u8(end ? 1 : 0);
    const answer = await call(this.#session, CALL_BACKUP_PROGRESS, frame);
    return [answer.readDoubleLE(0), answer.readDoubleLE(8)];
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

export async function integrityCheck(
  session: Session,
  signal?: AbortSignal,
): Promise<{ ok: boolean; findings: string[] }> {
  const findings = (await call(session, CALL_CHECK, undefined, signal)).toString("utf8");
  const lines = findings === "" ? [] : findings.split("\n");
  return { ok: lines.length === 0, findings: lines };
}
