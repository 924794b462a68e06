// Duty: getSync and getManySync. They use the synchronous lane and renew its budget; if the lane
// refuses, the addon reads and blocks the thread.
// Invariant: they return or throw; no read is postponed.

import { checkConsistency, checkOptions } from "../arguments/check.js";
import { decodeKey } from "../codec/key.js";
import { KvError, errorOf, readFailure } from "../model/errors.js";
import { readU32 } from "../native/frame.js";
import { skipAnswer } from "../session/read-batch.js";
import { getManyNow, getNow, pointAnswer } from "./reads.js";
import type { Session } from "../session/session.js";
import type { KvConsistencyLevel, KvEntryMaybe, KvKey } from "../model/types.js";

/** The first attempt may find the budget spent or the scratch too small; the second does not. */
const TRIES = 2;

export function getSync(session: Session, key: KvKey, options: unknown): KvEntryMaybe<unknown> {
  const wanted = checkOnlyConsistency("kv.getSync", options);
  for (let tries = 0; tries < TRIES; tries++) {
    session.renewBudget();
    const entry = getNow(session, key, wanted);
    if (entry !== undefined) return entry;
    requireSync(session, "get", wanted);
  }
  return getManySync(session, [key], wanted)[0];
}

export function getManySync(
  session: Session,
  keys: readonly KvKey[],
  options: unknown,
): KvEntryMaybe<unknown>[] {
  const wanted = checkOnlyConsistency("kv.getManySync", options);
  for (let tries = 0; tries < TRIES; tries++) {
    session.renewBudget();
    const entries = getManyNow(session, keys, wanted);
    if (entries !== undefined) return entries;
    requireSync(session, "getMany", wanted);
  }
  return blocking(session, keys);
}

interface Wanted {
  consistency?: KvConsistencyLevel | undefined;
}

function checkOnlyConsistency(method: string, options: unknown): Wanted | undefined {
  const { consistency } = checkOptions(method, options, ["consistency"]);
  checkConsistency(consistency);
  return consistency == null ? undefined : { consistency: consistency as KvConsistencyLevel };
}

/**
 * The synchronous lane of a database behind a network refuses every read; with a replica, a strong read
 * goes to the server, which takes time.
 */
function requireSync(session: Session, method: string, wanted: Wanted | undefined): void {
  if (session.replica && session.freshness(wanted?.consistency) === 0) {
    throw new KvError(
      "UNSUPPORTED",
      `kv.${method}Sync: a strong read goes to the server: pass consistency: "eventual" to read the ` +
        `replica, or use await kv.${method}()`,
    );
  }
  if (session.whyNoSync === null) return;
  throw new KvError(
    "UNSUPPORTED",
    `kv.${method}Sync: ${session.whyNoSync}: use await kv.${method}()`,
  );
}

/** Reads the keys that {@link getManyNow} has just left in the scratch's writer. */
function blocking(session: Session, keys: readonly KvKey[]): KvEntryMaybe<unknown>[] {
  const { native, port } = session;
  const { buf, pos } = port.writer;
  session.hold(keys.length);
  const data = native.getBlocking(keys.length, buf, pos);
  if (data === null) throw errorOf(readFailure(port.native.takeError()));
  const entries: KvEntryMaybe<unknown>[] = [];
  let keyAt = 0;
  let at = 0;
  for (let i = 0; i < keys.length; i++) {
    const keyStart = keyAt + 4;
    keyAt = keyStart + readU32(buf, keyAt);
    entries.push(pointAnswer(data, at, decodeKey(buf, keyStart, keyAt), keys[i]));
    at = skipAnswer(data, at);
  }
  return entries;
}
