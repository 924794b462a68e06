// Duty: the lock under which a consumer has a message, by which the message is settled, and which a commit
// names to acknowledge it.

import { misuse } from "../model/errors.js";
import { shown } from "../arguments/check.js";
import type { Writer } from "../codec/writer.js";
import { readU32 } from "../native/frame.js";
import { OP_ACKNOWLEDGE } from "../native/contract.js";
import type { MessageInfo } from "./raw-message.js";

/** Bytes of a lock in front of its message. */
export const LOCK_BYTES = 8;

/** The lock of a message; no other delivery has the same. */
export class MessageLock {
  readonly id: number;
  readonly #low: number;
  readonly #high: number;
  /** A commit has acknowledged the message. */
  acknowledged = false;

  /** The lock of the message `id`, at `at` of a frame. */
  constructor(id: number, data: Buffer, at: number) {
    this.id = id;
    this.#low = readU32(data, at);
    this.#high = readU32(data, at + 4);
  }

  /** The message's number and the lock, in a frame. */
  put(writer: Writer): void {
    writer.f64(this.id);
    writer.u32(this.#low);
    writer.u32(this.#high);
  }
}

/** A record of a write: the commit acknowledges the message. */
export function putAcknowledge(writer: Writer, lock: MessageLock): void {
  writer.u8(OP_ACKNOWLEDGE);
  lock.put(writer);
}

let lockIn: (message: object) => MessageLock | undefined;

/** A message that a consumer has. */
export class LockedMessage implements MessageInfo {
  readonly id: string;
  readonly value: any;
  readonly attempts: number;
  readonly attemptsLeft: number;
  readonly enqueuedAt: Date;
  readonly group: string | null;
  readonly schedule: MessageInfo["schedule"];
  readonly #lock: MessageLock;

  constructor(lock: MessageLock, info: MessageInfo) {
    this.#lock = lock;
    this.id = info.id;
    this.value = info.value;
    this.attempts = info.attempts;
    this.attemptsLeft = info.attemptsLeft;
    this.enqueuedAt = info.enqueuedAt;
    this.group = info.group;
    this.schedule = info.schedule;
  }

  static {
    lockIn = (message) => (#lock in message ? message.#lock : undefined);
  }
}

/** The lock of a message that a caller gives to `method`. */
export function lockOf(method: string, message: unknown): MessageLock {
  const lock = typeof message === "object" && message !== null ? lockIn(message) : undefined;
  if (lock !== undefined) return lock;
  throw misuse(
    `${method}: message must be one that receive() or the handler of listen() got: received ` +
      shown(message),
  );
}
