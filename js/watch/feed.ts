// Duty: watch over a selector: a stream of the committed changes in a range of keys, in order.

import { invalid } from "../model/errors.js";
import { checkOptions, wrongShape, shown } from "../arguments/check.js";
import { decodeKey } from "../codec/key.js";
import { decodeValue } from "../codec/value/decode.js";
import { Writer } from "../codec/writer.js";
import { readStamp, readU32 } from "../native/frame.js";
import {
  CHANGE_EXPIRED,
  CHANGE_SET,
  CHANGE_SET_TO_EXPIRE,
  STAMP_BYTES,
} from "../native/contract.js";
import { Pulled, endedStream, streamOf } from "./pulled.js";
import { boundsOf, checkSelector } from "../read/range.js";
import { isStamp } from "../records/records.js";
import type { Session } from "../session/session.js";
import { checkSignal } from "../arguments/signal.js";
import type { KvChange, KvChanges, KvListSelector } from "../model/types.js";

export const FEED_OPTIONS = ["since", "initial", "signal"] as const;

/** Bytes of the expiry of a change. */
const EXPIRY_BYTES = 8;

/** Whether the first argument of `watch` is a selector, not an array of keys. */
export function isSelector(watched: unknown): watched is KvListSelector {
  return typeof watched === "object" && watched !== null && !Array.isArray(watched);
}

/** The changes from now on, or after `since`. */
export function feed(
  session: Session,
  selector: KvListSelector,
  options: unknown,
): ReadableStream<KvChanges> {
  const { request, signal } = checkFeed(session, selector, options);
  return signal?.aborted ? endedStream() : streamOf(new Feed(session, request), signal);
}

/** Checks the arguments of a feed. `selector` is a copy, which the caller cannot change later. */
export function checkFeed(
  session: Session,
  given: KvListSelector,
  options: unknown,
): { request: Writer; selector: KvListSelector; signal: AbortSignal | undefined } {
  const { since, signal: followed } = checkOptions("kv.watch", options, FEED_OPTIONS);
  const signal = checkSignal("kv.watch", followed);
  const selector = checkSelector("kv.watch", given, FEED_OPTIONS);
  const bounds = boundsOf(selector, session.limits.rangeKeyBytesMax);
  const request = new Writer(128);
  if (since === undefined) request.u8(0);
  else putStamp(request, since);
  for (const bound of [bounds.start, bounds.end]) {
    request.u32(bound.length);
    request.bytes(bound);
  }
  session.requireOpen();
  return { request, selector: selector as KvListSelector, signal };
}

function putStamp(writer: Writer, since: unknown): void {
  if (typeof since !== "string") throw wrongShape("string", since, "since is a versionstamp");
  if (!isStamp(since)) {
    const form = `twenty hexadecimal digits: received ${shown(since)}`;
    throw invalid(`kv.watch: since must be a versionstamp, ${form}`);
  }
  writer.u8(1);
  writer.ascii(since);
}

class Feed extends Pulled<KvChanges> {
  constructor(session: Session, request: Writer) {
    super(session, (native, id) => native.feedCancel(id));
    // Sends earlier calls first.
    session.flush();
    session.native.feed(this.id, request.buf, request.pos);
  }

  protected ask(): void {
    this.session.native.feedNext(this.id);
  }

  protected decode(data: Buffer): KvChanges {
    const changes: KvChange<unknown>[] = [];
    const count = readU32(data, STAMP_BYTES);
    let at = STAMP_BYTES + 4;
    for (let i = 0; i < count; i++) {
      const type = data[at++];
      const versionstamp = readStamp(data, at);
      at += STAMP_BYTES;
      const keyStart = at + 4;
      at = keyStart + readU32(data, at);
      const key = decodeKey(data, keyStart, at);
      if (type === CHANGE_EXPIRED) {
        changes.push({ type: "delete", key, value: null, versionstamp, expired: true });
        continue;
      }
      if (type !== CHANGE_SET && type !== CHANGE_SET_TO_EXPIRE) {
        changes.push({ type: "delete", key, value: null, versionstamp });
        continue;
      }
      let expireAt: Date | undefined;
      if (type === CHANGE_SET_TO_EXPIRE) {
        expireAt = new Date(Number(data.readBigInt64LE(at)));
        at += EXPIRY_BYTES;
      }
      const encoding = data[at++];
      const start = at + 4;
      at = start + readU32(data, at);
      const value = decodeValue(encoding, data, start, at);
      const set = { type: "set", key, value, versionstamp } as const;
      changes.push(expireAt === undefined ? set : { ...set, expireAt });
    }
    return { changes, versionstamp: readStamp(data, 0) };
  }
}
