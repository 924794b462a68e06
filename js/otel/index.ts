// Duty: the entry openkv/otel: spans and metrics of OpenTelemetry from the diagnostics channels of openkv, by
// the semantic conventions for databases and messaging.
// Invariant: an operation has one span, which ends with it; a message carries the context of its enqueue.
// Never: a key or a value in a span.

import { channel, tracingChannel } from "node:diagnostics_channel";
import {
  type Attributes,
  type Context,
  type Counter,
  type Histogram,
  type MeterProvider,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  context,
  metrics,
  propagation,
  trace,
} from "@opentelemetry/api";
import {
  type Event,
  type RequestEvent,
  attributesOf,
  errorType,
  isRemote,
  kindOf,
  nameOf,
} from "./conventions.js";

const NAME = "openkv";
const VERSION = "0.1.0";
const CHANNELS = ["read", "commit", "transaction", "enqueue", "receive", "process"];
/** Kept, because Bun loses a channel that nobody holds. */
const REQUESTS = channel("openkv:request");
/** Bounds of the buckets of durations, in seconds, as the conventions for databases have them. */
const BOUNDARIES_S = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** Options of {@link OpenKvInstrumentation}. */
export interface OpenKvInstrumentationConfig {
  /** `false`: nothing is observed before `enable()`. */
  enabled?: boolean | undefined;
  /**
   * The collection of a key, for the attribute `db.collection.name` and the names of spans. It must have
   * few values. Default: none.
   */
  collection?: ((key: readonly unknown[]) => string | undefined) | undefined;
}

/** An operation under way. */
interface Observed {
  readonly span: Span;
  readonly attributes: Attributes;
  readonly startedMs: number;
}

/** The contexts of received messages. */
const contexts = new WeakMap<object, Context>();

/**
 * The context that a message of `receive` carries: that of its enqueue. Without one it is the active
 * context. Handlers of `listen` run in a context of their own.
 *
 * @example
 * const message = await kv.queue("jobs").receive();
 * await context.with(contextOf(message), () => handle(message.value));
 */
export function contextOf(message: object): Context {
  return contexts.get(message) ?? context.active();
}

/**
 * Makes spans and metrics of every operation of openkv in this process. It begins to observe when it is
 * made. `registerInstrumentations` and `NodeSDK` of OpenTelemetry take it as it is.
 *
 * @example
 * const instrumentation = new OpenKvInstrumentation();
 */
export class OpenKvInstrumentation {
  readonly instrumentationName: string = NAME;
  readonly instrumentationVersion: string = VERSION;
  #config: OpenKvInstrumentationConfig;
  #tracers: TracerProvider | undefined;
  #meters: MeterProvider | undefined;
  #instruments: Instruments | undefined;
  #isEnabled = false;
  readonly #observed = new WeakMap<object, Observed>();
  readonly #subscribers: Readonly<Record<string, (event: any) => void>> = {
    start: (event: Event) => this.#begin(event),
    // Of an operation whose call returns a promise it is the end of the call.
    end: (event: Event) => {
      if (event.synchronous || "error" in event) this.#end(event);
    },
    asyncStart() {},
    asyncEnd: (event: Event) => this.#end(event),
    error() {},
  };

  constructor(config: OpenKvInstrumentationConfig = {}) {
    this.#config = config;
    if (config.enabled !== false) this.enable();
  }

  /** Begins to observe. */
  enable(): void {
    if (this.#isEnabled) return;
    this.#isEnabled = true;
    for (const name of CHANNELS)
      tracingChannel(`openkv:${name}`).subscribe(this.#subscribers as any);
    REQUESTS.subscribe(carryContext);
  }

  /** Observes no more operations; those under way still end. */
  disable(): void {
    if (!this.#isEnabled) return;
    this.#isEnabled = false;
    for (const name of CHANNELS)
      tracingChannel(`openkv:${name}`).unsubscribe(this.#subscribers as any);
    REQUESTS.unsubscribe(carryContext);
  }

  /** The provider of the spans. Default: the global one. */
  setTracerProvider(provider: TracerProvider): void {
    this.#tracers = provider;
  }

  /** The provider of the metrics. Default: the global one. */
  setMeterProvider(provider: MeterProvider): void {
    this.#meters = provider;
    this.#instruments = undefined;
  }

  getConfig(): OpenKvInstrumentationConfig {
    return this.#config;
  }

  setConfig(config: OpenKvInstrumentationConfig): void {
    this.#config = config;
  }

  #begin(event: Event): void {
    const attributes = attributesOf(event, this.#config.collection);
    const kind = kindOf(event);
    // A handler goes on with what the enqueue began.
    const parent =
      kind === SpanKind.CONSUMER
        ? propagation.extract(context.active(), event.headers)
        : context.active();
    const tracer = (this.#tracers ?? trace).getTracer(NAME, VERSION);
    const options = { kind, attributes: { ...attributes, ...ofMessage(event) } };
    const span = tracer.startSpan(nameOf(event, attributes), options, parent);
    const within = trace.setSpan(parent, span);
    if (kind === SpanKind.PRODUCER) propagation.inject(within, event.headers);
    // A request to a server carries the context in which it is made.
    const isParent = kind === SpanKind.CONSUMER || event.operation === "transaction";
    if (isParent || isRemote(event)) {
      event.run = (operation) => context.with(within, operation);
    }
    this.#observed.set(event, { span, attributes, startedMs: performance.now() });
  }

  #end(event: Event): void {
    const observed = this.#observed.get(event);
    if (observed === undefined) return;
    this.#observed.delete(event);
    const { span, attributes, startedMs } = observed;
    if ("error" in event) {
      attributes["error.type"] = errorType(event.error);
      span.setAttribute("error.type", attributes["error.type"]);
      span.setStatus({ code: SpanStatusCode.ERROR, message: String(event.error) });
    } else {
      this.#tell(event, span);
    }
    span.end();
    this.#count(event, attributes, (performance.now() - startedMs) / 1000);
  }

  /** Adds what the result of an operation tells. */
  #tell(event: Event, span: Span): void {
    const result: any = event.result;
    if (kindOf(event) === SpanKind.CLIENT && result?.ok === false) {
      span.setAttribute("openkv.commit.conflict", true);
    }
    if (event.operation === "enqueue" && typeof result?.id === "string") {
      span.setAttribute("messaging.message.id", result.id);
    }
    if (event.operation !== "receive" || result == null) return;
    const sent = propagation.extract(context.active(), event.headers);
    contexts.set(result, sent);
    span.setAttribute("messaging.message.id", result.id);
    const link = trace.getSpanContext(sent);
    if (link !== undefined) span.addLink?.({ context: link });
  }

  #count(event: Event, attributes: Attributes, seconds: number): void {
    const instruments = (this.#instruments ??= new Instruments(this.#meters ?? metrics));
    const hasFailed = "error" in event;
    switch (event.operation) {
      case "create":
        instruments.sent.add(1, attributes);
        return;
      case "enqueue":
        if (!hasFailed) instruments.sent.add(1, attributes);
        instruments.messaging.record(seconds, attributes);
        return;
      case "receive":
        if (event.result != null) instruments.consumed.add(1, attributes);
        instruments.messaging.record(seconds, attributes);
        return;
      case "process":
        instruments.consumed.add(1, attributes);
        instruments.process.record(seconds, attributes);
        return;
      default:
        instruments.database.record(seconds, attributes);
    }
  }
}

/** Puts the active context into the headers of a request to a server. */
function carryContext(event: unknown): void {
  propagation.inject(context.active(), (event as RequestEvent).headers);
}

/** The attributes of a span that have too many values for metrics. */
function ofMessage(event: Event): Attributes {
  return event.messageId === undefined ? {} : { "messaging.message.id": event.messageId };
}

/** The metrics, by the conventions. */
class Instruments {
  readonly database: Histogram;
  readonly messaging: Histogram;
  readonly process: Histogram;
  readonly sent: Counter;
  readonly consumed: Counter;

  constructor(provider: MeterProvider) {
    const meter = provider.getMeter(NAME, VERSION);
    const duration = (name: string, description: string): Histogram => {
      const advice = { explicitBucketBoundaries: BOUNDARIES_S };
      return meter.createHistogram(name, { description, unit: "s", advice });
    };
    const counter = (name: string, description: string): Counter =>
      meter.createCounter(name, { description, unit: "{message}" });
    this.database = duration("db.client.operation.duration", "Duration of operations.");
    this.messaging = duration("messaging.client.operation.duration", "Duration of operations.");
    this.process = duration("messaging.process.duration", "Duration of handlers of messages.");
    this.sent = counter("messaging.client.sent.messages", "Messages that were enqueued.");
    this.consumed = counter("messaging.client.consumed.messages", "Messages that were delivered.");
  }
}
