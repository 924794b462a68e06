// Duty: the queue of a World. A message is handled by a request to the application, whose routes the Workflow
// SDK has built; its answer ends the message, or asks for another delivery later.
//
// A later delivery is a new message of the queue of openkv with the same id of the World and the next number.
// ["message", id] has the number that is due: a process that dies between the two leaves one successor.

import * as http from "node:http";
import * as https from "node:https";
import { types } from "node:util";
import { parseQueueName } from "@workflow/world";
import type { MessageId, Queue, QueueOptions, ValidQueueName } from "@workflow/world";
import type { Kv } from "openkv";
import type { Database } from "./database.js";
import { keyPart } from "./key-part.js";
import { ulid } from "./workflow-events.js";

const ROUTE = "/.well-known/workflow/v1";
const PORT_DEFAULT = 3000;
const SECOND_MS = 1000;
/** A delivery that fails is repeated after this time, each further one after twice the time, up to the most. */
const RETRY_MS_FIRST = 1000;
const RETRY_MS_MAX = 60_000;
/** The longest delay of a message. After a longer sleep the runtime asks for the rest. */
const DELAY_MS_MAX = 30 * 24 * 60 * 60 * SECOND_MS;
/** How long an idempotency key and the number of a delivery are kept at most. */
const MESSAGE_KEPT_MS = 2 * DELAY_MS_MAX;
/** The waiting times after the death of a process that handles a message. */
const BACKOFF_MS = [100, 1000, 5000, 30_000, 60_000];

/** What the queue of openkv carries. */
interface Delivery {
  id: string;
  queueName: ValidQueueName;
  /** Deliveries that have reached the application, this one included. */
  attempt: number;
  /** Deliveries before this one, those included that did not reach the application. */
  number: number;
  body: string;
  headers: Record<string, string>;
  idempotencyKey: string | null;
}

/** The listening of this process, from the opening of the database until `stop` or an error. */
interface Listening {
  stop: AbortController;
  started: Promise<void>;
  ended: Promise<void>;
}

/** The methods of a World's queue, and the listening of this process. */
export interface WorldQueue {
  methods: Queue;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function queueOf(
  database: Database,
  baseUrl: string | undefined,
  concurrency: number,
): WorldQueue {
  const queueName = database.base.map(String).join("/");
  let listening: Listening | null = null;

  const enqueue = async (delivery: Delivery, delayMs: number): Promise<string> => {
    const kv = await database.kv();
    const { idempotencyKey: key, id } = delivery;
    const options = {
      queue: queueName,
      delay: Math.min(delayMs, DELAY_MS_MAX),
      backoffSchedule: BACKOFF_MS,
    };
    if (key === null) {
      await kv.atomic().enqueue(delivery, options).commit();
      return id;
    }
    for (;;) {
      const named = await kv.get<string>(keyOf(database, key));
      if (named.value !== null) return named.value;
      const { ok } = await kv
        .atomic()
        .check(named)
        .set(named.key, id, { expireIn: MESSAGE_KEPT_MS })
        .enqueue(delivery, options)
        .commit();
      if (ok) return id;
    }
  };

  /** Replaces a delivery by the next one, unless an earlier attempt of this message has. */
  const again = async (
    kv: Kv,
    delivery: Delivery,
    reached: boolean,
    delayMs: number,
  ): Promise<void> => {
    const number = delivery.number + 1;
    const next = { ...delivery, number, attempt: delivery.attempt + (reached ? 1 : 0) };
    const due = await kv.get<number>(database.key("message", delivery.id));
    if ((due.value ?? 0) >= number) return;
    await kv
      .atomic()
      .check(due)
      .set(due.key, number, { expireIn: MESSAGE_KEPT_MS })
      .enqueue(next, {
        queue: queueName,
        delay: Math.min(delayMs, DELAY_MS_MAX),
        backoffSchedule: BACKOFF_MS,
      })
      .commit();
  };

  const handle = async (delivery: Delivery): Promise<void> => {
    const kv = await database.kv();
    const due = await kv.get<number>(database.key("message", delivery.id));
    if ((due.value ?? 0) > delivery.number) return;
    let answer: { status: number; body: string };
    try {
      answer = await post(urlOf(delivery.queueName, baseUrl), delivery);
    } catch (error) {
      warn(delivery, String(error));
      return await again(kv, delivery, false, retryMs(delivery));
    }
    if (answer.status < 200 || answer.status > 299) {
      warn(delivery, `HTTP ${answer.status}: ${answer.body}`);
      return await again(kv, delivery, true, retryMs(delivery));
    }
    const seconds = timeoutOf(answer.body);
    if (seconds !== null) return await again(kv, delivery, true, seconds * SECOND_MS);
    const done = kv.atomic().delete(due.key);
    if (delivery.idempotencyKey !== null) done.delete(keyOf(database, delivery.idempotencyKey));
    await done.commit();
  };

  const listen = (): Listening => {
    const stop = new AbortController();
    const { signal } = stop;
    const opening = database.kv();
    const run = async (): Promise<void> => {
      const kv = await opening;
      if (signal.aborted) return;
      await kv
        .queue<Delivery>(queueName)
        .listen(handle, { concurrency, signal })
        .catch((error) => console.error("[openkv/workflow] the queue has stopped:", error));
    };
    const ended = run()
      // `started` rejects with it.
      .catch(() => {})
      .finally(() => {
        if (listening === one) listening = null;
      });
    const one: Listening = { stop, started: opening.then(() => {}), ended };
    return one;
  };

  return {
    methods: {
      getDeploymentId: async () => process.env["WORKFLOW_DEPLOYMENT_ID"] ?? "openkv",
      async queue(name, message, options: QueueOptions = {}) {
        parseQueueName(name);
        const delivery: Delivery = {
          id: `msg_${ulid("")}`,
          queueName: name,
          attempt: 1,
          number: 0,
          body: JSON.stringify(message, toJson),
          headers: options.headers ?? {},
          idempotencyKey: options.idempotencyKey ?? null,
        };
        const delayMs = (options.delaySeconds ?? 0) * SECOND_MS;
        return { messageId: (await enqueue(delivery, delayMs)) as MessageId };
      },
      createQueueHandler(prefix, handler) {
        return async (request) => {
          const queueName = request.headers.get("x-vqs-queue-name") as ValidQueueName | null;
          const messageId = request.headers.get("x-vqs-message-id") as MessageId | null;
          const attempt = Number(request.headers.get("x-vqs-message-attempt"));
          if (!queueName?.startsWith(prefix) || !messageId || !(attempt > 0)) {
            return Response.json({ error: `Not a message of ${prefix}` }, { status: 400 });
          }
          try {
            const message: unknown = JSON.parse(await request.text(), fromJson);
            const result = await handler(message, { attempt, queueName, messageId });
            return Response.json(
              typeof result?.timeoutSeconds === "number"
                ? { timeoutSeconds: result.timeoutSeconds }
                : { ok: true },
            );
          } catch (error) {
            return Response.json(String(error), { status: 500 });
          }
        };
      },
    },
    start() {
      listening ??= listen();
      return listening.started;
    },
    async stop() {
      const ending = listening;
      listening = null;
      ending?.stop.abort();
      await ending?.ended;
    },
  };
}

function keyOf(database: Database, idempotencyKey: string): ReturnType<Database["key"]> {
  return database.key("key", keyPart(idempotencyKey));
}

function retryMs({ number }: Delivery): number {
  return Math.min(RETRY_MS_FIRST * 2 ** number, RETRY_MS_MAX);
}

/** Tells of a delivery that will be repeated. */
function warn({ id, queueName, attempt }: Delivery, reason: string): void {
  console.error(`[openkv/workflow] ${queueName} ${id}, attempt ${attempt}, failed: ${reason}`);
}

function urlOf(queueName: ValidQueueName, baseUrl: string | undefined): URL {
  const { WORKFLOW_LOCAL_BASE_URL: fromEnv, PORT } = process.env;
  const url = new URL(baseUrl ?? fromEnv ?? `http://localhost:${PORT ?? PORT_DEFAULT}`);
  const kind = parseQueueName(queueName).kind === "workflow" ? "flow" : "step";
  url.pathname = `${url.pathname.replace(/\/+$/, "")}${ROUTE}/${kind}`;
  return url;
}

/** Posts without a time limit: the answer comes when the steps of the message have ended. */
function post(
  url: URL,
  { body, headers, queueName, id, attempt }: Delivery,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? https : http).request(
      url,
      {
        method: "POST",
        headers: {
          ...headers,
          "content-type": "application/json",
          "x-vqs-queue-name": queueName,
          "x-vqs-message-id": id,
          "x-vqs-message-attempt": String(attempt),
        },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part: string) => (text += part));
        response.on("error", reject);
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text }));
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

/** The seconds after which the handler asks for another delivery, or null. */
function timeoutOf(body: string): number | null {
  try {
    const { timeoutSeconds } = JSON.parse(body) as { timeoutSeconds?: unknown };
    return typeof timeoutSeconds === "number" && timeoutSeconds >= 0 ? timeoutSeconds : null;
  } catch {
    return null;
  }
}

/** JSON of a message: bytes, which it may have, are base64 in an object. */
function toJson(_name: string, value: unknown): unknown {
  if (!types.isUint8Array(value)) return value;
  return { __type: "Uint8Array", data: Buffer.from(value).toString("base64") };
}

function fromJson(_name: string, value: any): unknown {
  const bytes = value !== null && typeof value === "object" && value.__type === "Uint8Array";
  return bytes ? new Uint8Array(Buffer.from(value.data, "base64")) : value;
}
