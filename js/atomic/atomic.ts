// Duty: AtomicOperation: collects encoded records, and commits them as one write.
// Invariant: as in Deno KV, a value that cannot be stored throws at the call; a wrong key, or a size
// over a limit, rejects the commit. In both cases the call leaves no record.

import { codeOf, invalid, misuse, tooLarge } from "../model/errors.js";
import { isTypeError } from "../model/brands.js";
import { printGiven } from "../codec/key-text.js";
import { isAtCommit } from "../arguments/at-commit.js";
import { inMs } from "../arguments/duration.js";
import {
  type QueueOptions,
  checkCheck,
  checkMutation,
  checkOptions,
  checkQueueOptions,
  missingValue,
  noCheck,
  shown,
} from "../arguments/check.js";
import { type Method, checkCalculation, putCalculation } from "./arithmetic.js";
import { assign, defineProperty } from "../model/define.js";
import type { Writer } from "../codec/writer.js";
import { INSPECT_NAMES, inspectOperation, printerOf } from "./inspect-operation.js";
import { APPEND_FRONT, OP_DELETE, OP_MAX, OP_MIN, OP_SUM } from "../native/contract.js";
import { putAppendHead } from "../records/layout.js";
import { forgetPatches, putPatches } from "../records/patches.js";
import {
  putCheck,
  putEnqueue,
  putItems,
  putKey,
  putMessage,
  putSetExpiry,
  putSet,
  putSetKey,
  putValue,
} from "../records/records.js";
import { requireLease } from "../lease/held-lease.js";
import { type MessageLock, lockOf, putAcknowledge } from "../queue/message-lock.js";
import {
  ACKS,
  CHECKS,
  MESSAGES,
  MUTATIONS,
  RETURNS_VALUES,
  type Segment,
  commitLate,
  giveWriter,
  isOpen,
  joinSegments,
  segmentOf,
  takeWriter,
} from "../write/segment.js";
import {
  EXPIRY_OPTIONS,
  type Expiry,
  NO_EXPIRY,
  checkExpiry,
  checkSetExpiry,
} from "../arguments/expiry-options.js";
import { insertBy } from "../collection/collection.js";
import { option } from "../arguments/options.js";
import { checkTouch } from "../write/expiry.js";
import { checkAtomicEnqueue, queueOf } from "../queue/queue-options.js";
import { removal, setting } from "../queue/schedules.js";
import { COMMITS, ENQUEUES } from "../instruments/channels.js";
import { contextFor, enqueueEvent } from "../write/writes.js";
import { Session } from "../session/session.js";
import type { WriteBatch } from "../session/write-batch.js";
import { abortable } from "../arguments/signal.js";
import type {
  AtomicCheck,
  KvAtomicResult,
  KvCommitRefusal,
  KvEnqueueOptions,
  KvExpireOptions,
  KvKey,
  KvMutation,
  KvNamedEnqueueOptions,
  KvSumOptions,
  KvU64,
} from "../model/types.js";

type Operand = number | bigint | KvU64;
type CommitOptions = { values?: boolean | undefined; signal?: AbortSignal | undefined };
type ArrayMethod = "append" | "prepend";

const MUTATION_TYPES = '"set", "delete", "sum", "min", "max", "append" or "prepend"';
const ARITH = { sum: OP_SUM, min: OP_MIN, max: OP_MAX };

/** The records of an operation so far, in the order of their calls: for a transaction. */
export let segmentsOf: (operation: AtomicOperation) => Segment[];
/** Whether nothing was added to an operation. */
export let isEmpty: (operation: AtomicOperation) => boolean;

export class AtomicOperation {
  readonly #session: Session;
  #segments: Segment[] = [];
  /** The segments are in the order of their ranks. */
  #sorted = true;
  /** The error of the first wrong key; every commit rejects with it. */
  #failure: unknown = undefined;
  /** The key of the record that is being added is wrong. */
  #bad = false;
  /** The locks of the messages that the commit acknowledges, if any. */
  #locks: MessageLock[] | null = null;
  /** The keys of the documents that it inserts; null if there are none. */
  #inserted: Set<string> | null = null;

  constructor(session: Session) {
    if (!(session instanceof Session)) {
      throw misuse("AtomicOperation can not be constructed: use kv.atomic() instead");
    }
    this.#session = session;
  }

  check(...checks: AtomicCheck[]): this {
    for (let i = 0; i < checks.length; i++) {
      const key = option(checks[i], "key");
      const versionstamp = option(checks[i], "versionstamp") as string | null;
      if (key === undefined) {
        this.#keep(noCheck(checks[i], this.#checked));
        continue;
      }
      checkCheck(checks[i]);
      this.#add(CHECKS, (writer) => {
        this.#tryKey(() => {
          try {
            putCheck(writer, key, versionstamp, this.#session.limits);
          } catch (error) {
            throw placedCheck(error, this.#checked, key);
          }
        });
      });
    }
    return this;
  }

  /** The number of checks. Only the first wrong one is reported, so all before it have a segment. */
  get #checked(): number {
    return this.#segments.filter(({ rank }) => rank === CHECKS).length;
  }

  checkLease(lease: unknown): this {
    const { key, token: versionstamp } = requireLease("atomic().checkLease", lease);
    return this.check({ key, versionstamp });
  }

  mutate(...mutations: KvMutation[]): this {
    for (let i = 0; i < mutations.length; i++) this.#mutate(mutations[i], i);
    return this;
  }

  #mutate(
    mutation: KvMutation & { value?: unknown; expireIn?: unknown; expireAt?: unknown },
    at: number,
  ): void {
    const { key, type } = readMutation(mutation);
    checkMutation(mutation);
    switch (type) {
      case "delete":
        if (option(mutation, "value")) {
          throw invalid(`Invalid mutation 'delete' with value: mutations[${at}]`);
        }
        this.delete(key);
        return;
      case "set": {
        requireValue(mutation, at);
        const { value } = mutation;
        const { expireIn, expireAt } = expiryOf(mutation);
        // As in Deno: an expireIn that is not a number, nor a text with units, is ignored.
        const isDuration = typeof inMs(expireIn) === "number";
        const expiry = isDuration ? { expireIn, expireAt } : { expireAt };
        this.#set(key, value, checkExpiry(expiry));
        return;
      }
      case "min":
      case "max":
      case "sum":
        requireValue(mutation, at);
        if (type !== "sum" && typeof mutation.value === "number") {
          this.#calculate(type, key, mutation.value, expiryOf(mutation));
        } else {
          this.#arith(ARITH[type], key, mutation.value);
        }
        return;
      case "append":
      case "prepend":
        requireValue(mutation, at);
        this.#append(type, key, mutation.value, expiryOf(mutation));
        return;
      default:
        throw invalid(
          `Invalid mutation type: mutations[${at}].type must be ${MUTATION_TYPES}: received ${shown(type)}`,
        );
    }
  }

  sum(key: KvKey, n: Operand, options?: KvSumOptions): this {
    return this.#calculate("sum", key, n, options);
  }

  min(key: KvKey, n: Operand, options?: KvExpireOptions): this {
    return this.#calculate("min", key, n, options);
  }

  max(key: KvKey, n: Operand, options?: KvExpireOptions): this {
    return this.#calculate("max", key, n, options);
  }

  append(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this {
    return this.#append("append", key, items, options);
  }

  prepend(key: KvKey, items: readonly unknown[], options?: KvExpireOptions): this {
    return this.#append("prepend", key, items, options);
  }

  set(key: KvKey, value: unknown, options?: KvExpireOptions | null): this {
    if (arguments.length < 2) throw missingValue("atomic().set");
    return this.#set(key, value, checkSetExpiry(options));
  }

  delete(key: KvKey): this {
    return this.#add(MUTATIONS, (writer) => {
      writer.u8(OP_DELETE);
      this.#tryKey(() => putKey(writer, key, this.#session.limits));
    });
  }

  #calculate(method: Method, key: KvKey, n: unknown, options: unknown): this {
    const calculation = checkCalculation(method, n, options);
    const { limits } = this.#session;
    return this.#add(MUTATIONS, (writer) => {
      putCalculation(writer, key, calculation, limits, (put) => this.#tryKey(put));
    });
  }

  #append(method: ArrayMethod, key: KvKey, items: unknown, options: unknown): this {
    if (!Array.isArray(items)) {
      throw invalid(`atomic().${method}: items must be an array: received ${shown(items)}`);
    }
    const expiry = checkExpiry(checkOptions(`atomic().${method}`, options, EXPIRY_OPTIONS));
    const front = method === "prepend";
    const { limits } = this.#session;
    return this.#add(MUTATIONS, (writer) => {
      putAppendHead(writer, front ? APPEND_FRONT : 0, expiry.afterMs, expiry.atMs);
      this.#tryKey(() => putKey(writer, key, limits));
      putItems(writer, key, items, limits);
    });
  }

  touch(key: KvKey, options: KvExpireOptions): this {
    return this.#setExpiry(key, checkTouch("atomic().touch", options));
  }

  persist(key: KvKey): this {
    return this.#setExpiry(key, NO_EXPIRY);
  }

  #setExpiry(key: KvKey, expiry: Expiry): this {
    return this.#add(MUTATIONS, (writer) => {
      this.#tryKey(() => putSetExpiry(writer, key, expiry, false, this.#session.limits));
    });
  }

  enqueue(value: unknown, options?: KvEnqueueOptions | KvNamedEnqueueOptions | null): this {
    const { limits, port, now } = this.#session;
    const named = checkAtomicEnqueue(options, limits, port.bounds, now);
    let checked: QueueOptions;
    try {
      checked = named ?? checkQueueOptions(options as KvEnqueueOptions, limits);
    } catch (error) {
      this.#keep(error);
      return this;
    }
    return ENQUEUES.isObserved
      ? this.#observedEnqueue(value, checked)
      : this.#enqueue(value, checked, contextFor(this.#session, checked, null));
  }

  #observedEnqueue(value: unknown, checked: QueueOptions): this {
    const event = enqueueEvent(this.#session, "create", checked);
    const run = () =>
      this.#enqueue(value, checked, contextFor(this.#session, checked, event.headers));
    return ENQUEUES.traceSync(event, run);
  }

  #enqueue(value: unknown, checked: QueueOptions, context: Buffer | null): this {
    const { limits } = this.#session;
    return this.#add(MESSAGES, (writer) => {
      this.#tryKey(() => putEnqueue(writer, checked, limits));
      putMessage(writer, value, checked, limits, context);
    });
  }

  schedule(name: unknown, timing: unknown, value: unknown, options?: unknown): this {
    const method = "atomic().schedule";
    const session = this.#session;
    const { queue, rest } = queueOf(method, options, session.port.bounds);
    return this.#add(MESSAGES, setting(session, method, queue, name, timing, value, rest));
  }

  unschedule(name: unknown, options?: unknown): this {
    const method = "atomic().unschedule";
    const session = this.#session;
    const { queue, rest } = queueOf(method, options, session.port.bounds);
    checkOptions(method, rest, []);
    return this.#add(MESSAGES, removal(session, method, queue, name));
  }

  ack(...messages: unknown[]): this {
    for (const message of messages) {
      const lock = lockOf("atomic().ack", message);
      (this.#locks ??= []).push(lock);
      this.#add(ACKS, (writer) => putAcknowledge(writer, lock));
    }
    return this;
  }

  insert(collection: object, value: unknown, options?: unknown): this {
    insertBy(this, collection, value, options, (this.#inserted ??= new Set()));
    return this;
  }

  // The default keeps `commit.length` at 0, as in Deno.
  commit(options: CommitOptions | undefined = undefined): Promise<any> {
    return COMMITS.isObserved ? this.#observed(options) : this.#start(options);
  }

  #observed(options: CommitOptions | undefined): Promise<any> {
    const details = { operations: this.#segments.length };
    return COMMITS.observe(this.#session, "commit", details, () => this.#start(options));
  }

  #start(options: CommitOptions | undefined): Promise<any> {
    // As in Deno: options that are not an object are ignored.
    const has = typeof options === "object" && options !== null;
    return has ? this.#commitWith(options) : this.#commit();
  }

  /** A method of its own: a closure in commit() would cost memory in each call. */
  async #commitWith(options: CommitOptions): Promise<KvAtomicResult | KvCommitRefusal> {
    const last = checkReturnsValues(options) ? RETURNS_VALUES : undefined;
    const result = await abortable("atomic().commit", options, () => this.#commit(last));
    if (last !== undefined && result.ok && !Object.hasOwn(result, "values")) {
      assign(result, "values", []);
    }
    return result;
  }

  async #commit(last?: Segment): Promise<KvAtomicResult | KvCommitRefusal> {
    if (this.#failure !== undefined) throw this.#failure;
    const session = this.#session;
    const records = this.#inOrder();
    const segments = last === undefined ? records : [...records, last];
    if (session.order.held !== 0 || isOpen(segments)) {
      const [batch, index] = await commitLate(session, segments.slice());
      return this.#resultOf(batch, index);
    }
    const batch = joinSegments(session, segments);
    const index = batch.last;
    await batch.settled;
    return this.#resultOf(batch, index);
  }

  #resultOf(batch: WriteBatch, index: number): KvAtomicResult | KvCommitRefusal {
    // Without a condition a caller does not expect to be refused.
    const isConditional = this.#locks !== null || this.#checked > 0;
    const result = isConditional ? batch.result(index) : batch.committed(index);
    if (this.#locks !== null && result.ok) {
      for (const lock of this.#locks) lock.acknowledged = true;
    }
    return result;
  }

  // biome-ignore lint/suspicious/noThenProperty: it catches `await kv.atomic()…` without commit().
  then(): never {
    throw misuse("'AtomicOperation' is not a promise: did you forget to call 'commit()'");
  }

  #set(key: KvKey, value: unknown, expiry: Expiry): this {
    const { limits } = this.#session;
    return this.#add(MUTATIONS, (writer) => {
      putSet(writer, key, expiry);
      this.#tryKey(() => putSetKey(writer, key, limits));
      putValue(writer, key, value, limits);
    });
  }

  #arith(op: number, key: KvKey, operand: unknown): this {
    const { limits } = this.#session;
    return this.#add(MUTATIONS, (writer) => {
      writer.u8(op);
      this.#tryKey(() => putKey(writer, key, limits));
      putValue(writer, key, operand, limits);
    });
  }

  /** Adds the record that `put` writes; adds nothing if it throws. */
  #add(rank: number, put: (writer: Writer) => void): this {
    const segments = this.#segments;
    const writer = takeWriter(this.#session.packs);
    const start = writer.pos;
    let keep = false;
    this.#bad = false;
    try {
      put(writer);
      if (writer.patches !== null) putPatches(writer);
      keep = !this.#bad;
    } catch (error) {
      this.#keep(error);
    } finally {
      if (keep) {
        if (segments.length > 0 && segments[segments.length - 1].rank > rank) this.#sorted = false;
        segments.push(segmentOf(writer, start, rank));
      } else {
        writer.pos = start;
        writer.fills = null;
        forgetPatches(writer);
      }
      giveWriter(writer);
    }
    return this;
  }

  /** Keeps an error for the commit, or throws it. */
  #keep(error: unknown): void {
    if (!isAtCommit(error)) throw error;
    this.#failure ??= error;
  }

  /** Keeps the error of `put` for the commit. */
  #tryKey(put: () => void): void {
    try {
      put();
    } catch (error) {
      this.#bad = true;
      this.#failure ??= error;
    }
  }

  /** Checks, then acknowledgements, then mutations, then messages; each in the order of their calls. */
  #inOrder(): Segment[] {
    if (!this.#sorted) this.#segments.sort((a, b) => a.rank - b.rank);
    this.#sorted = true;
    return this.#segments;
  }

  static {
    segmentsOf = (operation) => operation.#segments;
    isEmpty = (operation) => operation.#segments.length === 0 && operation.#failure === undefined;
    for (const name of INSPECT_NAMES) {
      defineProperty(this.prototype, name, {
        value(this: AtomicOperation, first: unknown, second: unknown, third: unknown): string {
          return inspectOperation(this.#inOrder(), printerOf(first, second, third));
        },
        writable: true,
        configurable: true,
        enumerable: false,
      });
    }
  }
}

/** The error of a check with its place among the checks of the operation. */
function placedCheck(error: unknown, at: number, key: unknown): unknown {
  if (!isTypeError(error)) return error;
  const { message } = error;
  switch (codeOf(error)) {
    case "TOO_LARGE": // Its message has the key.
      return tooLarge(`${message} (checks[${at}])`);
    case "INVALID":
      return invalid(`${message} (checks[${at}], key ${printGiven(key)})`);
    default:
      return error;
  }
}

/** Reads a mutation once; null and undefined throw the error of reading a property. */
function readMutation(mutation: KvMutation): { key: KvKey; type: string } {
  const key = option(mutation, "key") as KvKey;
  return { key, type: option(mutation, "type") as string };
}

/** The expiry of a mutation that Deno does not have, as options of its method. */
function expiryOf(mutation: { expireIn?: unknown; expireAt?: unknown }): {
  expireIn: unknown;
  expireAt: unknown;
} {
  return { expireIn: option(mutation, "expireIn"), expireAt: option(mutation, "expireAt") };
}

/** Whether the result has the values of the calculations. */
function checkReturnsValues(options: CommitOptions): boolean {
  const { values } = checkOptions("atomic().commit", options, ["values", "signal"]);
  if (values === undefined || typeof values === "boolean") return values === true;
  throw invalid(`atomic().commit: values must be a boolean: received ${shown(values)}`);
}

function requireValue(mutation: { type: string }, at: number): void {
  if (!Object.hasOwn(mutation, "value")) {
    throw invalid(`Invalid mutation '${mutation.type}' without value: mutations[${at}]`);
  }
}
