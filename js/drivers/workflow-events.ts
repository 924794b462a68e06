// Duty: one event of a workflow run, in one transaction: its checks, the event, and the entities that it
// changes. An event sorts after all earlier ones of its run, whatever the clocks of processes are.

import { randomBytes } from "node:crypto";
import {
  EntityConflictError,
  HookNotFoundError,
  RunExpiredError,
  RunNotSupportedError,
  TooEarlyError,
  WorkflowRunNotFoundError,
  WorkflowWorldError,
} from "@workflow/errors";
import {
  applyAttributeChanges,
  isChildEntityCreationEvent,
  isHookEventRequiringExistence,
  isLegacySpecVersion,
  isStepEventType,
  isTerminalRunEventType,
  isTerminalStepStatus,
  isTerminalWorkflowRunStatus,
  requiresNewerWorld,
  SPEC_VERSION_CURRENT,
  validateAttributeChanges,
} from "@workflow/world";
import type {
  AttributeChange,
  CreateEventRequest,
  Event,
  EventResult,
  Hook,
  RunCreatedEventRequest,
  Step,
  Wait,
  WorkflowRun,
} from "@workflow/world";
import type { KvKey, KvTransaction } from "openkv";

/** Crockford's base 32, of ULIDs. */
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_DIGITS = 10;
const RANDOM_DIGITS = 16;

type Fields = Record<string, any>;

export function withAttributes(
  run: WorkflowRun,
  changes: AttributeChange[],
  reserved: boolean,
): WorkflowRun {
  validateAttributeChanges(changes, {
    existingKeys: Object.keys(run.attributes ?? {}),
    allowReservedAttributes: reserved,
  });
  return {
    ...run,
    attributes: applyAttributeChanges(run.attributes, changes),
    updatedAt: new Date(),
  };
}

/** One event of one run, in one transaction. */
export class EventWrite {
  readonly #tx: KvTransaction;
  readonly #at: (...parts: KvKey) => KvKey;
  readonly #runId: string;
  readonly #data: Fields & { eventType: Event["eventType"] };
  readonly #now = new Date();
  readonly #specVersion: number;
  readonly #result: Fields & EventResult = {};
  #lastEventId = "";

  constructor(
    tx: KvTransaction,
    at: (...parts: KvKey) => KvKey,
    runId: string,
    data: CreateEventRequest | RunCreatedEventRequest,
  ) {
    this.#tx = tx;
    this.#at = at;
    this.#runId = runId;
    this.#data = data;
    this.#specVersion = data.specVersion ?? SPEC_VERSION_CURRENT;
  }

  async run(): Promise<EventResult> {
    const { eventType, correlationId: id } = this.#data;
    const details: Fields = this.#data["eventData"] ?? {};
    const [run, last] = await Promise.all([
      this.#get<WorkflowRun>("run", this.#runId),
      this.#get<string>("last", this.#runId),
    ]);
    this.#lastEventId = last ?? "";
    if (eventType === "run_created") return this.#createRun(run, details);
    const known = run ?? this.#resilientStart(details);
    if (known === null) throw new WorkflowRunNotFoundError(this.#runId);
    if (requiresNewerWorld(known.specVersion) || isLegacySpecVersion(known.specVersion)) {
      throw new RunNotSupportedError(known.specVersion ?? 0, SPEC_VERSION_CURRENT);
    }
    const ended = isTerminalWorkflowRunStatus(known.status);
    if (ended && eventType === "run_cancelled" && known.status === "cancelled") {
      this.#addEvent(this.#data);
      this.#result.run = known;
      return this.#result;
    }
    if (ended) this.#refuseAfterEnd(known);
    if (isTerminalRunEventType(eventType)) return await this.#endRun(known, details);
    if (eventType === "run_started") return this.#startRun(known);
    if (eventType === "attr_set") return await this.#setAttributes(known, details, id);
    if (isStepEventType(eventType)) return await this.#changeStep(id, details, ended);
    if (eventType === "wait_created") return await this.#createWait(id, details);
    if (eventType === "wait_completed") return await this.#completeWait(id, ended);
    if (eventType === "hook_created") return await this.#createHook(id, details);
    if (isHookEventRequiringExistence(eventType)) {
      const hook = await this.#get<Hook>("hook", id);
      if (hook === null || hook.runId !== this.#runId) throw new HookNotFoundError(id);
      if (eventType === "hook_disposed") this.#deleteHook(hook);
    }
    this.#addEvent(this.#data);
    return this.#result;
  }

  // Runs

  #createRun(existing: WorkflowRun | null, details: Fields): EventResult {
    if (existing !== null) {
      throw new EntityConflictError(`Workflow run "${this.#runId}" already exists`);
    }
    this.#setRun(this.#newRun(details));
    this.#addEvent(this.#data);
    return this.#result;
  }

  /** `run_started` carries what is needed to create a run whose `run_created` has failed. */
  #resilientStart(details: Fields): WorkflowRun | null {
    const { deploymentId, workflowName, input } = details;
    if (this.#data.eventType !== "run_started" || !deploymentId || !workflowName) return null;
    if (input === undefined) return null;
    const run = this.#newRun(details);
    this.#addEvent({ eventType: "run_created", eventData: details });
    return run;
  }

  #newRun(details: Fields): WorkflowRun {
    const attributes: Record<string, string> = details["attributes"] ?? {};
    validateAttributeChanges(
      Object.entries(attributes).map(([key, value]) => ({ key, value })),
      { allowReservedAttributes: details["allowReservedAttributes"] === true },
    );
    return {
      runId: this.#runId,
      deploymentId: details["deploymentId"],
      status: "pending",
      workflowName: details["workflowName"],
      specVersion: this.#specVersion,
      executionContext: details["executionContext"],
      input: details["input"],
      attributes,
      createdAt: this.#now,
      updatedAt: this.#now,
    } as WorkflowRun;
  }

  #startRun(run: WorkflowRun): EventResult {
    if (run.status === "running") return { run };
    const startedAt = run.startedAt ?? this.#now;
    this.#setRun({ ...run, status: "running", startedAt, updatedAt: this.#now } as WorkflowRun);
    const { eventData: _, ...event } = this.#data;
    this.#addEvent(event);
    return this.#result;
  }

  async #endRun(run: WorkflowRun, details: Fields): Promise<EventResult> {
    const { error, errorCode, output } = details;
    const end = {
      run_completed: { status: "completed", output },
      run_failed: { status: "failed", error, errorCode },
      run_cancelled: { status: "cancelled" },
    }[this.#data.eventType as "run_completed" | "run_failed" | "run_cancelled"];
    const times = { completedAt: this.#now, updatedAt: this.#now };
    this.#setRun({ ...run, ...end, ...times } as unknown as WorkflowRun);
    const live = this.#tx.list({ prefix: this.#at("hook-of", this.#runId) });
    for await (const { key } of live) {
      const hook = await this.#get<Hook>("hook", key.at(-1)!);
      if (hook !== null) this.#deleteHook(hook);
    }
    this.#addEvent(this.#data);
    return this.#result;
  }

  #refuseAfterEnd({ status }: WorkflowRun): void {
    const { eventType } = this.#data;
    if (eventType === "run_started") {
      throw new RunExpiredError(
        `Workflow run "${this.#runId}" is already in terminal state "${status}"`,
      );
    }
    if (isTerminalRunEventType(eventType)) {
      throw new EntityConflictError(`Cannot transition run from terminal state "${status}"`);
    }
    if (isChildEntityCreationEvent(this.#data as CreateEventRequest)) {
      throw new EntityConflictError(
        `Cannot create new entities on run in terminal state "${status}"`,
      );
    }
    if (eventType === "attr_set") {
      throw new EntityConflictError(`Cannot set attributes on run in terminal state "${status}"`);
    }
  }

  async #setAttributes(
    run: WorkflowRun,
    details: Fields,
    id: string | undefined,
  ): Promise<EventResult> {
    const next = withAttributes(
      run,
      details["changes"],
      details["allowReservedAttributes"] === true,
    );
    if (id && details["writer"].type === "workflow") {
      await this.#createOnce(id, `Attribute event "${id}" already exists`);
    }
    this.#setRun(next);
    this.#addEvent(this.#data);
    return this.#result;
  }

  // Steps

  async #changeStep(id: string, details: Fields, runEnded: boolean): Promise<EventResult> {
    const { eventType } = this.#data;
    const lazy =
      eventType === "step_started" && isChildEntityCreationEvent(this.#data as CreateEventRequest);
    const existing = await this.#get<Step>("step", this.#runId, id);
    if (eventType === "step_created" || lazy) {
      // A second creator loses, so exactly one handler owns the step.
      if (existing !== null) throw new EntityConflictError(`Step "${id}" already created`);
      const created = this.#newStep(id, details);
      if (!lazy) return this.#setStep(created, this.#data);
      const { stepName, input, ...rest } = details;
      this.#addEvent({
        eventType: "step_created",
        correlationId: id,
        eventData: { stepName, input },
      });
      this.#result.stepCreated = true;
      return this.#setStep(this.#started(created), {
        ...this.#data,
        eventData: { stepName, ...rest },
      });
    }
    if (existing === null) throw new WorkflowWorldError(`Step "${id}" not found`);
    if (isTerminalStepStatus(existing.status)) {
      throw new EntityConflictError(`Cannot modify step in terminal state "${existing.status}"`);
    }
    if (runEnded && existing.status !== "running") {
      throw new RunExpiredError("Cannot modify non-running step on run in terminal state");
    }
    return this.#setStep(this.#changed(existing, details), this.#data);
  }

  #newStep(id: string, details: Fields): Step {
    return {
      runId: this.#runId,
      stepId: id,
      stepName: details["stepName"],
      status: "pending",
      input: details["input"],
      attempt: 0,
      createdAt: this.#now,
      updatedAt: this.#now,
      specVersion: this.#specVersion,
    } as Step;
  }

  #changed(step: Step, details: Fields): Step {
    const updatedAt = this.#now;
    switch (this.#data.eventType) {
      case "step_started":
        return this.#started(step);
      case "step_completed":
        return {
          ...step,
          status: "completed",
          output: details["result"],
          completedAt: updatedAt,
          updatedAt,
        };
      case "step_failed":
        return {
          ...step,
          status: "failed",
          error: details["error"],
          completedAt: updatedAt,
          updatedAt,
        };
      case "step_retrying": {
        const { error, retryAfter } = details;
        return { ...step, status: "pending", error, retryAfter, updatedAt };
      }
      default:
        throw new WorkflowWorldError(`Unknown event of a step: ${this.#data.eventType}`);
    }
  }

  #started(step: Step): Step {
    const waitMs = (step.retryAfter?.getTime() ?? 0) - this.#now.getTime();
    if (waitMs > 0) {
      throw new TooEarlyError(
        `Cannot start step "${step.stepId}": retryAfter timestamp has not been reached yet`,
        { retryAfter: Math.ceil(waitMs / 1000) },
      );
    }
    return {
      ...step,
      status: "running",
      startedAt: step.startedAt ?? this.#now,
      attempt: step.attempt + 1,
      retryAfter: undefined,
      updatedAt: this.#now,
    };
  }

  #setStep(step: Step, event: Fields): EventResult {
    this.#tx.set(this.#at("step", this.#runId, step.stepId), step);
    this.#result.step = step;
    this.#addEvent(event);
    return this.#result;
  }

  // Waits and hooks

  async #createWait(id: string, details: Fields): Promise<EventResult> {
    await this.#createOnce(id, `Wait "${id}" already exists`);
    return this.#setWait(id, {
      waitId: `${this.#runId}-${id}`,
      runId: this.#runId,
      status: "waiting",
      resumeAt: details["resumeAt"],
      completedAt: undefined,
      createdAt: this.#now,
      updatedAt: this.#now,
      specVersion: this.#specVersion,
    });
  }

  async #completeWait(id: string, runEnded: boolean): Promise<EventResult> {
    const wait = await this.#get<Wait>("wait", this.#runId, id);
    if (wait === null || runEnded) throw new WorkflowWorldError(`Wait "${id}" not found`);
    if (wait.status === "completed")
      throw new EntityConflictError(`Wait "${id}" already completed`);
    return this.#setWait(id, {
      ...wait,
      status: "completed",
      completedAt: this.#now,
      updatedAt: this.#now,
    });
  }

  #setWait(id: string, wait: Wait): EventResult {
    this.#tx.set(this.#at("wait", this.#runId, id), wait);
    this.#result.wait = wait;
    this.#addEvent(this.#data);
    return this.#result;
  }

  async #createHook(id: string, details: Fields): Promise<EventResult> {
    const { token, metadata, isWebhook = false, isSystem = false } = details;
    const owner = await this.#get<{ runId: string; hookId: string }>("token", token);
    if (owner !== null && (owner.runId !== this.#runId || owner.hookId !== id)) {
      this.#addEvent({
        eventType: "hook_conflict",
        correlationId: id,
        eventData: { token, conflictingRunId: owner.runId },
      });
      return this.#result;
    }
    await this.#createOnce(id, `Hook "${id}" already created`);
    const hook = {
      runId: this.#runId,
      hookId: id,
      token,
      metadata,
      ownerId: "openkv",
      projectId: "openkv",
      environment: "openkv",
      createdAt: this.#now,
      specVersion: this.#specVersion,
      isWebhook,
      isSystem,
    } as Hook;
    this.#tx.set(this.#at("hook", id), hook);
    this.#tx.set(this.#at("hook-of", this.#runId, id), true);
    this.#tx.set(this.#at("token", token), { runId: this.#runId, hookId: id });
    this.#result.hook = hook;
    this.#addEvent(this.#data);
    return this.#result;
  }

  #deleteHook({ hookId, token }: Hook): void {
    this.#tx.delete(this.#at("hook", hookId)).delete(this.#at("token", token));
    this.#tx.delete(this.#at("hook-of", this.#runId, hookId));
  }

  // Entries

  async #get<T>(...parts: KvKey): Promise<T | null> {
    return (await this.#tx.get<T>(this.#at(...parts))).value;
  }

  async #createOnce(id: string, otherwise: string): Promise<void> {
    const key = this.#at("created", this.#runId, id);
    if ((await this.#tx.get(key)).value !== null) throw new EntityConflictError(otherwise);
    this.#tx.set(key, true);
  }

  #setRun(run: WorkflowRun): void {
    this.#tx.set(this.#at("run", this.#runId), run);
    this.#result.run = run;
  }

  /** Adds an event behind all others of its run. The last one of a write is that of the result. */
  #addEvent(data: Fields): void {
    const eventId = `evnt_${ulid(this.#lastEventId.slice("evnt_".length))}`;
    this.#lastEventId = eventId;
    const event = {
      ...data,
      runId: this.#runId,
      eventId,
      createdAt: this.#now,
      specVersion: this.#specVersion,
    } as unknown as Event;
    this.#tx.set(this.#at("event", this.#runId, eventId), event);
    this.#tx.set(this.#at("last", this.#runId), eventId);
    const id: string | undefined = data["correlationId"];
    if (id) this.#tx.set(this.#at("correlation", id, eventId), this.#runId);
    this.#result.event = event;
  }
}

/** A ULID of now. If `last` is one of now or later, the one that follows it. */
export function ulid(last: string): string {
  let ms = Date.now();
  let time = "";
  for (let digit = 0; digit < TIME_DIGITS; digit++, ms = Math.floor(ms / DIGITS.length)) {
    time = DIGITS[ms % DIGITS.length]! + time;
  }
  if (time > last.slice(0, TIME_DIGITS)) {
    const random = randomBytes(RANDOM_DIGITS);
    return time + Array.from(random, (byte) => DIGITS[byte % DIGITS.length]).join("");
  }
  const digits = [...last];
  for (let at = digits.length - 1; ; at--) {
    const digit = DIGITS.indexOf(digits[at]!);
    digits[at] = DIGITS[(digit + 1) % DIGITS.length]!;
    if (digit + 1 < DIGITS.length) return digits.join("");
  }
}
