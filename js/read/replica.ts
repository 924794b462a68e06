// Duty: kv.replica: how far the local copy of a remote database is.

import { shown } from "../arguments/check.js";
import { signalled } from "../arguments/signal.js";
import { Writer } from "../codec/writer.js";
import { errorOf, invalid, misuse } from "../model/errors.js";
import {
  CALL_REPLICA_REACHED,
  CALL_REPLICA_READY,
  CALL_REPLICA_STATUS,
} from "../native/contract.js";
import { call } from "../session/call.js";
import { Session } from "../session/session.js";
import type { KvCallOptions, KvReplicaStatus } from "../model/types.js";

const VERSIONSTAMP = /^[0-9a-f]{20}$/;

/** The status, as the addon writes it. */
interface NativeStatus extends Omit<KvReplicaStatus, "error"> {
  error: { kind: number; message: string } | null;
}

export class KvReplica {
  readonly #session: Session;

  constructor(session: Session) {
    if (!(session instanceof Session)) {
      throw misuse("KvReplica can not be constructed: use kv.replica of a handle instead");
    }
    this.#session = session;
  }

  async status(): Promise<KvReplicaStatus> {
    const answer = await call(this.#session, CALL_REPLICA_STATUS);
    const { error, ...status } = JSON.parse(answer.toString("utf8")) as NativeStatus;
    return { ...status, error: error === null ? null : (errorOf(error) as Error) };
  }

  ready(options?: KvCallOptions): Promise<void> {
    return signalled("kv.replica.ready", options, async (signal) => {
      await call(this.#session, CALL_REPLICA_READY, undefined, signal);
    });
  }

  reached(versionstamp: string, options?: KvCallOptions): Promise<void> {
    return signalled("kv.replica.reached", options, async (signal) => {
      if (typeof versionstamp !== "string" || !VERSIONSTAMP.test(versionstamp)) {
        throw invalid(
          `kv.replica.reached: the versionstamp must have 20 hexadecimal digits: received ${shown(versionstamp)}`,
        );
      }
      const frame = new Writer(32);
      frame.bytes(Buffer.from(versionstamp, "latin1"));
      await call(this.#session, CALL_REPLICA_REACHED, frame, signal);
    });
  }
}
