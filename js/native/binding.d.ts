// Types of the addon's loader (dist/native/binding.js), as js/native/contract.md describes it.

/** What the addon needs to know to open a database. */
export interface NativeOptions {
  /** ":memory:" or an absolute path. */
  path: string;
  durability: "full" | "normal";
  readonly: boolean;
  busyTimeoutMs: number;
  /** The format of a file's values, if there is a wish. */
  encoding?: "cbor" | "v8" | undefined;
  /** Every bound by name. */
  limits: Record<string, number>;
  /** A database elsewhere; the path is then not looked at. */
  remote?: NativeRemote;
}

/** Where a database elsewhere is, and who asks. */
export interface NativeRemote {
  url: string;
  accessToken: string;
  timeoutMs: number;
}

/** One open database. Sync reads answer a length or one of the negative codes of js/native.ts. */
export interface NativeHandle {
  lane(): number;
  getMany(count: number, requestLen: number): number;
  getBlocking(count: number, frame: Uint8Array, len: number): Buffer | null;
  page(requestLen: number, out: Uint8Array): number;
  release(): void;
  read(id: number, count: number, frame: Uint8Array, len: number): void;
  write(id: number, count: number, frame: Uint8Array, len: number): void;
  call(id: number, verb: number, frame: Uint8Array, len: number): void;
  watch(id: number, count: number, frame: Uint8Array, len: number, raw: boolean): void;
  watchNext(id: number): void;
  watchCancel(id: number): void;
  feed(id: number, frame: Uint8Array, len: number): void;
  feedNext(id: number): void;
  feedCancel(id: number): void;
  listen(id: number, credits: number, lockMs: number, queue: Uint8Array, len: number): void;
  settle(id: number, number: number, outcome: number, reason: Uint8Array, len: number): void;
  unlisten(id: number): void;
  forgetListener(id: number): void;
  receive(id: number, lockMs: number, once: boolean, queue: Uint8Array, len: number): void;
  receiveCancel(id: number): void;
  abandon(): void;
  close(id: number): void;
}

/** Starts to open; OPENED or OPEN_FAILED comes with this id. */
export const Handle: new (
  attachment: number,
  id: number,
  options: NativeOptions,
) => NativeHandle;

/** A KV Connect server. */
export interface NativeServer {
  /** REPLIED comes with this id when it is closed. */
  close(id: number): void;
}

/** Starts with options in JSON; REPLIED or CALL_FAILED comes with this id. */
export const Server: new (attachment: number, id: number, options: string) => NativeServer;

/** A restoration that is under way. */
export interface NativeRestore {
  /** Pages done, and pages in all. */
  progress(): number[];
  abandon(): void;
}

/** Starts by absolute paths; REPLIED with what was restored, or CALL_FAILED, comes with this id. */
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
export function ref(attachment: number): void;
export function unref(attachment: number): void;
export function limits(set?: string): Record<string, number>;
export function bounds(): Record<string, number>;
export function takeError(): Buffer;
export function waitClosed(atExit: boolean): void;
export function version(): string;
