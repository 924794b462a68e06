// Duty: the backend that BullMQ's queues, workers, events and flows take, and the checks of what they are given.

import * as bullmq from "bullmq";
import type { BackendFactory } from "bullmq";
import type { Kv } from "openkv";
import { OpenKvQueueBackend } from "./bullmq-backend.js";
import { SharedPlace } from "./bullmq-place.js";
import type { DatabaseOptions } from "./database.js";

export { OpenKvQueueBackend };

/** Options of {@link openKvBackend}: where the database is. */
export interface OpenKvBackendOptions extends DatabaseOptions {}

/** Options of a connection to Redis, which say where it is. */
const REDIS_OPTIONS = ["host", "port", "url", "path", "sentinels", "db", "username", "password"];

/**
 * The backend for queues in a database of openkv: an open handle, which BullMQ does not close, or where to open
 * one. Give it to each Queue, Worker, QueueEvents and FlowProducer as the last argument, or to all of a process
 * by `setDefaultBackendFactory`. A `connection`, which BullMQ asks for, is `{}`.
 *
 * @throws TypeError for BullMQ before version 6, and for a `connection` that says where a Redis is.
 *
 * @example
 * const backend = openKvBackend(await openKv("jobs.sqlite3", { limits: "wide" }));
 * const queue = new Queue("mail", { connection: {} }, backend);
 */
export function openKvBackend(
  database: Kv | Promise<Kv> | OpenKvBackendOptions = {},
): BackendFactory<OpenKvQueueBackend, object> {
  if (!("setDefaultBackendFactory" in bullmq)) {
    throw new TypeError(
      "openkv/bullmq is for BullMQ 6, and an older one is installed: install bullmq@6",
    );
  }
  const shared = new SharedPlace(database);
  return (name, opts, options = {}) => {
    refuseRedis(opts.connection);
    const worker = (opts as { name?: string }).name;
    const suffix = options.withBlockingConnection
      ? worker === undefined
        ? ""
        : `:w:${worker}`
      : options.blocking
        ? ":qe"
        : null;
    return new OpenKvQueueBackend(shared, name, opts, suffix);
  };
}

function refuseRedis(connection: unknown): void {
  const isText = typeof connection === "string";
  const given =
    connection !== null && typeof connection === "object"
      ? REDIS_OPTIONS.find((option) => Object.hasOwn(connection, option))
      : undefined;
  if (!isText && given === undefined) return;
  throw new TypeError(
    `openkv/bullmq: connection ${isText ? "is a URL" : `has ${given}`}, which says where a Redis is. ` +
      "The database is given to openKvBackend: pass connection: {}",
  );
}
