// Duty: kv.limiter: one commit for each take, which the addon decides on the stored state.

import { checkOptions, requireKey, shown } from "../arguments/check.js";
import { checkDurationIn } from "../arguments/duration.js";
import { Writer } from "../codec/writer.js";
import { invalid, misuse } from "../model/errors.js";
import { LIMIT_ALGORITHMS } from "../model/limit-algorithms.js";
import { DURATION_MS_MAX, LIMITER_COST_MAX, LIMITER_LIMIT_MAX } from "../model/limits.js";
import { LIMIT_PEEK, OP_DELETE } from "../native/contract.js";
import { putLimitHead } from "../records/layout.js";
import { putKey } from "../records/records.js";
import type { Session } from "../session/session.js";
import {
  MUTATIONS,
  RETURNS_VALUES,
  type Segment,
  commitLate,
  joinSegments,
} from "../write/segment.js";
import type { KvAtomicResult, KvKey, KvLimit } from "../model/types.js";

/** Room for most records. */
const RECORD_BYTES = 128;

/** The answer of the addon: allowed, remaining, ms until the same take is allowed (−1: never), ms until all is back. */
type Answer = [allowed: boolean, remaining: number, retryMs: number, resetMs: number];

interface Rule {
  readonly algorithm: number;
  readonly limit: number;
  readonly perMs: number;
}

export class KvLimiter {
  readonly #session: Session;
  readonly #key: KvKey;
  readonly #rule: Rule;
  /** The record of the take that is made most. */
  readonly #one: Segment;

  constructor(session: Session, key: KvKey, options: unknown) {
    requireKey("kv.limiter", key);
    if (key.length === 0) throw invalid("kv.limiter: key cannot be empty");
    session.requireOpen();
    this.#session = session;
    this.#key = [...key];
    this.#rule = checkRule(options);
    this.#one = this.#record(1, 0);
  }

  async take(cost?: number): Promise<KvLimit> {
    const segment =
      cost === undefined || cost === 1
        ? this.#one
        : this.#record(checkCost("limiter.take", cost), 0);
    return await this.#ask(segment);
  }

  async peek(cost: number = 1): Promise<KvLimit> {
    return await this.#ask(this.#record(checkCost("limiter.peek", cost), LIMIT_PEEK));
  }

  /** The peek in the same commit refuses a value that no limiter has stored. */
  async reset(): Promise<void> {
    await this.#ask(this.#record(1, LIMIT_PEEK), this.#deletion());
  }

  async #ask(...records: Segment[]): Promise<KvLimit> {
    const session = this.#session;
    const segments = [...records, RETURNS_VALUES];
    session.requireOpen();
    if (session.order.held !== 0) {
      const [batch, index] = await commitLate(session, segments);
      return this.#answer(batch.result(index));
    }
    const batch = joinSegments(session, segments);
    const index = batch.last;
    await batch.settled;
    return this.#answer(batch.result(index));
  }

  /** A write without a check is not refused. */
  #answer(result: object): KvLimit {
    const [answer] = (result as KvAtomicResult).values as unknown as [Answer];
    const [allowed, remaining, retryMs, resetAfter] = answer;
    const retryAfter = retryMs < 0 ? Number.POSITIVE_INFINITY : retryMs;
    return { allowed, limit: this.#rule.limit, remaining, retryAfter, resetAfter };
  }

  #record(cost: number, flags: number): Segment {
    const { algorithm, limit, perMs } = this.#rule;
    const writer = new Writer(RECORD_BYTES);
    putLimitHead(writer, flags, algorithm);
    writer.u32(limit);
    writer.u32(cost);
    writer.f64(perMs);
    return this.#ofKey(writer);
  }

  #deletion(): Segment {
    const writer = new Writer(RECORD_BYTES);
    writer.u8(OP_DELETE);
    return this.#ofKey(writer);
  }

  /** A mutation of the key, whose record begins so. */
  #ofKey(writer: Writer): Segment {
    putKey(writer, this.#key, this.#session.limits);
    return { rank: MUTATIONS, buf: writer.buf, start: 0, end: writer.pos, fills: null };
  }
}

function checkRule(options: unknown): Rule {
  const method = "kv.limiter";
  const names = ["limit", "per", "algorithm"] as const;
  const { limit, per, algorithm = "fixed" } = checkOptions(method, options, names);
  if (limit === undefined || per === undefined) {
    throw misuse(
      `${method}: limit and per are missing: write kv.limiter(key, { limit: 100, per: "1m" })`,
    );
  }
  const number = LIMIT_ALGORITHMS.indexOf(algorithm as (typeof LIMIT_ALGORITHMS)[number]);
  if (number < 0) {
    throw invalid(
      `${method}: algorithm must be "fixed", "sliding" or "token-bucket": received ${shown(algorithm)}`,
    );
  }
  return {
    algorithm: number,
    limit: checkPoints(`${method}: limit`, limit, 0, LIMITER_LIMIT_MAX),
    perMs: checkDurationIn(`${method}: per`, per, 1, DURATION_MS_MAX),
  };
}

function checkCost(method: string, cost: unknown): number {
  return checkPoints(`${method}: cost`, cost, 1, LIMITER_COST_MAX);
}

function checkPoints(what: string, given: unknown, min: number, max: number): number {
  if (Number.isInteger(given) && (given as number) >= min && (given as number) <= max) {
    return given as number;
  }
  throw invalid(`${what} must be an integer from ${min} to ${max}: received ${shown(given)}`);
}
