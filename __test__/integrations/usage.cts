// Duty: the types of the drivers in a CommonJS module; types.spec.mjs compiles it. Nothing runs it.

import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import session = require("express-session");
import { type Kv, openKv } from "openkv";
import { OpenKvLevel } from "openkv/abstract-level";
import { OpenKvStore } from "openkv/keyv";
import { OpenKvSaver } from "openkv/langgraph";
import { RateLimiterOpenKv } from "openkv/rate-limiter";
import { OpenKvSessionStore } from "openkv/session";
import { faulty } from "openkv/testing";
import { unstorageDriver } from "openkv/unstorage";
import type { Driver } from "unstorage";

export async function main(): Promise<string | undefined> {
  const kv: Kv = await openKv();
  const level = new OpenKvLevel({ kv });
  const saver: BaseCheckpointSaver = new OpenKvSaver({ kv });
  const driver: Driver = unstorageDriver({ kv });
  session({ secret: "a", store: new OpenKvSessionStore({ kv }) });
  const { remainingPoints } = await new RateLimiterOpenKv({ kv, points: 1, duration: 1 }).consume(1);
  const value: string | undefined = await new OpenKvStore({ kv }).get<string>("a");
  await faulty(kv, { latency: 1 }).close();
  return value ?? (await level.get(`${driver.name} ${saver.serde} ${remainingPoints}`));
}
