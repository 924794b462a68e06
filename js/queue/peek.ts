// Duty: kv.queue().peek: a page of the messages of a queue, which stay where they are.

import { callBehindWrites } from "../session/call.js";
import { decodeValue } from "../codec/value/decode.js";
import { ownContext, valueStart } from "../codec/message-context.js";
import { ENCODING_CBOR } from "../codec/value/tags.js";
import { Writer } from "../codec/writer.js";
import { CALL_PEEK } from "../native/contract.js";
import { putText, readU32 } from "../native/frame.js";
import type { Session } from "../session/session.js";
import { MESSAGE_STATES, type MessageState, type PeekOptions } from "./queue-options.js";

export interface PeekedMessage {
  id: string;
  value: any;
  state: MessageState;
  priority: number;
  group: string | null;
  attempts: number;
  enqueuedAt: Date;
  dueAt: Date;
  lockedUntil: Date | null;
}

export interface PeekedPage {
  messages: PeekedMessage[];
  cursor: string | null;
}

/** The number of any state. */
const ANY_STATE = 255;

export async function peek(
  session: Session,
  queue: string,
  { limit, state, cursor }: PeekOptions,
  signal: AbortSignal | undefined,
): Promise<PeekedPage> {
  const frame = new Writer();
  putText(frame, queue);
  frame.u32(limit);
  frame.u8(state === undefined ? ANY_STATE : MESSAGE_STATES.indexOf(state));
  putText(frame, cursor);
  const answer = await callBehindWrites(session, CALL_PEEK, frame, signal);
  const next = answer.toString("utf8", 8, 8 + readU32(answer, 4));
  const messages: PeekedMessage[] = [];
  let at = 8 + readU32(answer, 4);
  for (let left = readU32(answer, 0); left > 0; left--) {
    const { message, end } = readPeeked(answer, at);
    messages.push(message);
    at = end;
  }
  return { messages, cursor: next === "" ? null : next };
}

/** u8 state, u8 priority, f64 id, enqueued, due, end of the lock, u32 attempts; then the value. */
function readPeeked(data: Buffer, at: number): { message: PeekedMessage; end: number } {
  const number = (index: number) => data.readDoubleLE(at + 2 + 8 * index);
  const start = at + 42;
  const end = start + readU32(data, at + 38);
  const state = MESSAGE_STATES[data[at]!]!;
  const message = {
    id: String(number(0)),
    value: decodeValue(ENCODING_CBOR, data, valueStart(data, start, end), end),
    state,
    priority: data[at + 1]!,
    group: ownContext(data, start, end).group,
    attempts: readU32(data, at + 34),
    enqueuedAt: new Date(number(1)),
    dueAt: new Date(number(2)),
    // A lock that has expired holds nothing.
    lockedUntil: state === "processing" ? new Date(number(3)) : null,
  };
  return { message, end };
}
