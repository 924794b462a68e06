// Duty: openkv/otel with OpenTelemetry's own SDK: spans and metrics by the semantic conventions, and the context
// of an enqueue in the handler, in every place of a database.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { SpanKind, SpanStatusCode, context, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { openKv } from "openkv";
import { OpenKvInstrumentation, contextOf } from "openkv/otel";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { databases, end } from "./kit.mjs";

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());

const spans = new InMemorySpanExporter();
const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const exported = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: exported });
const meters = new MeterProvider({ readers: [reader] });
const tracer = tracers.getTracer("a program");

const instrumentation = new OpenKvInstrumentation({
  enabled: false,
  collection: ([first]) => (typeof first === "string" ? first : undefined),
});
instrumentation.setTracerProvider(tracers);
instrumentation.setMeterProvider(meters);

afterAll(end);

/** The finished spans of openkv with this name. */
const named = (name) => spans.getFinishedSpans().filter((span) => span.name === name);

/** Runs `work` in a span of the program. Returns that span. */
function inSpan(name, work) {
  return tracer.startActiveSpan(name, async (span) => {
    await work();
    span.end();
    return span;
  });
}

for (const [place, database] of await databases()) {
  describe(place, () => {
    let kv;
    let base;
    beforeEach(async () => {
      const { path, open, base: given = "otel" } = database();
      kv = await openKv(path, open);
      base = given;
      spans.reset();
      instrumentation.enable();
    });
    afterEach(async () => {
      instrumentation.disable();
      await kv.close();
    });

    it("an operation is a span below the active one", async () => {
      const parent = await inSpan("request", async () => {
        await kv.set([base, "a"], 1);
        await kv.get([base, "a"]);
        await kv.getMany([
          [base, "a"],
          [base, "b"],
        ]);
        for await (const _ of kv.list({ prefix: [base] }));
        await kv.count({ prefix: [base] });
        await kv.atomic().delete([base, "a"]).set([base, "b"], 2).commit();
      });
      const names = ["set", "get", "getMany", "list", "count"].map((name) => `${name} ${base}`);
      for (const name of names) {
        const [span, ...others] = named(name);
        expect(others, name).toEqual([]);
        expect(span.kind).toBe(SpanKind.CLIENT);
        expect(span.parentSpanContext.spanId).toBe(parent.spanContext().spanId);
        expect(span.attributes).toMatchObject({
          "db.system.name": "openkv",
          "db.operation.name": name.split(" ")[0],
          "db.collection.name": base,
        });
      }
      expect(named(`getMany ${base}`)[0].attributes["db.operation.batch.size"]).toBe(2);
      const [commit] = spans.getFinishedSpans().filter((span) => span.name.startsWith("commit"));
      expect(commit.attributes["db.operation.batch.size"]).toBe(2);
      if (place === "over a URL") {
        expect(commit.attributes["server.address"]).toBe("127.0.0.1");
        expect(commit.attributes["server.port"]).toBeGreaterThan(0);
      }
    });

    it("a request to a server carries the span of its operation", async () => {
      const sent = [];
      const see = ({ headers }) => sent.push(headers.traceparent);
      subscribe("openkv:request", see);
      await kv.get([base, "a"]);
      await kv.count({ prefix: [base, "none"] });
      unsubscribe("openkv:request", see);
      const of = (name) => {
        const { traceId, spanId } = named(`${name} ${base}`)[0].spanContext();
        return `00-${traceId}-${spanId}-01`;
      };
      expect(sent).toEqual(place === "over a URL" ? [of("get"), of("count")] : []);
    });

    it("a failure and a conflict are told apart", async () => {
      await expect(kv.set([base, "big"], "x".repeat(70_000))).rejects.toThrow("too large");
      const [failed] = named(`set ${base}`);
      expect(failed.status.code).toBe(SpanStatusCode.ERROR);
      expect(failed.attributes["error.type"]).toBe("TOO_LARGE");
      await kv.set([base, "a"], 1);
      const stale = { key: [base, "a"], versionstamp: null };
      expect((await kv.atomic().check(stale).delete([base, "a"]).commit()).ok).toBe(false);
      const commit = spans.getFinishedSpans().at(-1);
      expect(commit.status.code).toBe(SpanStatusCode.UNSET);
      expect(commit.attributes["openkv.commit.conflict"]).toBe(true);
    });

    it("reads of a transaction are below it", async () => {
      await kv.transaction(async (tx) => {
        await kv.get([base, "other"]);
        tx.set([base, "a"], 1);
      });
      const [transaction] = spans
        .getFinishedSpans()
        .filter((span) => span.name.startsWith("transaction"));
      const [read] = named(`get ${base}`);
      expect(read.parentSpanContext.spanId).toBe(transaction.spanContext().spanId);
    });

    for (const how of ["kv.queue().enqueue", "kv.atomic().enqueue"]) {
      it(`a handler goes on with the trace of ${how}`, async () => {
        const queue = `${base}-${how}`;
        const value = { nested: [1, new Map([["a", kv.uuidv7()]])] };
        const sent = await inSpan("request", async () => {
          if (how === "kv.queue().enqueue") await kv.queue(queue).enqueue(value);
          else await kv.atomic().enqueue(value, { queue }).commit();
        });
        const stop = new AbortController();
        const seen = await new Promise((resolve) => {
          kv.queue(queue).listen((message) => resolve({ message, active: trace.getActiveSpan() }), {
            signal: stop.signal,
          });
        });
        expect([...seen.message.nested[1].keys()]).toEqual(["a"]);
        const { traceId, spanId } = seen.active.spanContext();
        expect(traceId).toBe(sent.spanContext().traceId);
        stop.abort();
        const [producer] = named(`${how === "kv.queue().enqueue" ? "enqueue" : "create"} ${queue}`);
        expect(producer.kind).toBe(SpanKind.PRODUCER);
        expect(producer.parentSpanContext.spanId).toBe(sent.spanContext().spanId);
        await expect.poll(() => named(`process ${queue}`).length).toBe(1);
        const [process] = named(`process ${queue}`);
        expect(process.spanContext().spanId).toBe(spanId);
        expect(process.kind).toBe(SpanKind.CONSUMER);
        expect(process.parentSpanContext.spanId).toBe(producer.spanContext().spanId);
        expect(process.attributes).toMatchObject({
          "messaging.system": "openkv",
          "messaging.destination.name": queue,
          "messaging.operation.type": "process",
        });
      });
    }

    it("a received message has its context, and its span a link to the enqueue", async () => {
      const queue = kv.queue(`${base}-received`);
      const sent = await inSpan("request", () => queue.enqueue("a"));
      const message = await queue.receive({ wait: 5000 });
      expect(message.value).toBe("a");
      const found = trace.getSpanContext(contextOf(message));
      expect(found.traceId).toBe(sent.spanContext().traceId);
      const [receive] = named(`receive ${base}-received`);
      expect(receive.links.map((link) => link.context.spanId)).toEqual([found.spanId]);
      expect(receive.attributes["messaging.message.id"]).toBe(message.id);
      await message.ack();
      expect(await queue.receive()).toBe(null);
    });
  });
}

describe("in every place", () => {
  it("operations and messages are counted", async () => {
    await reader.forceFlush();
    const found = exported.getMetrics().at(-1).scopeMetrics[0].metrics;
    const units = Object.fromEntries(
      found.map(({ descriptor }) => [descriptor.name, descriptor.unit]),
    );
    expect(units).toEqual({
      "db.client.operation.duration": "s",
      "messaging.client.operation.duration": "s",
      "messaging.process.duration": "s",
      "messaging.client.sent.messages": "{message}",
      "messaging.client.consumed.messages": "{message}",
    });
    const { dataPoints } = found.find(({ descriptor }) => descriptor.name.startsWith("db."));
    const sets = dataPoints.filter(({ attributes }) => attributes["db.operation.name"] === "set");
    expect(sets.some(({ attributes }) => attributes["error.type"] === "TOO_LARGE")).toBe(true);
  });

  it("nothing is observed once it is disabled", async () => {
    spans.reset();
    const kv = await openKv(":memory:");
    await kv.set(["a"], 1);
    instrumentation.enable();
    await kv.set(["a"], 2);
    instrumentation.disable();
    await kv.set(["a"], 3);
    await kv.close();
    expect(named("set a").length).toBe(1);
  });
});
