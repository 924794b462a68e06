// Duty: the database as a whole: backup and check.

import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { call, callBehindWrites } from "./call.js";
import { checkOptions, nameOf } from "./check.js";
import { clearInterval, setInterval } from "./clock.js";
import { Writer } from "./codec/writer.js";
import { readStamp } from "./frame.js";
import { CALL_BACKUP, CALL_BACKUP_PROGRESS, CALL_CHECK, STAMP_BYTES } from "./native.js";
import type { Session } from "./session.js";
import { checkSignal } from "./signal.js";
import type { KvBackup, KvBackupOptions } from "./types.js";

/** How often a backup is asked how far it is. */
const PROGRESS_MS = 100;

/** Bytes of the name that a backup is asked for by. */
const NAME_BYTES = 8;

export async function backup(
  session: Session,
  path: string,
  options: KvBackupOptions | undefined,
): Promise<KvBackup> {
  if (typeof path !== "string" || path === "") {
    throw new TypeError(`kv.backup: path must be a file path: received ${nameOf(path)}`);
  }
  const { onProgress, signal: given } = checkOptions("kv.backup", options, ["onProgress", "signal"]);
  if (onProgress !== undefined && typeof onProgress !== "function") {
    throw new TypeError(`kv.backup: onProgress must be a function: received ${nameOf(onProgress)}`);
  }
  const signal = checkSignal("kv.backup", given);
  signal?.throwIfAborted();
  // The threads of a process have their backups in one table, and do not know of each other.
  const name = randomBytes(NAME_BYTES);
  const frame = new Writer();
  frame.bytes(name);
  frame.bytes(Buffer.from(resolve(path)));
  const follower = new Follower(session, name, onProgress as KvBackupOptions["onProgress"]);
  const end = (): void => follower.end();
  signal?.addEventListener("abort", end);
  try {
    const answer = await callBehindWrites(session, CALL_BACKUP, frame);
    follower.throwFailure();
    return readCopied(answer);
  } catch (error) {
    signal?.throwIfAborted();
    follower.throwFailure();
    throw error;
  } finally {
    follower.stop();
    signal?.removeEventListener("abort", end);
  }
}

/** What a verified copy has (src/codec/frame/copied.rs). */
export function readCopied(answer: Buffer): KvBackup {
  return {
    bytes: answer.readDoubleLE(0),
    entries: answer.readDoubleLE(8),
    versionstamp: readStamp(answer, 16),
    sha256: answer.toString("hex", 16 + STAMP_BYTES),
  };
}

/** Asks a backup how far it is, as long as somebody wants to know. */
class Follower {
  readonly #session: Session;
  readonly #name: Uint8Array;
  readonly #told: KvBackupOptions["onProgress"];
  readonly #timer: NodeJS.Timeout | undefined;
  /** What was thrown by whoever is told. */
  #failure: { error: unknown } | undefined;

  constructor(session: Session, name: Uint8Array, told: KvBackupOptions["onProgress"]) {
    this.#session = session;
    this.#name = name;
    this.#told = told;
    if (told !== undefined) this.#timer = setInterval(() => void this.#tell(), PROGRESS_MS);
  }

  /** Ends the backup. Where that cannot be said, the session is at its end, and the backup with it. */
  end(): void {
    this.#ask(true).catch(() => {});
  }

  throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #tell(): Promise<void> {
    try {
      const [pagesDone, pages] = await this.#ask(false);
      if (pages > 0) await this.#told?.({ pagesDone, pages });
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

export async function check(session: Session): Promise<{ ok: boolean; findings: string[] }> {
  const findings = (await call(session, CALL_CHECK)).toString("utf8");
  const lines = findings === "" ? [] : findings.split("\n");
  return { ok: lines.length === 0, findings: lines };
}
