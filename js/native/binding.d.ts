// Types of the addon's loader (dist/native/binding.js), as js/native/contract.md describes it.

/** The options of opening a database. */
export interface NativeOptions {
  /** ":memory:" or an absolute path. */
  path: string;
  durability: "full" | "normal";
  readonly: boolean;
  busyTimeoutMs: number;
  /** The format of a new file's values. Default: the addon's. */
  encoding?: "cbor" | "v8" | undefined;
  /** Bytes of the page cache of each connection to a file. Default: the addon's. */
  cacheBytes?: number | undefined;
  maxOpen?: number | undefined;
  /** Bytes of a file that its readers map into memory. Default: none. */
  mmapBytes?: number | undefined;
  /** How often the metrics are stored in the file. Default: they are not. */
  metricsFlushMs?: number | undefined;
  /** How the replication log is to be kept. Default: as the database has it. */
  log?: NativeLog | undefined;
  /** How long replaced values are to be kept; 0: not at all. Default: as the database has it. */
  historyMs?: number | undefined;
  /** The time of a database in memory, if its clock is not the machine's. */
  clockMs?: number | undefined;
  /** Every bound by name. */
  limits: Record<string, number>;
  /** The URL of a database on PostgreSQL. The path is ignored then. */
  postgres?: string;
  /** A database in an object store. The path is ignored then. */
  bucket?: NativeBucket;
  /** A remote database. The path is ignored then. */
  remote?: NativeRemote;
  /** A local copy of the database behind a URL. */
  replica?: NativeReplica | undefined;
}

/** A database in an object store. */
export interface NativeBucket {
  /** Its URL, without credentials. */
  url: string;
  /** The absolute path of the folder of its local copy. Default: a new one, which is removed. */
  cache?: string | undefined;
  lead: "auto" | "wait" | "never";
  /** Whether reads of a process that does not lead may miss the newest commits. */
  eventual: boolean;
  /** The access token of the server that leads, if writes go there, and how long a call there may take. */
  accessToken?: string;
  timeoutMs?: number;
}

/** How a replication log is to be kept. */
export interface NativeLog {
  on: boolean;
  retentionMs: number;
  bytesMax: number;
  messages: boolean;
}

/** The URLs of the servers of a remote database, and its access token. */
export interface NativeRemote {
  urls: string[];
  accessToken: string;
  timeoutMs: number;
  /** Whether opening asks a server that does not answer again, until the timeout. */
  retriesOpening: boolean;
}

/** A local copy of a remote database, or of one on PostgreSQL. */
export interface NativeReplica {
  /** ":memory:" or an absolute path. */
  path: string;
  /** The beginnings of its keys, as sized keys; none: all keys. */
  prefixes: Uint8Array;
  prefixCount: number;
  /** How old an eventual read may be. Default: any age. */
  maxLagMs?: number | undefined;
}

/** One open database. Sync reads answer a length or one of the negative codes of js/native/contract.ts. */
export interface NativeHandle {
  /**
   * A handle on the entries right after a commit, or else at a time; the event OPENED or OPEN_FAILED has
   * this id.
   */
  at(attachment: number, id: number, stamp: string | undefined, atMs: number): NativeHandle;
  lane(): number;
  getMany(count: number, requestLen: number): number;
  getBlocking(count: number, frame: Uint8Array, len: number): Buffer | null;
  page(requestLen: number, out: Uint8Array): number;
  release(): void;
  /** Sets the clock of a database that was opened with `clockMs`; REPLIED once what is then due is done. */
  setClock(id: number, nowMs: number): void;
  /** The trace context of the requests that are handed over next, a header in each line; empty: none. */
  trace(headers: string): void;
  read(id: number, count: number, frame: Uint8Array, len: number): void;
  write(id: number, count: number, frame: Uint8Array, len: number): void;
  writeImmediately(
    id: number,
    count: number,
    frame: Uint8Array,
    len: number,
    mostUs: number,
  ): number;
  call(id: number, command: number, frame: Uint8Array, len: number): void;
  callCancellable(id: number, command: number, frame: Uint8Array, len: number): void;
  cancel(id: number): void;
  watch(id: number, count: number, frame: Uint8Array, len: number, raw: boolean): void;
  watchNext(id: number): void;
  watchCancel(id: number): void;
  feed(id: number, frame: Uint8Array, len: number): void;
  feedNext(id: number): void;
  feedCancel(id: number): void;
  listen(id: number, credits: number, lockMs: number, queue: Uint8Array, len: number): void;
  settle(id: number, number: number, outcome: number, reason: Uint8Array, len: number): void;
  unlisten(id: number): void;
  giveUp(id: number): void;
  forgetListener(id: number): void;
  receive(id: number, lockMs: number, once: boolean, queue: Uint8Array, len: number): void;
  receiveCancel(id: number): void;
  cancelAll(): void;
  /**
   * Starts to archive, with options in JSON; the event REPLIED or CALL_FAILED has this id. Missing in a
   * build without archives.
   */
  archive(id: number, options: string): NativeArchive;
  drain(): void;
  close(id: number): void;
}

/** A running archiver. */
export interface NativeArchive {
  /** The state, in JSON. */
  status(): string;
  /** The event REPLIED with this id says that it has ended. */
  stop(id: number): void;
}

/** A job on an archive. */
export interface NativeArchiveJob {
  /** Bytes done and bytes in total. */
  progress(): number[];
  cancel(): void;
}

/** Starts a job in JSON; the event REPLIED, with its result in JSON, or CALL_FAILED has this id. */
export const ArchiveJob: new (attachment: number, id: number, job: string) => NativeArchiveJob;

/** Starts to open; the event OPENED or OPEN_FAILED has this id. */
export const Handle: new (attachment: number, id: number, options: NativeOptions) => NativeHandle;

/** A KV Connect server. */
export interface NativeServer {
  /** The event REPLIED with this id says that it is closed. */
  close(id: number): void;
}

/** Starts with options in JSON; the event REPLIED or CALL_FAILED has this id. */
export const Server: new (attachment: number, id: number, options: string) => NativeServer;

/** The state of all databases on PostgreSQL, in JSON; the event REPLIED or CALL_FAILED has this id. */
export function clusterStatus(attachment: number, id: number, url: string): void;

/** Makes the replica in a file a database of its own; the event REPLIED or CALL_FAILED has this id. */
export function promote(attachment: number, id: number, path: string): void;

/** A running restore. */
export interface NativeRestore {
  /** Pages done and pages in total. */
  progress(): number[];
  cancel(): void;
}

/** Starts with absolute paths; the event REPLIED, with the facts of the copy, or CALL_FAILED has this id. */
export const Restore: new (
  attachment: number,
  id: number,
  from: string,
  to: string,
  replace: boolean,
) => NativeRestore;

export function attach(
  scratch: Uint8Array,
  onEvent: (kind: number, id: number, data: Buffer | null) => void,
): number;
export function rescratch(attachment: number, scratch: Uint8Array): void;
export function get(lane: number, keyLen: number): number;
export function step(lane: number, requestLen: number, command: number): number;
export function ref(attachment: number): void;
export function unref(attachment: number): void;
export function limits(set?: string): Record<string, number>;
export function bounds(): Record<string, number>;
export function takeError(): Buffer;
export function waitClosed(atExit: boolean): void;
/** The SQL that creates the tables of databases on PostgreSQL. */
export function postgresSchema(): string;
export function version(): string;
