// Duty: kv.listenQueue: the queue of Deno KV, which has no name.

import { types } from "node:util";
import { nameOf } from "../arguments/check.js";
import { misuse } from "../model/errors.js";
import type { Session } from "../session/session.js";
import { Listener } from "./listener.js";
import { checkListenQueue } from "./queue-options.js";
import { messageValue } from "./raw-message.js";

/** Messages that one listener of Deno's queue handles at a time. */
const CREDITS = 100;

type Handler = (value: unknown) => void | Promise<void>;

export async function listenQueue(
  session: Session,
  handler: Handler,
  options: unknown,
): Promise<void> {
  // Every attempt of every message would fail, until the message is dead.
  if (typeof handler !== "function") {
    throw misuse(
      `invalid type; expected: function, got: ${nameOf(handler)}: ` +
        "kv.listenQueue needs a handler: (message) => { … }",
    );
  }
  const { signal, drainMs } = checkListenQueue(options, session.port.bounds);
  if (session.closed) {
    // As in Deno: an error after close(), a normal end after dispose.
    if (session.disposed) return;
    if (session.aborted !== null) throw session.aborted.reason;
    throw new Error("Queue already closed");
  }
  if (signal?.aborted) return;
  const listener = new Listener(session, {
    queue: "",
    credits: CREDITS,
    lockMs: session.port.bounds.lockMs,
    drainMs,
    // Programs for Deno wait for the listener first, and then let its handlers end.
    closeDrains: false,
    keepsReasons: false,
    async handle(message) {
      try {
        const result: unknown = handler(messageValue(message));
        // As in Deno, only a promise is awaited; another thenable is not.
        if (types.isPromise(result)) await result;
      } catch (error) {
        console.error("Exception in queue handler", error);
        throw error;
      }
    },
  });
  await listener.until(signal);
}
