// Duty: requests about indexes of both types, and searches.

import type { Entry, Key } from "../values/node";
import { fromPlainKey } from "../values/plain-key";
import { askJson } from "./request";

interface Described {
  readonly name: string;
  readonly prefix: Key;
  /** Entries older than the index that are in it. */
  readonly indexed: number;
}

/** An index of the words in values. */
export interface TextIndex extends Described {
  readonly type: "fulltext";
  readonly fields: readonly string[];
  readonly tokenize: string;
  readonly state: "building" | "ready";
  readonly documents: number;
}

/** A path of a value index. */
export interface IndexPath {
  readonly path: string;
  readonly order: "asc" | "desc";
}

/** An index of values in their order. */
export interface ValueIndex extends Described {
  readonly type: "value";
  readonly on: readonly IndexPath[];
  readonly unique: boolean;
  readonly multi: boolean;
  readonly sparse: boolean;
  readonly state: "building" | "ready" | "failed";
  /** Of a failed one; `other` is the entry with the same value, `null` if the value itself cannot be unique. */
  readonly failure: { readonly other: unknown } | null;
}

export type Index = TextIndex | ValueIndex;

export const TOKENIZERS = ["auto", "unicode61", "porter", "ascii", "trigram"] as const;

export type NewIndex =
  | { readonly prefix: Key; readonly fields: readonly string[]; readonly tokenize: string }
  | {
      readonly type: "value";
      readonly prefix: Key;
      readonly on: readonly IndexPath[];
      readonly unique: boolean;
    };

export interface Hit extends Entry {
  readonly score: number;
  readonly highlights?: Readonly<Record<string, string>>;
}

export interface Hits {
  readonly entries: readonly Hit[];
  readonly cursor: string | null;
  readonly complete: boolean;
}

/** Around a match in a snippet: characters that no text of a person has. */
export const MARKS = { before: "\ue000", after: "\ue001" };

const HITS = 20;

export async function indexes(signal: AbortSignal): Promise<Index[]> {
  const request = { accept: "application/json", signal };
  type Plain<I> = I extends Index ? Omit<I, "prefix"> & { prefix: unknown[] } : never;
  const found = await askJson<{ indexes: Plain<Index>[] }>("/indexes", request);
  return found.indexes.map((index) => ({ ...index, prefix: fromPlainKey(index.prefix) }));
}

export async function createIndex(database: string, index: NewIndex): Promise<void> {
  await askJson("/indexes", { database, body: index, accept: "application/json" });
}

export async function dropIndex(database: string, name: string): Promise<void> {
  const request = { database, method: "DELETE", query: { name }, accept: "application/json" };
  await askJson("/indexes", request);
}

/** Any text, of which every word is searched for, or a query with operators. */
export type Mode = "words" | "query";

export interface Query {
  readonly prefix: Key;
  readonly query: string;
  readonly mode: Mode;
  readonly where?: unknown;
  readonly cursor?: string;
}

export const search = (query: Query, signal: AbortSignal): Promise<Hits> =>
  askJson("/search", { body: { ...query, limit: HITS, highlight: MARKS }, signal });
