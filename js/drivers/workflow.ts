// Duty: a World of the Workflow SDK: its event log and entities, its queue and its streams. Below the base:
//
//   ["run", runId]                      a run; its events have their order from ["last", runId]
//   ["event", runId, eventId]           an event; ["correlation", correlationId, eventId] names its run
//   ["step" or "wait", runId, id]       a step, a wait
//   ["hook", hookId]                    a live hook; ["token", token] and ["hook-of", runId, hookId] name it
//   ["created", runId, id]              a hook, wait or change of attributes was created with this id
//   ["message", messageId]              the number of the delivery that is due; ["key", key] names a message
//   ["stream", name, "chunk", n]        a chunk; ["stream", name] counts them
//
// One event is one transaction: its checks, the event, and the entities that it changes.

import { HookNotFoundError, WorkflowRunNotFoundError, WorkflowWorldError } from "@workflow/errors";
import {
  isTerminalStepEventType,
  SPEC_VERSION_CURRENT,
  stripEventDataRefs,
  validateUlidTimestamp,
} from "@workflow/world";
import type {
  CreateEventParams,
  CreateEventRequest,
  Event,
  EventResult,
  Hook,
  PaginatedResponse,
  PaginationOptions,
  ResolveData,
  RunCreatedEventRequest,
  Step,
  Storage,
  WorkflowRun,
  World,
} from "@workflow/world";
import type { KvFilter, KvKey, KvTransaction } from "openkv";
import { Database, type DatabaseOptions } from "./database.js";
import { EventWrite, ulid, withAttributes } from "./workflow-events.js";
import { queueOf } from "./workflow-queue.js";
import { streamerOf } from "./workflow-streams.js";

const NAME = "workflow";
/** Entries of a page without a limit, and the most of one. */
const PAGE_ENTRIES_DEFAULT = 100;
const PAGE_ENTRIES_MAX = 1000;
/** How often an event begins again because of concurrent ones of its run before it fails. */
const RETRIES_MAX = 100;
const CONCURRENCY_DEFAULT = 20;
/** That of `listen`. */
const CONCURRENCY_MAX = 1000;

/** Options of {@link createWorld}. */
export interface WorkflowWorldOptions extends DatabaseOptions {
  /**
   * The URL of the application, which the queue calls. Default: `WORKFLOW_LOCAL_BASE_URL`, else localhost
   * with the port of `PORT`, else 3000.
   */
  baseUrl?: string | undefined;
  /** Messages that this process handles at a time. Default: 20. */
  concurrency?: number | undefined;
}

/**
 * A World that keeps everything in one database. Any number of processes share it: each handles messages
 * after `start`, and reads the streams of all.
 *
 * Without options the database is that of `openKv`: `OPENKV_URL`, else `.openkv/kv.sqlite3`. So
 * `WORKFLOW_TARGET_WORLD=openkv/workflow` is enough.
 *
 * @example
 * const world = createWorld({ path: "workflows.sqlite3" });
 * await world.start();
 */
export function createWorld(options: WorkflowWorldOptions = {}): World & {
  start(): Promise<void>;
  close(): Promise<void>;
} {
  const { baseUrl, concurrency = CONCURRENCY_DEFAULT, ...rest } = options;
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > CONCURRENCY_MAX) {
    throw new TypeError(
      `openkv/${NAME}: concurrency must be an integer from 1 to ${CONCURRENCY_MAX}: received ${String(concurrency)}`,
    );
  }
  if (baseUrl !== undefined && !URL.canParse(baseUrl)) {
    throw new TypeError(
      `openkv/${NAME}: baseUrl must be a URL, as "http://localhost:3000": received ${String(baseUrl)}`,
    );
  }
  const database = new Database(rest, NAME);
  const queue = queueOf(database, baseUrl, concurrency);
  return {
    specVersion: SPEC_VERSION_CURRENT,
    ...queue.methods,
    ...storageOf(database),
    ...streamerOf(database),
    start: queue.start,
    async close() {
      await queue.stop();
      await database.close();
    },
  };
}

// Storage

function storageOf(database: Database): Storage {
  const at = (...parts: KvKey): KvKey => database.key(...parts);
  const read = async <T>(key: KvKey): Promise<T | null> =>
    (await (await database.kv()).get<T>(key)).value;

  /** A page of the values below a prefix; the cursor is the last part of the key of its last value. */
  const page = async <T>(
    prefix: KvKey,
    { limit = PAGE_ENTRIES_DEFAULT, cursor, sortOrder }: PaginationOptions,
    where?: KvFilter<any>,
  ): Promise<{ entries: { key: KvKey; value: T }[]; cursor: string | null; hasMore: boolean }> => {
    const most = Math.min(limit, PAGE_ENTRIES_MAX);
    const reverse = sortOrder === "desc";
    const selector =
      cursor === undefined
        ? { prefix }
        : reverse
          ? { prefix, end: [...prefix, cursor] }
          : { prefix, start: [...prefix, `${cursor}\0`] };
    const kv = await database.kv();
    const found = await kv
      .list<any>(selector, { limit: most + 1, reverse, ...(where && { where }) })
      .toArray();
    const entries = found.slice(0, most);
    const last = entries.at(-1)?.key.at(-1) as string | undefined;
    return { entries, cursor: last ?? cursor ?? null, hasMore: found.length > most };
  };
  const pageOf = async <T, R>(
    prefix: KvKey,
    pagination: PaginationOptions,
    shown: (value: T) => R,
    where?: KvFilter<any>,
  ): Promise<PaginatedResponse<R>> => {
    const { entries, cursor, hasMore } = await page<T>(prefix, pagination, where);
    return { data: entries.map(({ value }) => shown(value)), cursor, hasMore };
  };
  const eventsOf = (runId: string, pagination: PaginationOptions, resolve: ResolveData) =>
    pageOf<Event, Event>(
      at("event", runId),
      { ...pagination, sortOrder: pagination.sortOrder ?? "asc" },
      (event) => stripEventDataRefs(event, resolve) as Event,
    );

  const transaction = async <T>(run: (tx: KvTransaction) => Promise<T>): Promise<T> =>
    (await (await database.kv()).transaction(run, { maxRetries: RETRIES_MAX })).value;

  const create = async (
    given: string | null,
    data: CreateEventRequest | RunCreatedEventRequest,
    params: CreateEventParams = {},
  ): Promise<EventResult> => {
    const runId = given || (data.eventType === "run_created" ? `wrun_${ulid("")}` : null);
    if (runId === null) throw new WorkflowWorldError(`${data.eventType} needs a runId`);
    if (data.eventType === "run_created" && given) {
      const invalid = validateUlidTimestamp(runId, "wrun_");
      if (invalid) throw new WorkflowWorldError(invalid);
    }
    const resolve = params.resolveData ?? "all";
    const result = await transaction((tx) => new EventWrite(tx, at, runId, data).run());
    const preload = data.eventType === "run_started" && result.event && !params.skipPreload;
    const delta = isTerminalStepEventType(data.eventType) && typeof params.sinceCursor === "string";
    if (preload || delta) {
      const pagination: PaginationOptions = preload
        ? { limit: PAGE_ENTRIES_MAX }
        : { cursor: params.sinceCursor! };
      const { data: events, cursor, hasMore } = await eventsOf(runId, pagination, resolve);
      Object.assign(result, { events, cursor, hasMore });
    }
    if (result.event) result.event = stripEventDataRefs(result.event, resolve) as Event;
    return result;
  };

  return {
    runs: {
      async get(id: string, params?: { resolveData?: ResolveData }) {
        const run = await read<WorkflowRun>(at("run", id));
        if (run === null) throw new WorkflowRunNotFoundError(id);
        return withoutData(run, params?.resolveData);
      },
      list: (params?: Parameters<Storage["runs"]["list"]>[0]) =>
        pageOf<WorkflowRun, any>(
          at("run"),
          { ...params?.pagination, sortOrder: params?.pagination?.sortOrder ?? "desc" },
          (run) => withoutData(run, params?.resolveData),
          {
            ...(params?.workflowName && { workflowName: params.workflowName }),
            ...(params?.status && { status: params.status }),
          },
        ),
      experimentalSetAttributes: (runId, changes, options) =>
        transaction(async (tx) => {
          const { value: run } = await tx.get<WorkflowRun>(at("run", runId));
          if (run === null) throw new WorkflowRunNotFoundError(runId);
          const next = withAttributes(run, changes, options?.allowReservedAttributes === true);
          tx.set(at("run", runId), next);
          return { attributes: next.attributes };
        }),
    },
    steps: {
      async get(runId: string, stepId: string, params?: { resolveData?: ResolveData }) {
        const step = await read<Step>(at("step", runId, stepId));
        if (step === null) throw new WorkflowWorldError(`Step ${stepId} in run ${runId} not found`);
        return withoutData(step, params?.resolveData);
      },
      list: (params: Parameters<Storage["steps"]["list"]>[0]) =>
        pageOf<Step, any>(
          at("step", params.runId),
          { ...params.pagination, sortOrder: params.pagination?.sortOrder ?? "desc" },
          (step) => withoutData(step, params.resolveData),
        ),
    },
    events: {
      create: create as Storage["events"]["create"],
      async get(runId, eventId, params) {
        const event = await read<Event>(at("event", runId, eventId));
        if (event === null)
          throw new WorkflowWorldError(`Event ${eventId} in run ${runId} not found`);
        return stripEventDataRefs(event, params?.resolveData ?? "all") as Event;
      },
      list: (params) =>
        eventsOf(params.runId, params.pagination ?? {}, params.resolveData ?? "all"),
      async listByCorrelationId({ correlationId, pagination, resolveData = "all" }) {
        const found = await page<string>(at("correlation", correlationId), {
          ...pagination,
          sortOrder: pagination?.sortOrder ?? "asc",
        });
        const events = await Promise.all(
          found.entries.map(({ key, value: runId }) =>
            read<Event>(at("event", runId, key.at(-1)!)),
          ),
        );
        const data = events.map((event) => stripEventDataRefs(event!, resolveData) as Event);
        return { data, cursor: found.cursor, hasMore: found.hasMore };
      },
    },
    hooks: {
      async get(hookId, params) {
        const hook = await read<Hook>(at("hook", hookId));
        if (hook === null) throw new HookNotFoundError(hookId);
        return withoutMetadata(hook, params?.resolveData);
      },
      async getByToken(token, params) {
        const owner = await read<{ hookId: string }>(at("token", token));
        const hook = owner && (await read<Hook>(at("hook", owner.hookId)));
        if (hook === null) throw new HookNotFoundError(token);
        return withoutMetadata(hook, params?.resolveData);
      },
      list: (params) =>
        pageOf<Hook, Hook>(
          at("hook"),
          { ...params.pagination, sortOrder: params.pagination?.sortOrder ?? "asc" },
          (hook) => withoutMetadata(hook, params.resolveData),
          params.runId === undefined ? undefined : { runId: params.runId },
        ),
    },
  } as Storage;
}

function withoutData<T extends WorkflowRun | Step>(entity: T, resolve: ResolveData | undefined): T {
  return resolve === "none" ? { ...entity, input: undefined, output: undefined } : entity;
}

function withoutMetadata(hook: Hook, resolve: ResolveData | undefined): Hook {
  if (resolve !== "none") return hook;
  const { metadata: _, ...rest } = hook;
  return rest as Hook;
}
