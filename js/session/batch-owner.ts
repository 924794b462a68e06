// Duty: the interface of the handle that a batch belongs to.

import type { Failure } from "../model/errors.js";
import type { NativeHandle } from "../native/binding.js";
import type { Port } from "../native/port.js";

export interface BatchOwner {
  readonly port: Port;
  readonly native: NativeHandle;
  /** The trace context of a request that begins here; empty for a local database. */
  readonly context: string;
  /** The batches of reads that the addon has not answered. */
  readsUnderWay: number;
  /** The error that a caller gets for a failure. */
  errorOf(failure: Failure): unknown;
  /** Called by a batch when no call can join it any more. */
  leave(batch: object): void;
}
