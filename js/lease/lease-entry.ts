// Duty: the entry of a lease, and the commits that store, renew and delete it. Its versionstamp is the fencing token:
// a renewal sets its expiry only, which keeps it.
// Invariant: the expiry counts from the commit by the time of the database, also of a remote one.

import type { Limits } from "../arguments/check.js";
import { Writer } from "../codec/writer.js";
import { OP_DELETE, SET_EXPIRY_REQUIRED, SET_EXPIRY_SHORTENS } from "../native/contract.js";
import { putBytes } from "../native/frame.js";
import { putCheckHead, putSetExpiryHead, putSetHead } from "../records/layout.js";
import { putKey, putValue } from "../records/records.js";
import type { Session } from "../session/session.js";
import { WriteBatch } from "../session/write-batch.js";
import type { KvAtomicResult, KvCommitRefusal, KvKey } from "../model/types.js";

type Result = KvAtomicResult | KvCommitRefusal;

/** The value of the entry. */
export interface LeaseValue {
  /** The acquisition: no other one has the same. */
  readonly lease: string;
  /** In ms. */
  readonly ttl: number;
}

/** Room for most keys. */
const KEY_BYTES = 128;

/** Whether a value is that of a lease. */
export function isLeaseValue(value: unknown): value is LeaseValue {
  if (typeof value !== "object" || value === null) return false;
  const { lease, ttl } = value as { lease?: unknown; ttl?: unknown };
  return typeof lease === "string" && typeof ttl === "number";
}

/** An encoded key, as records have it. */
export function entryOf(key: KvKey, limits: Limits): Buffer {
  const writer = new Writer(KEY_BYTES);
  putKey(writer, key, limits);
  return writer.copy(0);
}

/** Stores the entry, if there is none. */
export function storeEntry(
  session: Session,
  key: KvKey,
  entry: Buffer,
  value: LeaseValue,
): Promise<Result> {
  return commit(session, (writer) => {
    putCheck(writer, entry, null);
    putSetHead(writer, 0, value.ttl, undefined);
    putBytes(writer, entry, 0, entry.length);
    putValue(writer, key, value, session.limits);
  });
}

/** Sets the expiry again, if the entry is that of the token. */
export function renewEntry(
  session: Session,
  entry: Buffer,
  token: string,
  ttlMs: number,
): Promise<Result> {
  return commit(session, (writer) => putExpiry(writer, entry, token, ttlMs, SET_EXPIRY_REQUIRED));
}

/** Lets the entry, if it is that of the token, expire after its ttl from now, unless it does before. */
export function shortenEntry(
  session: Session,
  entry: Buffer,
  token: string,
  ttlMs: number,
): Promise<Result> {
  return commit(session, (writer) => putExpiry(writer, entry, token, ttlMs, SET_EXPIRY_SHORTENS));
}

function putExpiry(
  writer: Writer,
  entry: Buffer,
  token: string,
  ttlMs: number,
  flags: number,
): void {
  putCheck(writer, entry, token);
  putSetExpiryHead(writer, flags, ttlMs, undefined);
  putBytes(writer, entry, 0, entry.length);
}

/** Deletes the entry, if it is that of the token. `closing`: the handle is being closed. */
export function deleteEntry(
  session: Session,
  entry: Buffer,
  token: string,
  closing = false,
): Promise<Result> {
  const put = (writer: Writer): void => {
    putCheck(writer, entry, token);
    writer.u8(OP_DELETE);
    putBytes(writer, entry, 0, entry.length);
  };
  return closing ? join(session, put) : commit(session, put);
}

function putCheck(writer: Writer, entry: Buffer, stamp: string | null): void {
  putCheckHead(writer, stamp);
  putBytes(writer, entry, 0, entry.length);
}

/** Commits a write whose times stay relative to the commit. */
async function commit(session: Session, put: (writer: Writer) => void): Promise<Result> {
  session.requireOpen();
  const before = session.order.held === 0 ? null : session.order.beforeAll();
  if (before !== null) {
    await before;
    session.requireOpen();
  }
  return await join(session, put);
}

async function join(session: Session, put: (writer: Writer) => void): Promise<Result> {
  const batch = WriteBatch.join(session);
  batch.begin();
  try {
    put(batch.writer);
  } catch (error) {
    batch.abort();
    throw error;
  }
  const index = batch.commit();
  if (session.closed) batch.flush();
  await batch.settled;
  return batch.result(index);
}
