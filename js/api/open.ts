// Duty: openKv: checks the options, locates the file or server, opens it.

import { invalid, misuse } from "../model/errors.js";
import process from "node:process";
import { type Limits, checkConsistency, checkOptions, nameOf, shown } from "../arguments/check.js";
import { Kv } from "./kv.js";
import { checkDuration, inMs, textAdvice } from "../arguments/duration.js";
import { nameText } from "../arguments/names.js";
import { has, optionsOf } from "../arguments/options.js";
import { checkHistory, checkLog } from "../arguments/log-options.js";
import { checkCacheSize, checkMaxOpen, checkMmapSize } from "../arguments/page-memory.js";
import { isBucket, isElsewhere, isServer, locate, MEMORY, urlsOf } from "../arguments/location.js";
import { encodeKey } from "../codec/key.js";
import { Writer } from "../codec/writer.js";
import { bare } from "../model/define.js";
import type {
  NativeBucket,
  NativeOptions,
  NativeRemote,
  NativeReplica,
} from "../native/binding.js";
import { port, setOfLimits } from "../native/port.js";
import { checkClock, followClock } from "../session/clock.js";
import { Session } from "../session/session.js";
import type { KvConsistencyLevel, OpenKvOptions } from "../model/types.js";
import { hrefOf, isAbortSignal } from "../model/brands.js";
import { BUSY_TIMEOUT_MS_DEFAULT, POSTGRES_KEY_BYTES_MAX } from "../model/limits.js";

/** The largest timeout of an operating system's timer. */
const BUSY_TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** How often metrics are stored, by default and at most. */
const METRICS_FLUSH_MS_DEFAULT = 10_000;
const METRICS_FLUSH_MS_MIN = 100;

/** The largest value of a limit: lengths and counts have 32 bits in frames. */
const LIMIT_MAX = 2 ** 31 - 1;
/** Limits whose counts have fewer bits in frames, and one in milliseconds that has more. */
const LIMIT_MAX_OF: Readonly<Record<string, number>> = {
  backoffIntervalsMax: 2 ** 8 - 1,
  undeliveredKeysMax: 2 ** 16 - 1,
  delayMsMax: 2 ** 42,
};

/** The options of a file or of PostgreSQL, and those of a server; `limits` is an option of both. */
const FILE_OPTIONS = [
  "durability",
  "readonly",
  "busyTimeout",
  "encoding",
  "metrics",
  "log",
  "history",
  "cacheSize",
  "mmapSize",
  "maxOpen",
  "lane",
  "clock",
];
const SERVER_OPTIONS = [
  "accessToken",
  "timeout",
  "signal",
  "replica",
  "prefixes",
  "consistency",
  "maxLag",
];
/** Options that need a replica. */
const REPLICA_OPTIONS = ["prefixes", "maxLag"] as const;
/** The options of a database in an object store alone. */
const BUCKET_OPTIONS = ["cache", "lead"];
const OPTION_NAMES = [...FILE_OPTIONS, "limits", ...SERVER_OPTIONS, ...BUCKET_OPTIONS];
/** Most prefixes of a replica. */
const PREFIXES_MAX = 100;
/** Environment variables with the token if there is no option. */
const TOKEN_VARIABLES = ["OPENKV_ACCESS_TOKEN", "DENO_KV_ACCESS_TOKEN"];
const TIMEOUT_MS_DEFAULT = 10_000;
/** Sets of limits by name. */
const LIMIT_SETS = ["deno", "wide"];

export async function openKv(
  path?: string | URL | null,
  // The default keeps `openKv.length` at 1, as in Deno: the options are openkv's own.
  given: OpenKvOptions | undefined = undefined,
): Promise<Kv> {
  const options = checkOpening(given);
  const thread = port();
  const native: NativeOptions = bare({
    durability: checkDurability(options.durability),
    readonly: checkReadonly(options.readonly),
    busyTimeoutMs: checkWait("busyTimeout", options.busyTimeout, 0, BUSY_TIMEOUT_MS_DEFAULT),
    limits: checkLimits(options.limits, thread.limits, () => setOfLimits(thread.native, "wide")),
    path: "",
  });
  const lane = checkLane(options.lane);
  const located = locate(path, native.readonly);
  if (!isBucket(located)) {
    requireFor("this database, only for one in an object store", options, BUCKET_OPTIONS);
  }
  if (isServer(located)) {
    requireFor("the URL of a server", options, FILE_OPTIONS);
    native.remote = checkRemote(located, options);
    native.replica = checkReplica(options);
  } else if (isBucket(located)) {
    requireFor("a database in an object store", options, [
      "replica",
      "prefixes",
      "maxLag",
      "cacheSize",
      "mmapSize",
      "maxOpen",
      "lane",
      "clock",
    ]);
    checkConsistency(options.consistency);
    native.bucket = checkBucket(located, options, native.readonly);
    native.metricsFlushMs = checkMetrics(options.metrics);
    if (native.metricsFlushMs !== undefined && native.bucket.lead === "never") {
      throw misuse(
        "Option 'metrics' with persistent writes to the database: leave out lead: \"never\" and readonly",
      );
    }
    native.encoding = checkEncoding(options.encoding);
    native.log = checkLog(options.log);
    native.historyMs = checkHistory(options.history);
  } else if (isElsewhere(located)) {
    requireFor("a database on PostgreSQL", options, [
      "accessToken",
      "timeout",
      "signal",
      "metrics",
      "cacheSize",
      "mmapSize",
      "maxOpen",
      "lane",
      "clock",
    ]);
    if (options.replica === undefined) {
      requireFor("a database on PostgreSQL without the option replica", options, ["consistency"]);
    }
    checkConsistency(options.consistency);
    checkPostgresLimits(native.limits);
    native.postgres = located;
    native.replica = checkReplica(options);
    native.encoding = checkEncoding(options.encoding);
    native.log = checkLog(options.log);
    native.historyMs = checkHistory(options.history);
  } else {
    requireFor("a file or memory", options, SERVER_OPTIONS);
    if (located === MEMORY) {
      requireFor("memory", options, ["encoding", "metrics", "cacheSize", "mmapSize", "maxOpen"]);
    } else {
      requireFor("a file: open ':memory:' with it", options, ["clock"]);
    }
    native.path = located;
    native.encoding = checkEncoding(options.encoding);
    native.metricsFlushMs = checkMetrics(options.metrics);
    native.log = checkLog(options.log);
    native.historyMs = checkHistory(options.history);
    native.cacheBytes = checkCacheSize(options.cacheSize);
    native.mmapBytes = checkMmapSize(options.mmapSize);
    native.maxOpen = checkMaxOpen(options.maxOpen);
  }
  const consistency = options.consistency as KvConsistencyLevel | undefined;
  const isFileOrMemory = native.path !== "";
  const timed = checkClock(options.clock);
  native.clockMs = timed?.nowMs;
  const commitsHere = isFileOrMemory && !native.readonly && lane === "auto";
  const settings = { consistency, commitsHere, now: timed && (() => timed.clock.now()) };
  const session = await Session.open(thread, native, checkSignal(options.signal), settings);
  if (timed !== undefined) await followClock(session, timed.clock);
  return new Kv(session);
}

type Given = { [Name in keyof OpenKvOptions]?: unknown };

function checkOpening(options: unknown): Given {
  if (options === undefined || options === null) return optionsOf({}, OPTION_NAMES);
  if (typeof options !== "object") {
    throw misuse(`Options must be an object: received ${shown(options)}`);
  }
  requireKnown("option", options, OPTION_NAMES);
  return optionsOf(options, OPTION_NAMES);
}

/** Refuses options that have no meaning for this kind of database. */
function requireFor(what: string, options: Given, others: readonly string[]): void {
  for (const name of others) {
    if (options[name as keyof Given] !== undefined) {
      throw misuse(`Option '${name}' is not for ${what}`);
    }
  }
}

function checkRemote(located: string, options: Given): NativeRemote {
  checkConsistency(options.consistency);
  return {
    urls: urlsOf(located),
    accessToken: checkToken(options.accessToken),
    timeoutMs: checkWait("timeout", options.timeout, 1, TIMEOUT_MS_DEFAULT),
    retriesOpening: options.timeout !== undefined,
  };
}

function checkBucket(url: string, options: Given, readonly: boolean): NativeBucket {
  const writes = checkWriting(options, readonly);
  const lead = options.lead ?? (readonly || writes !== undefined ? "never" : "auto");
  if (lead !== "auto" && lead !== "wait" && lead !== "never") {
    throw invalid(`lead must be "auto", "wait" or "never": received ${shown(lead)}`);
  }
  if (readonly && lead !== "never") {
    throw misuse(`Option 'lead' is "${lead}", which writes: leave out readonly`);
  }
  if (writes !== undefined && lead !== "never") {
    throw misuse(
      `Option 'accessToken' hands writes to the server that leads the database: leave it out, or lead: "${lead}"`,
    );
  }
  const { cache } = options;
  if (cache !== undefined && typeof cache !== "string" && hrefOf(cache) === undefined) {
    throw invalid(`cache must be the path of a folder: received ${shown(cache)}`);
  }
  const folder = cache === undefined ? undefined : locate(cache, true);
  if (folder !== undefined && (folder === MEMORY || isServer(folder) || isElsewhere(folder))) {
    throw invalid("cache must be the path of a folder: received another place");
  }
  const eventual = options.consistency === "eventual";
  return { url, cache: folder, lead, eventual, ...writes };
}

/** The access to the server that leads a database in an object store. The token is not taken from the environment. */
function checkWriting(
  options: Given,
  readonly: boolean,
): Required<Pick<NativeBucket, "accessToken" | "timeoutMs">> | undefined {
  if (options.accessToken === undefined) {
    requireFor("a database in an object store without the option accessToken", options, [
      "timeout",
    ]);
    return undefined;
  }
  if (readonly) {
    throw misuse("Option 'accessToken' is for writes: leave it out, or readonly");
  }
  const accessToken = checkToken(options.accessToken);
  const timeoutMs = checkWait("timeout", options.timeout, 1, TIMEOUT_MS_DEFAULT);
  return { accessToken, timeoutMs };
}

function checkReplica(options: Given): NativeReplica | undefined {
  const { replica } = options;
  if (replica === undefined) {
    const alone = REPLICA_OPTIONS.find((name) => options[name] !== undefined);
    if (alone === undefined) return undefined;
    throw misuse(`Option '${alone}' is for a replica: pass the option replica too`);
  }
  const [prefixes, prefixCount] = checkPrefixes(options.prefixes);
  const { maxLag } = options;
  const maxLagMs = maxLag === undefined ? undefined : checkDuration("maxLag", maxLag);
  return { path: checkReplicaPath(replica), prefixes, prefixCount, maxLagMs };
}

function checkReplicaPath(replica: unknown): string {
  if (typeof replica !== "string" && hrefOf(replica) === undefined) {
    throw invalid(`replica must be the path of a file, or ":memory:": received ${shown(replica)}`);
  }
  const located = locate(replica, false);
  if (!isServer(located) && !isElsewhere(located)) return located;
  throw invalid('replica must be the path of a file, or ":memory:": received a URL');
}

/** The prefixes as sized keys, and their number. */
function checkPrefixes(prefixes: unknown): [Uint8Array, number] {
  const frame = new Writer(256);
  if (prefixes === undefined) return [new Uint8Array(0), 0];
  if (!Array.isArray(prefixes) || prefixes.length === 0 || prefixes.length > PREFIXES_MAX) {
    throw invalid(
      `prefixes must be an array of 1 to ${PREFIXES_MAX} keys: received ` +
        (Array.isArray(prefixes) ? `${prefixes.length} keys` : nameOf(prefixes)),
    );
  }
  for (const prefix of prefixes) {
    if (!Array.isArray(prefix) || prefix.length === 0) {
      throw invalid(
        `each of prefixes must be a key with at least one part: received ${shown(prefix)}`,
      );
    }
    const at = frame.pos;
    frame.u32(0);
    encodeKey(frame, prefix);
    frame.patchU32(at, frame.pos - at - 4);
  }
  return [frame.buf.slice(0, frame.pos), prefixes.length];
}

/** The token; empty without one, which some servers of this machine do not ask for. No message contains it. */
function checkToken(given: unknown): string {
  // Read only if needed: Deno asks for permission to read the environment.
  const named = given === undefined && TOKEN_VARIABLES.find((name) => process.env[name]);
  const token = named ? process.env[named] : given;
  if (token === undefined) return "";
  if (typeof token !== "string") {
    throw invalid(`accessToken must be a string: received ${nameOf(token)}`);
  }
  if (!/^[!-~]+$/.test(token)) {
    const from = named || "accessToken";
    throw invalid(`${from} must be visible ASCII characters without spaces, at least one`);
  }
  return token;
}

function checkSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined) return undefined;
  if (!isAbortSignal(signal)) {
    throw misuse(`signal must be an AbortSignal: received ${shown(signal)}`);
  }
  if (signal.aborted) throw signal.reason;
  return signal;
}

function checkWait(name: string, given: unknown, least: number, otherwise: number): number {
  if (given === undefined) return otherwise;
  const ms = inMs(given);
  if (isWhole(ms, least, BUSY_TIMEOUT_MS_MAX)) return ms;
  throw invalid(
    `${name} must be an integer from ${least} to ${BUSY_TIMEOUT_MS_MAX} (milliseconds): ` +
      `received ${shown(ms)}${textAdvice(ms)}`,
  );
}

function requireKnown(what: string, given: object, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) {
      throw misuse(`Unknown ${what} ${nameText(name)}: known are ${known.join(", ")}`);
    }
  }
}

function checkDurability(durability: unknown): "full" | "normal" {
  if (durability === undefined) return "full";
  if (durability === "full" || durability === "normal") return durability;
  throw invalid(`durability must be "full" or "normal": received ${shown(durability)}`);
}

function checkLane(lane: unknown): "auto" | "thread" {
  if (lane === undefined) return "auto";
  if (lane === "auto" || lane === "thread") return lane;
  throw invalid(`lane must be "auto" or "thread": received ${shown(lane)}`);
}

function checkEncoding(encoding: unknown): "cbor" | "v8" | undefined {
  if (encoding === undefined || encoding === "cbor" || encoding === "v8") return encoding;
  throw invalid(`encoding must be "cbor" or "v8": received ${shown(encoding)}`);
}

/** How often metrics are stored; undefined if they are not. */
function checkMetrics(given: unknown): number | undefined {
  if (given === undefined) return undefined;
  const { persistent = false, flushInterval = METRICS_FLUSH_MS_DEFAULT } = checkOptions(
    "openKv: metrics",
    given,
    ["persistent", "flushInterval"],
  );
  if (typeof persistent !== "boolean") {
    throw invalid(`metrics.persistent must be a boolean: received ${shown(persistent)}`);
  }
  const ms = inMs(flushInterval);
  if (!isWhole(ms, METRICS_FLUSH_MS_MIN, BUSY_TIMEOUT_MS_MAX)) {
    throw invalid(
      `metrics.flushInterval must be an integer from ${METRICS_FLUSH_MS_MIN} to ` +
        `${BUSY_TIMEOUT_MS_MAX} (milliseconds): received ${shown(ms)}${textAdvice(ms)}`,
    );
  }
  return persistent ? ms : undefined;
}

function checkReadonly(readonly: unknown): boolean {
  if (readonly === undefined || typeof readonly === "boolean") return readonly ?? false;
  throw invalid(`readonly must be a boolean: received ${shown(readonly)}`);
}

/** All limits by name: the defaults and the given ones. */
function checkLimits(
  given: unknown,
  defaults: Limits,
  wide: () => Record<string, number>,
): Record<string, number> {
  const limits: Record<string, number> = bare({ ...defaults });
  if (given === undefined || given === "deno") return limits;
  if (given === "wide") return wide();
  if (typeof given === "string") {
    throw misuse(`Unknown limits ${nameText(given)}: known are ${LIMIT_SETS.join(", ")}`);
  }
  if (typeof given !== "object" || given === null) {
    throw invalid(`limits must be an object or a name: received ${shown(given)}`);
  }
  requireKnown("limit", given, Object.keys(defaults));
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const most = Object.hasOwn(LIMIT_MAX_OF, name) ? LIMIT_MAX_OF[name] : LIMIT_MAX;
    if (!isWhole(value, 1, most)) {
      throw invalid(
        `limits.${name} must be an integer from 1 to ${most}: received ${shown(value)}`,
      );
    }
    limits[name] = value;
  }
  const raise = (name: string, least: number) => {
    if (!has(given, name)) limits[name] = Math.max(limits[name], least);
  };
  raise("commitBytesMax", roomForOne(limits));
  raise("commitKeyBytesMax", limits.keyBytesMax);
  // A read ends one byte behind its key.
  raise("rangeKeyBytesMax", limits.keyBytesMax + 1);
  return limits;
}

function checkPostgresLimits({ keyBytesMax }: Limits): void {
  if (keyBytesMax <= POSTGRES_KEY_BYTES_MAX) return;
  throw invalid(
    `limits.keyBytesMax must be at most ${POSTGRES_KEY_BYTES_MAX} for a database on PostgreSQL, ` +
      `whose indexes take no longer keys: received ${keyBytesMax}`,
  );
}

/** The limit of a commit must admit the largest value and the largest message. */
function roomForOne(limits: Limits): number {
  const value = limits.valueBytesMax + 2 * limits.keyBytesMax;
  const message = limits.messageBytesMax + 4 * limits.backoffIntervalsMax;
  return Math.max(value, message);
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}
