// Duty: kv.metrics: what the database has counted, as an object or as Prometheus' text.

import { checkOptions, nameOf } from "./check.js";
import { Writer } from "./codec/writer.js";
import { CALL_METRICS } from "./native.js";
import { call } from "./call.js";
import type { Session } from "./session.js";
import type { KvMetrics } from "./types.js";

export async function metrics(session: Session, options: unknown): Promise<KvMetrics | string> {
  const { format = "object" } = checkOptions("kv.metrics", options, ["format", "signal"]);
  if (format !== "object" && format !== "prometheus") {
    const given = typeof format === "string" ? JSON.stringify(format) : nameOf(format);
    throw new TypeError(
      `kv.metrics: format must be "object" or "prometheus": received ${given}`,
    );
  }
  const frame = new Writer(1);
  frame.u8(format === "prometheus" ? 1 : 0);
  const text = (await call(session, CALL_METRICS, frame)).toString("utf8");
  return format === "prometheus" ? text : (JSON.parse(text) as KvMetrics);
}
