// Duty: an event of a channel as OpenTelemetry names it: the kind and the name of its span, its attributes.

import { type Attributes, SpanKind } from "@opentelemetry/api";

/** An event of the channels (docs/tracing.md), with the members that some have. */
export interface Event {
  readonly operation: string;
  readonly database: string;
  readonly synchronous: boolean;
  readonly key?: readonly unknown[] | undefined;
  readonly keys?: readonly (readonly unknown[])[] | undefined;
  readonly prefix?: readonly unknown[] | undefined;
  readonly selector?: { readonly prefix?: readonly unknown[] | undefined } | undefined;
  readonly operations?: number | undefined;
  readonly queue?: string | undefined;
  readonly headers?: Record<string, string> | undefined;
  readonly messageId?: string | undefined;
  readonly result?: unknown;
  readonly error?: unknown;
  run?: <T>(operation: () => T) => T;
}

/** What is published of a request to a server. */
export interface RequestEvent {
  readonly headers: Record<string, string>;
}

const SYSTEM = "openkv";
/** The kind of spans of queues, and the type of the operation, by the operation. */
const MESSAGING: Readonly<Record<string, readonly [SpanKind, string]>> = {
  create: [SpanKind.PRODUCER, "create"],
  enqueue: [SpanKind.PRODUCER, "send"],
  receive: [SpanKind.CLIENT, "receive"],
  process: [SpanKind.CONSUMER, "process"],
};
const URL_START = /^[a-z]+:\/\//i;
const HTTP_URL = /^https?:\/\//i;

/** Whether the database is behind a URL of a server, to which its requests go. */
export function isRemote({ database }: Event): boolean {
  return HTTP_URL.test(database);
}

export function kindOf(event: Event): SpanKind {
  return MESSAGING[event.operation]?.[0] ?? SpanKind.CLIENT;
}

/** The name of the span: the operation and what it is on, which has few values. */
export function nameOf(event: Event, attributes: Attributes): string {
  const target =
    event.queue ?? attributes["db.collection.name"] ?? lastPart(attributes["db.namespace"]);
  return target ? `${event.operation} ${target}` : event.operation;
}

export function attributesOf(
  event: Event,
  collection: ((key: readonly unknown[]) => string | undefined) | undefined,
): Attributes {
  const { namespace, server } = placeOf(event.database);
  const messaging = MESSAGING[event.operation];
  if (messaging !== undefined) {
    const name = event.queue ? { "messaging.destination.name": event.queue } : {};
    return {
      "messaging.system": SYSTEM,
      "messaging.operation.name": event.operation,
      "messaging.operation.type": messaging[1],
      ...name,
      ...server,
    };
  }
  const key = event.key ?? event.keys?.[0] ?? event.prefix ?? event.selector?.prefix;
  const named = key === undefined ? undefined : collection?.(key);
  const size = event.keys?.length ?? event.operations ?? 1;
  return {
    "db.system.name": SYSTEM,
    "db.operation.name": event.operation,
    "db.namespace": namespace,
    ...(named === undefined ? {} : { "db.collection.name": named }),
    ...(size > 1 ? { "db.operation.batch.size": size } : {}),
    ...server,
  };
}

/** The code of an error, or the name of its class. */
export function errorType(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (typeof code === "string") return code;
  return typeof name === "string" ? name : "_OTHER";
}

/** The name of a database, and the attributes of its server if it has a URL. */
function placeOf(database: string): { namespace: string; server: Attributes } {
  if (!URL_START.test(database) || !URL.canParse(database)) {
    return { namespace: database, server: {} };
  }
  const { hostname, port, pathname } = new URL(database);
  const at = port === "" ? {} : { "server.port": Number(port) };
  return { namespace: pathname.slice(1), server: { "server.address": hostname, ...at } };
}

/** The last part of a path. */
function lastPart(path: unknown): string {
  return (
    String(path ?? "")
      .split(/[\\/]/)
      .at(-1) ?? ""
  );
}
