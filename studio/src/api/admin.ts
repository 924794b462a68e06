// Duty: requests of the admin API (docs/server.md).

import { askAdmin } from "./request";

export interface Quotas {
  readonly bytes?: number;
  readonly operationsPerSecond?: number;
  readonly queueDepth?: number;
  readonly watches?: number;
}

export const QUOTAS: readonly (readonly [keyof Quotas, string])[] = [
  ["bytes", "Bytes"],
  ["operationsPerSecond", "Operations per second"],
  ["queueDepth", "Messages in queues"],
  ["watches", "Watches"],
];

export type Rights = "metrics" | "read" | "write" | "admin";

export interface Token {
  readonly id: string;
  readonly rights: Rights;
  readonly createdAt: string;
  /** Only in the answer that makes it. */
  readonly token?: string;
}

export interface Database {
  readonly name: string;
  readonly databaseId: string;
  readonly createdAt: string;
  readonly bytes?: number;
  readonly watches: number;
  readonly quotas: Quotas;
  readonly tokens: readonly Token[];
  /** Only in the answer that creates it. */
  readonly token?: string;
}

const of = (name: string): string => `/databases/${encodeURIComponent(name)}`;

export const databases = (signal: AbortSignal): Promise<Database[]> =>
  askAdmin("/databases", { signal });
export const create = (name: string): Promise<Database> =>
  askAdmin("/databases", { body: { name } });
export const drop = (name: string): Promise<void> => askAdmin(of(name), { method: "DELETE" });
export const setQuotas = (name: string, quotas: Quotas): Promise<void> =>
  askAdmin(`${of(name)}/quotas`, { method: "PUT", body: quotas });
export const createToken = (name: string, rights: Rights): Promise<Token> =>
  askAdmin(`${of(name)}/tokens`, { body: { rights } });
export const revoke = (name: string, id: string): Promise<void> =>
  askAdmin(`${of(name)}/tokens/${encodeURIComponent(id)}`, { method: "DELETE" });
