// Duty: a store of LangGraph. An item is the entry [...base, "items", ...namespace, key], so that a prefix of
// namespaces is a range.

import {
  BaseStore,
  getTextAtPath,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { Kv, KvSearchResult } from "openkv";
import { Database, type DatabaseOptions } from "./database.js";

const NAME = "langgraph";
const ITEMS = "items";
/** The results of a search are read in pages of this many. */
const SEARCH_PAGE = 100;
const SEARCH_LIMIT_DEFAULT = 10;

/** Options of {@link OpenKvMemoryStore}. */
export interface OpenKvMemoryStoreOptions extends DatabaseOptions {
  /**
   * Paths into the values, as `"text"` or `"chapters[*].content"`, whose text `search` finds with a
   * `query`. Default: none, a query is ignored.
   */
  fields?: readonly string[] | undefined;
}

interface StoredItem {
  value: Record<string, any>;
  createdAt: Date;
  updatedAt: Date;
  /** What `search` finds. */
  text?: string[];
}

/**
 * A store of LangGraph for memories across threads. `search` with a `query` finds the items that have any of
 * its words, the best first, by a full-text index of the database over `fields`. `stop` closes the handle
 * if the store has opened it.
 *
 * @example
 * const store = new OpenKvMemoryStore({ path: "agent.sqlite3", fields: ["text"] });
 * await store.put(["users", "ada"], "likes", { text: "prefers green tea" });
 * const [found] = await store.search(["users"], { query: "which tea?" });
 */
export class OpenKvMemoryStore extends BaseStore {
  readonly #database: Database;
  readonly #fields: readonly string[] | undefined;
  #indexing: Promise<unknown> | undefined;

  constructor(options: OpenKvMemoryStoreOptions = {}) {
    super();
    this.#database = new Database(options, NAME);
    this.#fields = options.fields;
  }

  override async stop(): Promise<void> {
    this.#indexing = undefined;
    await this.#database.close();
  }

  /** Reads see the state before the writes of the same batch; these are one commit. */
  async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const kv = await this.#kv();
    const results = await Promise.all(
      operations.map((operation) => {
        if ("namespacePrefix" in operation) return this.#search(kv, operation);
        if ("value" in operation) return undefined;
        if ("key" in operation) return this.#get(kv, operation.namespace, operation.key);
        return this.#namespaces(kv, operation as ListNamespacesOperation);
      }),
    );
    const puts = operations.filter((operation): operation is PutOperation => "value" in operation);
    if (puts.length > 0) await this.#put(kv, puts);
    return results as OperationResults<Op>;
  }

  /** The handle, with the index. */
  async #kv(): Promise<Kv> {
    const kv = await this.#database.kv();
    if (this.#fields !== undefined) {
      this.#indexing ??= this.#createIndex(kv);
      await this.#indexing;
    }
    return kv;
  }

  async #createIndex(kv: Kv): Promise<unknown> {
    try {
      return await kv.createIndex({ prefix: this.#database.key(ITEMS), fields: ["text"] });
    } catch (error) {
      // The next call tries again.
      this.#indexing = undefined;
      throw error;
    }
  }

  async #get(kv: Kv, namespace: string[], key: string): Promise<Item | null> {
    const path = this.#database.key(ITEMS, ...namespace, key);
    const { value } = await kv.get<StoredItem>(path);
    return value === null ? null : itemOf(namespace, key, value);
  }

  async #put(kv: Kv, puts: PutOperation[]): Promise<void> {
    const now = new Date();
    const paths = puts.map(({ namespace, key }) => this.#database.key(ITEMS, ...namespace, key));
    const present = await Promise.all(paths.map((path) => kv.get<StoredItem>(path)));
    const atomic = kv.atomic();
    for (const [at, operation] of puts.entries()) {
      const path = paths[at]!;
      if (operation.value === null) {
        atomic.delete(path);
        continue;
      }
      const { value } = operation;
      const createdAt = present[at]!.value?.createdAt ?? now;
      const text = this.#textOf(operation);
      atomic.set(path, { value, createdAt, updatedAt: now, ...(text && { text }) });
    }
    await atomic.commit();
  }

  #textOf({ value, index }: PutOperation): string[] | undefined {
    const fields = index === false ? undefined : (index ?? this.#fields);
    if (fields === undefined || this.#fields === undefined) return undefined;
    return fields.flatMap((field) => getTextAtPath(value, field));
  }

  async #search(kv: Kv, operation: SearchOperation): Promise<SearchItem[]> {
    const { offset = 0, limit = SEARCH_LIMIT_DEFAULT, filter } = operation;
    const found: SearchItem[] = [];
    let skip = offset;
    if (limit <= 0) return found;
    for await (const item of this.#candidates(kv, operation)) {
      const conditions = Object.entries(filter ?? {});
      if (!conditions.every(([name, condition]) => holds(item.value[name], condition))) continue;
      if (skip-- > 0) continue;
      found.push(item);
      if (found.length === limit) break;
    }
    return found;
  }

  /** The items below a prefix: those with a word of the query, the best first, or all in their order. */
  async *#candidates(kv: Kv, operation: SearchOperation): AsyncGenerator<SearchItem> {
    const { namespacePrefix, query } = operation;
    const prefix = this.#database.key(ITEMS, ...namespacePrefix);
    const length = this.#database.key(ITEMS).length;
    if (this.#fields === undefined || !query) {
      for await (const { key, value } of kv.list<StoredItem>({ prefix })) {
        yield itemOf(key.slice(length, -1) as string[], key.at(-1) as string, value);
      }
      return;
    }
    const words = wordsOf(query);
    if (words === "") return;
    let cursor: string | null = null;
    do {
      const page: KvSearchResult<StoredItem> = await kv.search(prefix, words, {
        limit: SEARCH_PAGE,
        cursor,
      });
      for (const { key, value, score } of page.entries) {
        const namespace = key.slice(length, -1) as string[];
        yield { ...itemOf(namespace, key.at(-1) as string, value), score };
      }
      cursor = page.cursor;
    } while (cursor !== null);
  }

  async #namespaces(kv: Kv, operation: ListNamespacesOperation): Promise<string[][]> {
    const { matchConditions = [], maxDepth, limit, offset = 0 } = operation;
    const length = this.#database.key(ITEMS).length;
    const found = new Map<string, string[]>();
    for await (const { key } of kv.list(
      { prefix: this.#database.key(ITEMS) },
      { keysOnly: true },
    )) {
      const namespace = key.slice(length, -1) as string[];
      if (!matchConditions.every((condition) => matches(condition, namespace))) continue;
      const shown = namespace.slice(0, maxDepth);
      found.set(JSON.stringify(shown), shown);
    }
    return [...found.values()].slice(offset, offset + (limit ?? found.size));
  }
}

function itemOf(namespace: string[], key: string, stored: StoredItem): Item {
  const { value, createdAt, updatedAt } = stored;
  return { value, key, namespace, createdAt, updatedAt };
}

/** The words of a query as one of openkv: any of them. Empty without words. */
function wordsOf(query: string): string {
  const words = query.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return words.map((word) => `"${word}"`).join(" OR ");
}

function matches({ matchType, path }: MatchCondition, namespace: string[]): boolean {
  if (path.length > namespace.length) return false;
  const from = matchType === "prefix" ? 0 : namespace.length - path.length;
  return path.every((label, at) => label === "*" || label === namespace[from + at]);
}

/** Whether a value meets a condition of a filter, by the rules of LangGraph's own store. */
function holds(value: any, condition: any): boolean {
  if (typeof condition !== "object" || condition === null) return value === condition;
  const operators = Object.entries<any>(condition);
  if (!operators.every(([name]) => Object.hasOwn(OPERATORS, name))) return value === condition;
  return operators.every(([name, operand]) => OPERATORS[name]!(value, operand));
}

const OPERATORS: Record<string, (value: any, operand: any) => boolean> = {
  $eq: (value, operand) => value === operand,
  $ne: (value, operand) => value !== operand,
  $gt: (value, operand) => Number(value) > Number(operand),
  $gte: (value, operand) => Number(value) >= Number(operand),
  $lt: (value, operand) => Number(value) < Number(operand),
  $lte: (value, operand) => Number(value) <= Number(operand),
  $in: (value, operand) => Array.isArray(operand) && operand.includes(value),
  $nin: (value, operand) => !Array.isArray(operand) || !operand.includes(value),
};
