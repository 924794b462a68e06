// Duty: kv.archive, and the jobs on an archive: restore, list, verify, prune; on a database in an object store: its state,
// and verify.

import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkOptions, shown } from "../arguments/check.js";
import { checkDuration } from "../arguments/duration.js";
import { refuseHalfUrl } from "../arguments/location.js";
import { onAbort } from "../arguments/signal.js";
import { clearInterval, setInterval } from "../model/clock.js";
import { bare } from "../model/define.js";
import { bugOf, errorOf, invalid } from "../model/errors.js";
import type { KvArchive, KvArchiveOptions, KvArchiveStatus } from "../model/types.js";
import type { NativeArchive, NativeArchiveJob } from "../native/binding.js";
import { NativeAnswer } from "../native/native-answer.js";
import { port } from "../native/port.js";
import type { Session } from "../session/session.js";

/** Interval of polling the progress of a job. */
const PROGRESS_MS = 100;

/** A place in an object store as it is; a folder as an absolute path. */
export function targetOf(to: string): string {
  refuseHalfUrl("The target of an archive", to);
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(to) ? to : resolve(to);
}

export async function archive(
  session: Session,
  given: KvArchiveOptions | undefined,
): Promise<KvArchive> {
  const options = checkOptions("kv.archive", given, ["to", "snapshotEvery", "retention"]);
  const { to, snapshotEvery, retention } = options as Partial<KvArchiveOptions>;
  if (typeof to !== "string" || to === "") {
    throw invalid(`kv.archive: to must be a folder or a URL: received ${shown(to)}`);
  }
  const native = {
    target: targetOf(to),
    beside: session.path === "" ? join(tmpdir(), "openkv-archive") : `${session.path}-archive`,
    snapshotEveryMs: optional("kv.archive: snapshotEvery", snapshotEvery),
    retentionMs: optional("kv.archive: retention", retention),
  };
  session.requireOpen();
  session.flush();
  const begun = new NativeAnswer(session.port);
  const running = new Running(
    session,
    session.native.archive(begun.id, JSON.stringify(bare(native))),
  );
  await begun.answered;
  try {
    begun.answer();
  } catch (error) {
    running.forget();
    throw error;
  }
  return running;
}

function optional(name: string, duration: unknown): number | undefined {
  return duration === undefined ? undefined : checkDuration(name, duration);
}

class Running implements KvArchive {
  readonly #session: Session;
  readonly #native: NativeArchive;
  readonly #end = (): Promise<void> => this.stop();
  #stopped: Promise<void> | undefined;

  constructor(session: Session, native: NativeArchive) {
    this.#session = session;
    this.#native = native;
    session.ending.add(this.#end);
  }

  status(): KvArchiveStatus {
    const {
      state,
      completeMs,
      snapshotMs,
      segments: _,
      target: __,
      ...same
    } = JSON.parse(this.#native.status()) as Omit<
      KvArchiveStatus,
      "state" | "completeAt" | "snapshotAt"
    > & {
      state: string;
      completeMs: number | null;
      snapshotMs: number | null;
      segments: number;
      target: string;
    };
    return {
      ...same,
      state: state === "failing" || state === "stopped" ? state : "running",
      completeAt: completeMs === null ? null : new Date(completeMs),
      snapshotAt: snapshotMs === null ? null : new Date(snapshotMs),
    };
  }

  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const answer = new NativeAnswer(this.#session.port);
    this.#native.stop(answer.id);
    await answer.answered;
    this.forget();
  }

  /** It has ended, or has not begun: closing the handle need not end it. */
  forget(): void {
    this.#session.ending.delete(this.#end);
  }
}

/** What is to be done on an archive or a database in an object store; the fields are those of `Job` in src/binding/archive.rs. */
export type ArchiveJob =
  | { kind: "restore"; target: string; file: string; at?: string | number; prefix?: string }
  | { kind: "list"; target: string }
  | { kind: "verify"; target: string; scratch: string }
  | { kind: "prune"; target: string; beforeMs: number }
  | { kind: "bucketStatus"; url: string }
  | { kind: "bucketVerify"; url: string };

/** Does a job; resolves with its result. */
export async function runArchiveJob<Result>(
  job: ArchiveJob,
  options: { signal?: AbortSignal; onProgress?: (done: number, all: number) => void } = {},
): Promise<Result> {
  const { signal, onProgress } = options;
  signal?.throwIfAborted();
  const thread = port();
  const answered = new NativeAnswer(thread);
  let native: NativeArchiveJob;
  try {
    native = new thread.native.ArchiveJob(
      thread.attachment,
      answered.id,
      JSON.stringify(bare(job)),
    );
  } catch (error) {
    answered.end(bugOf(error));
    throw errorOf(bugOf(error));
  }
  const tell = (): void => {
    const [done = 0, all = 0] = native.progress();
    if (all > 0) onProgress?.(done, all);
  };
  const timer = onProgress && setInterval(tell, PROGRESS_MS);
  const unfollow = signal && onAbort(signal, () => native.cancel());
  try {
    await answered.answered;
    return JSON.parse(answered.answer().toString()) as Result;
  } finally {
    clearInterval(timer);
    unfollow?.();
  }
}
