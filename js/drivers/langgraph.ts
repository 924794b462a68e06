// Duty: a checkpointer of LangGraph, and the entry that also has the store. A checkpoint is the entry
// [...base, "threads", thread, namespace, id], its writes extend it by [task, index]: one range has both.
// The value of a channel is stored once, with the checkpoint that has changed it, as [...base, "threads",
// thread, namespace, false, channel, version, id]. Versions of two branches of a thread may be equal, so a
// checkpoint says whose value each of its channels has.

import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  copyCheckpoint,
  getCheckpointId,
  maxChannelVersion,
  TASKS,
  WRITES_IDX_MAP,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { Buffer } from "node:buffer";
import type { Kv, KvKey } from "openkv";
import { Database, type DatabaseOptions } from "./database.js";

export { OpenKvMemoryStore, type OpenKvMemoryStoreOptions } from "./langgraph-store.js";

const NAME = "langgraph";
const THREADS = "threads";

/** What a serializer has made: a type, and bytes or text. */
type Typed = [string, Uint8Array | string];

interface StoredCheckpoint {
  /** Without the values of `channels`. */
  checkpoint: Typed;
  metadata: Typed;
  parent: string | null;
  /** Of each channel its version, and the checkpoint that its value is stored with; null: it has none. */
  channels: Map<string, [version: string | number, owner: string | null]>;
}

interface StoredWrite {
  channel: string;
  value: Typed;
  path: string;
}

/** The name of a checkpoint. */
type Place = [thread: string, namespace: string, id: string];

/** Options of {@link OpenKvSaver}. */
export interface OpenKvSaverOptions extends DatabaseOptions {
  /** How values become bytes. Default: LangGraph's own. */
  serde?: SerializerProtocol | undefined;
}

/**
 * A checkpointer of LangGraph: threads outlive the process, in a file or behind a URL. `close` closes the
 * handle if the checkpointer has opened it.
 *
 * @example
 * const graph = builder.compile({ checkpointer: new OpenKvSaver({ path: "agent.sqlite3" }) });
 */
export class OpenKvSaver extends BaseCheckpointSaver {
  readonly #database: Database;

  constructor(options: OpenKvSaverOptions = {}) {
    super(options.serde);
    this.#database = new Database(options, NAME);
  }

  /** Closes the handle if the checkpointer has opened it. */
  async close(): Promise<void> {
    await this.#database.close();
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { checkpoint_ns: namespace = "" } = config.configurable ?? {};
    const thread = threadOf(config);
    if (thread === undefined) return undefined;
    const kv = await this.#database.kv();
    const id = getCheckpointId(config);
    if (id) return await this.#read(kv, [thread, namespace, id], config);
    const prefix = this.#key(thread, namespace);
    const latest = { reverse: true, limit: 1, depth: 1, keysOnly: true } as const;
    for await (const { key } of kv.list({ prefix }, latest)) {
      return await this.#read(kv, [thread, namespace, key.at(-1) as string]);
    }
    return undefined;
  }

  async *list(
    config: RunnableConfig,
    options: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { before, limit = Number.POSITIVE_INFINITY, filter } = options;
    const wanted: Record<string, unknown> = filter ?? {};
    let left = limit;
    if (left <= 0) return;
    const kv = await this.#database.kv();
    for await (const place of this.#places(kv, config, before?.configurable?.["checkpoint_id"])) {
      const tuple = await this.#read(kv, place);
      const metadata = tuple?.metadata as Record<string, unknown> | undefined;
      const isWanted = Object.entries(wanted).every(([name, value]) => metadata?.[name] === value);
      if (tuple === undefined || !isWanted) continue;
      yield tuple;
      if (--left <= 0) return;
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions?: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread, namespace } = placeOf(config, "put a checkpoint");
    const parent: string | null = config.configurable?.["checkpoint_id"] ?? null;
    const kv = await this.#database.kv();
    const place: Place = [thread, namespace, checkpoint.id];
    const atomic = kv.atomic();
    const { channels, rest } = await this.#channels(kv, place, parent, checkpoint, newVersions);
    for (const [channel, [version, owner]] of channels) {
      if (owner !== checkpoint.id) continue;
      const value = await this.serde.dumpsTyped(checkpoint.channel_values[channel]);
      atomic.set(this.#valueKey(place, channel, version, owner), value);
    }
    const stored: StoredCheckpoint = {
      checkpoint: await this.serde.dumpsTyped({
        ...copyCheckpoint(checkpoint),
        channel_values: rest,
      }),
      metadata: await this.serde.dumpsTyped(metadata),
      parent,
      channels,
    };
    await atomic.set(this.#key(...place), stored).commit();
    return configOf([thread, namespace, checkpoint.id]);
  }

  async putWrites(
    config: RunnableConfig,
    writes: PendingWrite[],
    task: string,
    path: string = "",
  ): Promise<void> {
    const { thread, namespace } = placeOf(config, "put writes");
    const id = config.configurable?.["checkpoint_id"];
    if (id === undefined) {
      throw new Error(`openkv/${NAME}: to put writes, the config needs a "checkpoint_id"`);
    }
    const prefix = this.#key(thread, namespace, id, task);
    const stored = await Promise.all(
      writes.map(
        async ([channel, value], at): Promise<[number, StoredWrite]> => [
          WRITES_IDX_MAP[channel] ?? at,
          { channel, value: await this.serde.dumpsTyped(value), path },
        ],
      ),
    );
    await (await this.#database.kv()).transaction(async (tx) => {
      const present = new Set<unknown>();
      for await (const { key } of tx.list({ prefix })) present.add(key.at(-1));
      for (const [at, write] of stored) {
        // A task that runs again keeps its writes; an error, an interrupt and so on is replaced.
        if (at < 0 || !present.has(at)) tx.set([...prefix, at], write);
      }
    });
  }

  async deleteThread(thread: string): Promise<void> {
    requireText(thread);
    await (await this.#database.kv()).deleteMany({ prefix: this.#key(thread) });
  }

  #key(...parts: KvKey): KvKey {
    return this.#database.key(THREADS, ...parts);
  }

  #valueKey([thread, namespace]: Place, channel: string, ...more: KvKey): KvKey {
    return this.#key(thread, namespace, false, channel, ...more);
  }

  /** Whose value each channel of a new checkpoint has, and the values of channels without a version. */
  async #channels(
    kv: Kv,
    place: Place,
    parent: string | null,
    { id, channel_values: values = {}, channel_versions: versions = {} }: Checkpoint,
    changed: ChannelVersions = versions,
  ): Promise<{ channels: StoredCheckpoint["channels"]; rest: Record<string, unknown> }> {
    const [thread, namespace] = place;
    const inherited =
      parent === null
        ? undefined
        : (await kv.get<StoredCheckpoint>(this.#key(thread, namespace, parent))).value?.channels;
    const channels: StoredCheckpoint["channels"] = new Map();
    for (const [channel, version] of Object.entries(versions)) {
      const before = inherited?.get(channel);
      if (Object.hasOwn(changed, channel)) {
        channels.set(channel, [version, Object.hasOwn(values, channel) ? id : null]);
      } else if (before?.[0] === version) {
        channels.set(channel, before);
      } else {
        const owner = await this.#ownerOf(kv, place, channel, version, values[channel]);
        channels.set(channel, [version, owner]);
      }
    }
    const rest = Object.entries(values).filter(([channel]) => !channels.has(channel));
    return { channels, rest: Object.fromEntries(rest) };
  }

  /**
   * Which checkpoint has stored this value of a channel that the parent does not have: a copy has another
   * parent than its original. None, if this version has never been stored; the checkpoint itself, if it was
   * stored with other values, in other branches.
   */
  async #ownerOf(
    kv: Kv,
    place: Place,
    channel: string,
    version: string | number,
    value: unknown,
  ): Promise<string | null> {
    if (value === undefined) return null;
    const [type, data] = await this.serde.dumpsTyped(value);
    let owner: string | null = null;
    for await (const entry of kv.list<Typed>({ prefix: this.#valueKey(place, channel, version) })) {
      const [otherType, other] = entry.value;
      if (otherType === type && Buffer.compare(Buffer.from(other), Buffer.from(data)) === 0) {
        return entry.key.at(-1) as string;
      }
      owner = place[2];
    }
    return owner;
  }

  /** The checkpoints that a config covers, the newest first, without those from `before` on. */
  async *#places(
    kv: Kv,
    config: RunnableConfig,
    before: string | undefined,
  ): AsyncGenerator<Place> {
    const { checkpoint_ns: namespace, checkpoint_id: id } = config.configurable ?? {};
    const thread = threadOf(config);
    const matches = (place: Place): boolean =>
      (namespace === undefined || place[1] === namespace) &&
      (id === undefined || id === "" || place[2] === id) &&
      (before === undefined || place[2] < before);
    const length = this.#key().length;
    const within = [thread, namespace].filter((part) => part !== undefined);
    const known = thread === undefined ? [] : within;
    const prefix = this.#key(...known);
    const options = { keysOnly: true, reverse: true, depth: 3 - known.length } as const;
    const found: Place[] = [];
    for await (const { key } of kv.list({ prefix }, options)) {
      const place = key.slice(length) as unknown as Place;
      if (place.length !== 3 || !matches(place)) continue;
      if (known.length === 2) yield place;
      else found.push(place);
    }
    yield* found.sort(([, , a], [, , b]) => (a < b ? 1 : a > b ? -1 : 0));
  }

  /** A checkpoint with its writes, in one read. */
  async #read(
    kv: Kv,
    place: Place,
    config: RunnableConfig = configOf(place),
  ): Promise<CheckpointTuple | undefined> {
    const key = this.#key(...place);
    let stored: StoredCheckpoint | undefined;
    const writes: [task: string, at: number, write: StoredWrite][] = [];
    // Tasks are strings, which `true` is behind.
    for await (const entry of kv.list<any>({ start: key, end: [...key, true] })) {
      const [task, at] = entry.key.slice(key.length) as [string, number];
      if (task === undefined) stored = entry.value;
      else writes.push([task, at, entry.value]);
    }
    if (stored === undefined) return undefined;
    const checkpoint: Checkpoint = await this.#load(stored.checkpoint);
    const values = await this.#values(kv, place, stored.channels);
    checkpoint.channel_values = { ...checkpoint.channel_values, ...values };
    const [thread, namespace] = place;
    if (checkpoint.v < 4 && stored.parent !== null) {
      await this.#addPendingSends(kv, checkpoint, [thread, namespace, stored.parent]);
    }
    return {
      config,
      checkpoint,
      metadata: await this.#load(stored.metadata),
      pendingWrites: await this.#pendingWrites(writes),
      ...(stored.parent !== null && { parentConfig: configOf([thread, namespace, stored.parent]) }),
    };
  }

  async #values(
    kv: Kv,
    place: Place,
    channels: StoredCheckpoint["channels"],
  ): Promise<Record<string, unknown>> {
    const loaded = [...channels].map(async ([channel, [version, owner]]) => {
      if (owner === null) return [];
      const { value } = await kv.get<Typed>(this.#valueKey(place, channel, version, owner));
      return value === null ? [] : [[channel, await this.#load(value)] as const];
    });
    return Object.fromEntries((await Promise.all(loaded)).flat());
  }

  async #pendingWrites(
    writes: [task: string, at: number, write: StoredWrite][],
  ): Promise<CheckpointPendingWrite[]> {
    const sorted = writes.sort(
      ([taskA, atA, a], [taskB, atB, b]) =>
        byCodePoints(a.path, b.path) || byCodePoints(taskA, taskB) || atA - atB,
    );
    return await Promise.all(
      sorted.map(
        async ([task, , write]): Promise<CheckpointPendingWrite> => [
          task,
          write.channel,
          await this.#load(write.value),
        ],
      ),
    );
  }

  /** Checkpoints before version 4 had what was sent to tasks in the writes of their parent. */
  async #addPendingSends(kv: Kv, checkpoint: Checkpoint, parent: Place): Promise<void> {
    const sends: unknown[] = [];
    for await (const { value } of kv.list<StoredWrite>({ prefix: this.#key(...parent) })) {
      if (value.channel === TASKS) sends.push(await this.#load(value.value));
    }
    checkpoint.channel_values ??= {};
    checkpoint.channel_values[TASKS] = sends;
    checkpoint.channel_versions ??= {};
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  #load([type, data]: Typed): Promise<any> {
    return this.serde.loadsTyped(type, data);
  }
}

/** The thread of a config, if it names one. */
function threadOf({ configurable }: RunnableConfig): string | undefined {
  const thread: unknown = configurable?.["thread_id"];
  if (thread !== undefined) requireText(thread);
  return thread;
}

/** The number 1 is another key than the string "1". */
function requireText(thread: unknown): asserts thread is string {
  if (typeof thread === "string") return;
  throw new TypeError(
    `openkv/${NAME}: "thread_id" must be a string: received ${String(thread)}, a ${typeof thread}; give String(id)`,
  );
}

/** The thread and namespace of a config that writes. */
function placeOf(config: RunnableConfig, what: string): { thread: string; namespace: string } {
  const { checkpoint_ns: namespace = "" } = config.configurable ?? {};
  const thread = threadOf(config);
  if (thread === undefined) {
    throw new Error(
      `openkv/${NAME}: to ${what}, the config needs a "thread_id" in "configurable", as { configurable: { thread_id: "1" } }`,
    );
  }
  return { thread, namespace };
}

function configOf([thread_id, checkpoint_ns, checkpoint_id]: Place): RunnableConfig {
  return { configurable: { thread_id, checkpoint_ns, checkpoint_id } };
}

/** The order in which LangGraph applies writes: that of Python's strings. */
function byCodePoints(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
