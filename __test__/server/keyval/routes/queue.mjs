// Duty: the routes of the queue, as ../routes.mjs describes them.

import { EVENTS, save, error, text, number, entry } from "./steps.mjs";

/** A message that is dead. */
const DEAD = [
  [
    "POST",
    "/queue/enqueue",
    { value: { to: "Ada" }, options: { backoffSchedule: [] } },
    { ok: true, id: save("dead") },
  ],
  [
    "GET",
    "/queue/poll",
    undefined,
    { message: { id: save("taken"), value: { to: "Ada" }, attempts: 1 } },
  ],
  ["POST", "/queue/nack", { id: "$taken" }, { ok: true }],
];
const LETTER = {
  id: save("letter"),
  originalId: text,
  value: { to: "Ada" },
  errorMessage: "Max attempts exceeded",
  attempts: 1,
  originalCreatedAt: number,
  failedAt: number,
};
const NOT_FOUND = error(404, "Message not found in DLQ");

export const QUEUE = [
  {
    route: "POST /queue/enqueue",
    writes: true,
    takes:
      "`{value, options: {delay, backoffSchedule, keysIfUndelivered}}`; retries after 1, 5 and 10 s by default",
    answers: "`{ok, id}`",
    steps: [
      ["POST", "/queue/enqueue", { value: { to: "Ada" } }, { ok: true, id: text }],
      [
        "POST",
        "/queue/enqueue",
        {
          value: 1,
          options: { delay: 60_000, backoffSchedule: [10, 20.5], keysIfUndelivered: [["dead", 1]] },
        },
        { ok: true, id: text },
      ],
      [
        "POST",
        "/queue/enqueue",
        { value: 1, options: { backoffSchedule: "1s" } },
        error(400, /backoffSchedule must be an array of ms/),
      ],
      [
        "POST",
        "/queue/enqueue",
        { value: 1, options: { keysIfUndelivered: [1] } },
        error(400, /Key must be an array/),
      ],
    ],
  },
  {
    route: "GET /queue/poll",
    writes: true,
    takes: "",
    answers:
      "`{message: {id, value, attempts}}`, `null` without one. The message is locked for 30 s; its `id` contains the lock",
    steps: [
      ["GET", "/queue/poll", undefined, { message: null }],
      ["POST", "/queue/enqueue", { value: [1] }, { ok: true, id: text }],
      ["GET", "/queue/poll", undefined, { message: { id: text, value: [1], attempts: 1 } }],
      ["GET", "/queue/poll", undefined, { message: null }],
    ],
  },
  {
    route: "GET /queue/listen",
    writes: true,
    takes: "",
    answers:
      "server-sent events: `message`, whose data is that object, and `ping`. Up to 10 messages are delivered that are not settled",
    steps: [["GET", "/queue/listen", undefined, EVENTS]],
  },
  {
    route: "POST /queue/ack",
    writes: true,
    takes: "`{id}` of a message. That of `enqueue` deletes a message that was not taken",
    answers: "`{ok: true}`, also if the lock had expired",
    steps: [
      ["POST", "/queue/enqueue", { value: 1 }, { ok: true, id: text }],
      ["GET", "/queue/poll", undefined, { message: { id: save("one"), value: 1, attempts: 1 } }],
      ["POST", "/queue/ack", { id: "$one" }, { ok: true }],
      ["POST", "/queue/ack", { id: "$one" }, { ok: true }],
      ["POST", "/queue/enqueue", { value: 2 }, { ok: true, id: save("two") }],
      ["POST", "/queue/ack", { id: "$two" }, { ok: true }],
      ["GET", "/queue/stats", undefined, { pending: 0, processing: 0, dlq: 0, total: 0 }],
      ["POST", "/queue/ack", { id: "none" }, { ok: true }],
      ["POST", "/queue/ack", { id: 1 }, error(400, "id must be a non-empty string")],
      ["POST", "/queue/ack", { id: "" }, error(400, "id must be a non-empty string")],
    ],
  },
  {
    route: "POST /queue/nack",
    writes: true,
    takes: "`{id}` of a taken message",
    answers:
      "`{ok: true}`. The message is retried, or is dead: its value is stored under `keysIfUndelivered`",
    steps: [
      [
        "POST",
        "/queue/enqueue",
        { value: 7, options: { backoffSchedule: [], keysIfUndelivered: [["undelivered"]] } },
        { ok: true, id: text },
      ],
      ["GET", "/queue/poll", undefined, { message: { id: save("one"), value: 7, attempts: 1 } }],
      ["POST", "/queue/nack", { id: "$one" }, { ok: true }],
      ["GET", "/queue/stats", undefined, { pending: 0, processing: 0, dlq: 1, total: 1 }],
      ["GET", "/keys/undelivered", undefined, entry(["undelivered"], 7)],
      ["POST", "/queue/nack", { id: "none" }, { ok: true }],
      ["POST", "/queue/nack", { id: null }, error(400, "id must be a non-empty string")],
    ],
  },
  {
    route: "GET /queue/stats",
    takes: "",
    answers:
      "`{pending, processing, dlq, total}`; `pending` has the delayed messages, `total` the dead ones",
    steps: [
      ...DEAD,
      ["POST", "/queue/enqueue", { value: 1, options: { delay: 60_000 } }, { ok: true, id: text }],
      ["POST", "/queue/enqueue", { value: 2 }, { ok: true, id: text }],
      ["GET", "/queue/stats", undefined, { pending: 2, processing: 0, dlq: 1, total: 3 }],
    ],
  },
  {
    route: "GET /queue/dlq",
    takes: "`limit`, `offset`",
    answers:
      "an array of `{id, originalId, value, errorMessage, attempts, originalCreatedAt, failedAt}`, the newest first, times in ms",
    steps: [
      ["GET", "/queue/dlq", undefined, []],
      ...DEAD,
      [
        "POST",
        "/queue/enqueue",
        { value: 2, options: { backoffSchedule: [] } },
        { ok: true, id: text },
      ],
      ["GET", "/queue/poll", undefined, { message: { id: save("second"), value: 2, attempts: 1 } }],
      ["POST", "/queue/nack", { id: "$second" }, { ok: true }],
      ["GET", "/queue/dlq", undefined, [{ ...LETTER, value: 2 }, LETTER]],
      ["GET", "/queue/dlq?limit=1", undefined, [{ ...LETTER, value: 2 }]],
      ["GET", "/queue/dlq?limit=5&offset=1", undefined, [LETTER]],
      ["GET", "/queue/dlq?offset=2", undefined, []],
    ],
  },
  {
    route: "DELETE /queue/dlq",
    writes: true,
    takes: "",
    answers: "`{deletedCount}`",
    steps: [
      ...DEAD,
      ["DELETE", "/queue/dlq", undefined, { deletedCount: 1 }],
      ["GET", "/queue/dlq", undefined, []],
    ],
  },
  {
    route: "GET /queue/dlq/{id}",
    takes: "any id",
    answers: "the object, or 404 `Message not found in DLQ`",
    steps: [
      ...DEAD,
      ["GET", "/queue/dlq", undefined, [LETTER]],
      ["GET", "/queue/dlq/$letter", undefined, LETTER],
      ["GET", "/queue/dlq/none", undefined, NOT_FOUND],
      ["GET", "/queue/dlq/99999", undefined, NOT_FOUND],
    ],
  },
  {
    route: "DELETE /queue/dlq/{id}",
    writes: true,
    takes: "any id",
    answers: "`{ok: true}`, also if there is none",
    steps: [
      ...DEAD,
      ["GET", "/queue/dlq", undefined, [LETTER]],
      ["DELETE", "/queue/dlq/none", undefined, { ok: true }],
      ["DELETE", "/queue/dlq/$letter", undefined, { ok: true }],
      ["GET", "/queue/dlq", undefined, []],
    ],
  },
  {
    route: "POST /queue/dlq/{id}/requeue",
    writes: true,
    takes: "any id",
    answers: "`{ok: true, newId}`, or 404 `Message not found in DLQ`",
    steps: [
      ...DEAD,
      ["GET", "/queue/dlq", undefined, [LETTER]],
      ["POST", "/queue/dlq/none/requeue", undefined, NOT_FOUND],
      ["POST", "/queue/dlq/$letter/requeue", undefined, { ok: true, newId: text }],
      ["GET", "/queue/dlq", undefined, []],
      [
        "GET",
        "/queue/poll",
        undefined,
        { message: { id: text, value: { to: "Ada" }, attempts: 1 } },
      ],
    ],
  },
];
