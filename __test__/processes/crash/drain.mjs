// The end of a file: every message that was enqueued is handled, and nothing is left in the queue.

import { isDeepStrictEqual } from "node:util";

import { guard } from "../../kit/time.mjs";
import { KvU64 } from "../target.mjs";
import { HANDLED_KEY, doneKey, fill, plan } from "./plan.mjs";

/** Longer than the lock of a message whose consumer was killed, and its retry after that. */
const DRAIN_MS_MAX = 60_000;

/** Handles every message; notes lost, unknown and damaged ones as faults of the model. */
export async function drain(kv, model) {
  const waiting = new Set();
  for (const [id, certainty] of model.messages) {
    if (certainty === "must" && !model.handled.has(id)) waiting.add(id);
  }
  let settle;
  const empty = new Promise((resolve) => (settle = resolve));
  if (waiting.size === 0) settle();
  const handling = new Set();
  const listening = kv.listenQueue((message) => {
    const handled = handle(message).finally(() => handling.delete(handled));
    handling.add(handled);
    return handled;
  });
  listening.catch((error) => model.fault(`listenQueue was rejected: ${error}`));
  async function handle({ id, fill: content }) {
    if (!model.messages.has(id)) model.fault(`a message was delivered that nobody enqueued: ${id}`);
    else if (!isDeepStrictEqual(content, contentOf(model.seed, id)))
      model.fault(`message ${id} is damaged`);
    const key = doneKey(id);
    const commit = kv.atomic().check({ key, versionstamp: null }).set(key, true);
    await commit.mutate({ type: "sum", key: HANDLED_KEY, value: new KvU64(1n) }).commit();
    waiting.delete(id);
    if (waiting.size === 0) settle();
  }
  try {
    await guard(empty, DRAIN_MS_MAX, "the queue is drained");
  } catch {
    const first = [...waiting].slice(0, 5).join(" ");
    model.fault(`${waiting.size} messages were never delivered: ${first}`);
  }
  await Promise.allSettled(handling);
}

function contentOf(seed, id) {
  const [lane, n] = id.split("/");
  return fill(seed, lane, Number(n), -2, plan(seed, lane, Number(n)).message);
}
