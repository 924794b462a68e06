// Duty: how programs use the types of the drivers; types.spec.mjs compiles it, by import, and usage.cts by
// require. Nothing runs it.

import { type } from "arktype";
import * as v from "valibot";
import * as z from "zod";
import type { BaseCheckpointSaver, BaseStore } from "@langchain/langgraph-checkpoint";
import type { World } from "@workflow/world";
import type { AbstractLevel } from "abstract-level";
import { betterAuth } from "better-auth";
import { Queue, Worker, setDefaultBackendFactory } from "bullmq";
import session from "express-session";
import { Keyv as Keyv6 } from "keyv-6";
import Keyv from "keyv";
import { openKv, type Kv } from "openkv";
import { OpenKvLevel } from "openkv/abstract-level";
import { openkvAdapter } from "openkv/better-auth";
import { openKvBackend, type OpenKvQueueBackend } from "openkv/bullmq";
import { OpenKvStore } from "openkv/keyv";
import { OpenKvMemoryStore, OpenKvSaver } from "openkv/langgraph";
import { RateLimiterOpenKv } from "openkv/rate-limiter";
import { OpenKvSessionStore } from "openkv/session";
import { faulty } from "openkv/testing";
import { createWorld } from "openkv/workflow";
import byDefault, { unstorageDriver } from "openkv/unstorage";
import type { RateLimiterRes, RateLimiterStoreAbstract } from "rate-limiter-flexible";
import { createStorage, type Driver } from "unstorage";

interface User {
  name: string;
}

const path = undefined as string | undefined;
const kv: Kv = await openKv(path);

export const level: AbstractLevel<Uint8Array, string, User> = new OpenKvLevel<string, User>({
  path,
  open: { history: "1h" },
  valueEncoding: "json",
});
export const user: User | undefined = await level.get("ada");
// @ts-expect-error: a key is a string.
await level.get(1);

const adapter = openkvAdapter({ kv });
betterAuth({ database: adapter });
await adapter.close();

const backend = openKvBackend(kv);
setDefaultBackendFactory(backend);
export const queue = new Queue("mail", { connection: {} }, backend);
export const ofQueue: OpenKvQueueBackend = queue.getBackend();
new Worker("mail", async ({ data }) => data, { connection: {} }, openKvBackend({ path }));
// @ts-expect-error: it is no option.
openKvBackend({ file: "a" });

new Keyv6({ store: new OpenKvStore({ kv }) });
new Keyv({ store: new OpenKvStore({ kv: openKv(), base: ["cache", 1] }) });

export const saver: BaseCheckpointSaver = new OpenKvSaver({ kv });
export const memories: BaseStore = new OpenKvMemoryStore({ kv, fields: ["text"] });
// @ts-expect-error: fields are texts.
new OpenKvMemoryStore({ fields: [1] });

const limiter: RateLimiterStoreAbstract = new RateLimiterOpenKv({ kv, points: 1, duration: 1 });
export const consumed: RateLimiterRes = await limiter.consume("a");
// @ts-expect-error: points are required.
new RateLimiterOpenKv({ kv, duration: 1 });

session({ secret: "a", store: new OpenKvSessionStore({ kv, ttl: 60 }) });

export const driver: Driver = unstorageDriver({ kv, ttl: 60 });
createStorage({ driver: byDefault({ path: ":memory:" }) });

export const world: World = createWorld({ kv, concurrency: 1 });

export const failing: Kv = faulty(kv, { seed: 1, conflicts: 0.1, latency: [1, 2] });
// @ts-expect-error: there is no such option.
faulty(kv, { conflict: 1 });

// Collections have the types of what their schemas take and return.
const people = {
  zod: kv.collection(["people"], {
    schema: z.object({ id: z.string(), age: z.number().default(18) }),
    id: "id",
  }),
  valibot: kv.collection(["people"], {
    schema: v.object({ id: v.string(), age: v.optional(v.number(), 18) }),
    id: "id",
  }),
  arktype: kv.collection(["people"], {
    schema: type({ id: "string", age: "number = 18" }),
    id: "id",
  }),
};
for (const each of [people.zod, people.valibot, people.arktype]) {
  const { id, value } = await each.insert({ id: "ada" });
  console.log(id satisfies string, value.age satisfies number);
  // @ts-expect-error: an id is a text.
  await each.insert({ id: 1 });
}
