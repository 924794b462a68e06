// Duty: the streams of a World. Chunks have numbers, so that a reader begins at any of them. Readers in all
// processes wait on the entry that counts the chunks.

import type { GetChunksOptions, Streamer } from "@workflow/world";
import type { KvKey } from "openkv";
import type { Database } from "./database.js";

const RETRIES_MAX = 100;
/** Chunks, and about the bytes, of one commit; a larger chunk is alone in its commit. */
const WRITE_CHUNKS_MAX = 100;
const WRITE_BYTES_MAX = 256 * 1024;
/** Chunks of a page without a limit, of the largest page, and that a reader reads at a time. */
const PAGE_CHUNKS_DEFAULT = 100;
const PAGE_CHUNKS_MAX = 1000;
const READ_CHUNKS = 32;

/** The entry ["stream", name]. */
interface Head {
  chunks: number;
  done: boolean;
}
const EMPTY: Head = { chunks: 0, done: false };

/** A chunk, or the end, that waits for its commit. */
interface Pending {
  runId: string;
  /** `null`: the end of the stream. */
  chunk: Uint8Array | null;
  resolve(): void;
  reject(error: unknown): void;
}

export function streamerOf(database: Database): Streamer {
  const headKey = (name: string): KvKey => database.key("stream", name);
  const chunksKey = (name: string): KvKey => database.key("stream", name, "chunk");
  /** The writes of each stream in the order of their calls. The first ones are being committed. */
  const waiting = new Map<string, Pending[]>();

  const write = (
    runId: string | Promise<string>,
    name: string,
    chunks: readonly (Uint8Array | string | null)[],
  ): Promise<unknown> => {
    let queue = waiting.get(name);
    const idle = queue === undefined;
    if (queue === undefined) waiting.set(name, (queue = []));
    const added = chunks.map(
      (chunk) =>
        new Promise<void>((resolve, reject) => {
          const bytes = typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
          queue.push({
            runId: runId as string,
            chunk: bytes && Uint8Array.from(bytes),
            resolve,
            reject,
          });
        }),
    );
    if (idle) void flush(name, queue);
    return Promise.all(added);
  };

  const flush = async (name: string, queue: Pending[]): Promise<void> => {
    while (queue.length > 0) {
      const batch = batchOf(queue);
      try {
        await addChunks(name, batch);
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
      queue.splice(0, batch.length);
    }
    waiting.delete(name);
  };

  const addChunks = async (name: string, batch: Pending[]): Promise<void> => {
    const runIds = new Set(await Promise.all(batch.map(({ runId }) => runId)));
    const kv = await database.kv();
    await kv.transaction(
      async (tx) => {
        let { chunks, done } = (await tx.get<Head>(headKey(name))).value ?? EMPTY;
        for (const { chunk } of batch) {
          if (chunk === null) done = true;
          else tx.set([...chunksKey(name), chunks++], chunk);
        }
        tx.set(headKey(name), { chunks, done });
        for (const runId of runIds) tx.set(database.key("run-stream", runId, name), true);
      },
      { maxRetries: RETRIES_MAX },
    );
  };

  const headOf = async (name: string): Promise<Head> =>
    (await (await database.kv()).get<Head>(headKey(name))).value ?? EMPTY;

  const read = async (name: string, from: number, to: number): Promise<Uint8Array[]> => {
    const prefix = chunksKey(name);
    const selector = { start: [...prefix, from], end: [...prefix, to] };
    const kv = await database.kv();
    return (await kv.list<Uint8Array>(selector).toArray()).map(({ value }) => value);
  };

  async function* follow(
    name: string,
    start: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const kv = await database.kv();
    let next: number | null = null;
    for await (const [{ value }] of kv.watch<[Head]>([headKey(name)], { signal })) {
      const { chunks, done } = value ?? EMPTY;
      next ??= start < 0 ? Math.max(0, chunks + start) : start;
      while (next < chunks) {
        const found = await read(name, next, Math.min(chunks, next + READ_CHUNKS));
        next += found.length;
        yield* found.filter(({ length }) => length > 0);
      }
      if (done) return;
    }
    // A stream that only seems to have ended would be lost data to its reader.
    if (!signal.aborted)
      throw new Error(`openkv/workflow: the database was closed, stream ${name} has not ended`);
  }

  return {
    streams: {
      async write(runId, name, chunk) {
        await write(runId, name, [chunk]);
      },
      async writeMulti(runId, name, chunks) {
        await write(runId, name, chunks);
      },
      async close(runId, name) {
        await write(runId, name, [null]);
      },
      async get(_runId, name, start = 0) {
        const ended = new AbortController();
        const chunks = follow(name, start, ended.signal);
        return new ReadableStream<Uint8Array>({
          async pull(controller) {
            const { done, value } = await chunks.next();
            if (ended.signal.aborted) return;
            if (done) controller.close();
            else controller.enqueue(value);
          },
          cancel() {
            ended.abort();
          },
        });
      },
      async list(runId) {
        const kv = await database.kv();
        const found = await kv
          .list({ prefix: database.key("run-stream", runId) }, { keysOnly: true })
          .toArray();
        return found.map(({ key }) => key[key.length - 1] as string);
      },
      async getChunks(_runId, name, { limit, cursor }: GetChunksOptions = {}) {
        const { chunks, done } = await headOf(name);
        const from = cursor === undefined ? 0 : Number(cursor);
        const most = Math.min(limit ?? PAGE_CHUNKS_DEFAULT, PAGE_CHUNKS_MAX);
        const found = await read(name, from, Math.min(chunks, from + most));
        const next = from + found.length;
        const hasMore = next < chunks;
        return {
          data: found.map((data, at) => ({ index: from + at, data })),
          cursor: hasMore ? String(next) : null,
          hasMore,
          done,
        };
      },
      async getInfo(_runId, name) {
        const { chunks, done } = await headOf(name);
        return { tailIndex: chunks - 1, done };
      },
    },
  };
}

/** The first writes of a queue that fit into one commit. */
function batchOf(queue: Pending[]): Pending[] {
  let bytes = 0;
  const fit = queue
    .slice(0, WRITE_CHUNKS_MAX)
    .findIndex(({ chunk }, at) => (bytes += chunk?.length ?? 0) > WRITE_BYTES_MAX && at > 0);
  return queue.slice(0, fit === -1 ? WRITE_CHUNKS_MAX : fit);
}
