// Duty: requests about full-text indexes.

import type { Entry, Key } from "../values/node";
import { fromPlainKey } from "../values/plain-key";
import { askJson } from "./request";

export interface Index {
  readonly name: string;
  readonly prefix: Key;
  readonly fields: readonly string[];
  readonly tokenize: string;
  readonly state: "building" | "ready";
  /** Entries older than the index that are in it. */
  readonly indexed: number;
  readonly documents: number;
}

export const TOKENIZERS = ["auto", "unicode61", "porter", "ascii", "trigram"] as const;

export interface NewIndex {
  readonly prefix: Key;
  readonly fields: readonly string[];
  readonly tokenize: string;
}

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

export async function indexes(): Promise<Index[]> {
  const asked = { accept: "application/json" };
  const found = await askJson<{ indexes: (Omit<Index, "prefix"> & { prefix: unknown[] })[] }>(
    "/indexes",
    asked,
  );
  return found.indexes.map((index) => ({ ...index, prefix: fromPlainKey(index.prefix) }));
}

export async function createIndex(index: NewIndex): Promise<void> {
  await askJson("/indexes", { body: index, accept: "application/json" });
}

export async function dropIndex(name: string): Promise<void> {
  const asked = { method: "DELETE", query: { name }, accept: "application/json" };
  await askJson("/indexes", asked);
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

export const search = (query: Query): Promise<Hits> =>
  askJson("/search", { body: { ...query, limit: HITS, highlight: MARKS } });
