// Duty: values and parts of keys in the typed form of the server (docs/format.md §5).
// Invariant: the studio never turns a value into another form to keep it, so nothing is lost.

/** A value, or a part of a key. */
export interface Node {
  readonly type: string;
  readonly value?: unknown;
  /** Of bytes. */
  readonly byteLength?: number;
}

export type Key = readonly Node[];

export interface Entry {
  readonly key: Key;
  readonly value: Node | null;
  readonly valueError?: { readonly code: string; readonly detail: string };
  readonly versionstamp: string | null;
  readonly expireAt?: number;
}

/** The type of a node in place of a value that the server cannot read. It cannot be written. */
export const UNREADABLE = "unreadable";

interface Item {
  readonly value?: Node | null;
  readonly valueError?: { readonly detail: string };
}

/** An entry or message of an answer, with its error in place of a value that cannot be read. */
export function readable<T extends Item>(item: T): T {
  const { valueError } = item;
  if (valueError === undefined) return item;
  return { ...item, value: { type: UNREADABLE, value: valueError.detail } };
}

export const text = (value: string): Node => ({ type: "string", value });
export const UNDEFINED: Node = { type: "undefined" };

export function bytesOf(node: Node): Uint8Array {
  const base64 = String(node.value).replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

export function fromBytes(type: string, bytes: Uint8Array): Node {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  const value = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return { type, value, byteLength: bytes.length };
}

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether two nodes are the same; `undefined` and missing ones are the same too. */
export function sameNode(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The approximate size of a value as it was sent. */
export function sizeOf(node: Node | null): number {
  return node === null ? 0 : (node.byteLength ?? JSON.stringify(node).length);
}
