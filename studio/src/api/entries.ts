// Duty: requests about entries.

import { type Entry, type Key, type Node, readable } from "../values/node";
import { printKey } from "../values/print";
import { ApiError, type ApiRequest, ask, askJson } from "./request";

export interface Page {
  readonly entries: Entry[];
  readonly cursor: string | null;
  readonly hasMore: boolean;
}

export interface Listing {
  readonly prefix?: Key;
  readonly start?: Key;
  readonly limit?: number;
  readonly reverse?: boolean;
  readonly cursor?: string;
  readonly keysOnly?: boolean;
  /** A filter in plain JSON. */
  readonly where?: unknown;
}

/** Versions that are shown at once. */
const VERSIONS_MAX = 20;

export async function list(listing: Listing, signal?: AbortSignal): Promise<Page> {
  const page = await askJson<Page>("/keys/list", { body: listing, ...(signal && { signal }) });
  return { ...page, entries: page.entries.map(readable) };
}

/** What a list reads, and how much. */
export interface Explanation {
  readonly method: "index" | "scan" | "sort";
  readonly branches: readonly {
    readonly index: string;
    readonly bounds: readonly { readonly path: string; readonly ranges: readonly string[] }[];
  }[];
  readonly reason: string | null;
  readonly indexEntries: number;
  readonly visited: number;
  readonly filtered: number;
  readonly returned: number;
  readonly complete: boolean;
}

export const explain = (listing: Listing): Promise<Explanation> =>
  askJson("/keys/explain", { body: listing, accept: "application/json" });

export async function count(prefix: Key, signal?: AbortSignal): Promise<number> {
  const body = { prefix };
  const found = await askJson<{ count: number }>("/keys/count", {
    body,
    ...(signal && { signal }),
  });
  return found.count;
}

/** The entry of a key; `undefined` without one. */
export async function read(
  key: Key,
  of: Pick<ApiRequest, "database" | "signal"> = {},
): Promise<Entry | undefined> {
  try {
    return await askJson<Entry>("/keys", { ...of, query: { key: printKey(key) } });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** What a commit has made of an entry. Times are RFC 3339. */
export interface Version {
  readonly type: "set" | "expiry" | "delete";
  readonly value: Node | null;
  readonly versionstamp: string;
  readonly committedAt: string | null;
  readonly expireAt: string | null;
}

interface Versions {
  readonly versions: Version[];
  readonly cursor: string | null;
}

/** A page of the versions of the entry of a key, the newest first. */
export async function versions(
  key: Key,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Versions> {
  const query = { key: printKey(key), limit: VERSIONS_MAX, cursor };
  const page = await askJson<Versions>("/history", { query, signal });
  return { ...page, versions: page.versions.map(readable) };
}

/** What a write expects: this versionstamp, no entry, or anything. */
export type Expected = { versionstamp: string } | "absent" | "any";

/** Another write was first. */
export class Conflict extends Error {
  readonly present: Entry | undefined;

  constructor(present: Entry | undefined) {
    super("The entry has changed.");
    this.present = present;
  }
}

function conditions(expected: Expected): Record<string, string> {
  if (expected === "any") return {};
  if (expected === "absent") return { "if-none-match": "*" };
  return { "if-match": `"${expected.versionstamp}"` };
}

async function conditional<T>(database: string, key: Key, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 412) throw error;
    throw new Conflict(await read(key, { database }));
  }
}

/** Writes an entry, and returns its versionstamp. */
export function write(
  database: string,
  key: Key,
  value: Node,
  expected: Expected,
  expireIn?: number,
): Promise<string> {
  return conditional(database, key, async () => {
    const query = { key: printKey(key), expireIn };
    const headers = conditions(expected);
    const request = { database, method: "PUT", body: value, headers, query };
    return (await askJson<{ versionstamp: string }>("/keys", request)).versionstamp;
  });
}

export function remove(database: string, key: Key, expected: Expected): Promise<void> {
  return conditional(database, key, async () => {
    const query = { key: printKey(key) };
    const headers = conditions(expected);
    await ask("/keys", { database, method: "DELETE", headers, query });
  });
}

/** Deletes entries; not what is below them. */
export async function removeMany(database: string, keys: readonly Key[]): Promise<number> {
  const request = { database, body: { keys } };
  return (await askJson<{ deleted: number }>("/keys/delete-batch", request)).deleted;
}

/** Whether the token may write. */
export async function tokenMayWrite(): Promise<boolean> {
  return (await askJson<{ write: boolean }>("/rights", { accept: "application/json" })).write;
}
