/**
 * The kind of an object, by its internal state and not by its properties.
 *
 * Only objects that look special come here: those whose `Object.prototype.toString` is not "[object
 * Object]", and those without any own property. A plain object takes the short way in encode.ts.
 */

import { misuse } from "../../model/errors";
import { types } from "node:util";
import { refuseHidden } from "./hidden";
import { blame, notCloneable, proxyNotCloneable } from "./reject";

export const enum Kind {
  Plain,
  Map,
  Set,
  Date,
  RegExp,
  Error,
  Boxed,
  ArrayBuffer,
  Blob,
  DOMException,
  Placeholder,
}

/** Iterators and their like have no global name. */
const prototypeOf = Object.getPrototypeOf as (value: object) => object;

/**
 * Prototypes of objects with hidden state. Objects that inherit from them are refused.
 */
const refused = new Set<object>();
/** The same for streams and ports. Deno's message for them differs. */
const unsupported = new Set<object>();
/** Cryptographic keys: they could be stored, but must not be stored by accident. */
const secrets = new Set<object>();

const scope = globalThis as unknown as Record<
  string,
  { prototype?: object } & Record<string, { prototype?: object }>
>;

function collect(): void {
  for (const name of [
    "WeakRef",
    "FinalizationRegistry",
    "DisposableStack",
    "AsyncDisposableStack",
    "ShadowRealm",
  ]) {
    if (scope[name]?.prototype) refused.add(scope[name].prototype);
  }
  for (const space of ["Intl", "Temporal", "WebAssembly"]) {
    if (scope[space] === undefined) continue;
    for (const name of Object.getOwnPropertyNames(scope[space])) {
      const prototype = scope[space][name]?.prototype;
      // WebAssembly's errors are errors.
      if (prototype && !Error.prototype.isPrototypeOf(prototype)) refused.add(prototype);
    }
  }
  const iterators: object[] = [[][Symbol.iterator](), ""[Symbol.iterator](), "a".matchAll(/a/g)];
  const helpers = [][Symbol.iterator]() as {
    map?: (mapper: (value: unknown) => unknown) => object;
  };
  if (typeof helpers.map === "function") iterators.push(helpers.map((value) => value));
  const from = (scope["Iterator"] as unknown as { from?: (value: object) => object } | undefined)
    ?.from;
  if (from !== undefined)
    iterators.push(from.call(scope["Iterator"], { next: () => ({ done: true }) }));
  for (const iterator of iterators) refused.add(prototypeOf(iterator));
  for (const name of ["ReadableStream", "WritableStream", "TransformStream", "MessagePort"]) {
    if (scope[name]?.prototype) unsupported.add(scope[name].prototype);
  }
  if (scope["CryptoKey"]?.prototype) secrets.add(scope["CryptoKey"].prototype);
}
collect();

const wasmModule = scope["WebAssembly"]?.["Module"]?.prototype;

/** The kind of an object that is neither an array nor a view. Throws if it cannot be stored. */
export function kindOf(value: object): Kind {
  if (types.isProxy(value)) throw proxyNotCloneable(value);
  if (types.isMap(value)) return Kind.Map;
  if (types.isSet(value)) return Kind.Set;
  if (types.isDate(value)) return Kind.Date;
  if (types.isRegExp(value)) return Kind.RegExp;
  // In Deno a DOMException is an error to the engine too.
  if (types.isNativeError(value)) return isDOMException(value) ? Kind.DOMException : Kind.Error;
  if (types.isArrayBuffer(value)) return Kind.ArrayBuffer;
  if (types.isSharedArrayBuffer(value))
    throw blame(new Error("#<SharedArrayBuffer> could not be cloned."), value);
  if (types.isBoxedPrimitive(value)) {
    if (types.isSymbolObject(value)) throw notCloneable(value);
    return Kind.Boxed;
  }
  if (
    types.isPromise(value) ||
    types.isWeakMap(value) ||
    types.isWeakSet(value) ||
    types.isGeneratorObject(value) ||
    types.isMapIterator(value) ||
    types.isSetIterator(value) ||
    types.isArgumentsObject(value) ||
    types.isModuleNamespaceObject(value) ||
    isExternal?.(value) ||
    value === globalThis
  ) {
    throw notCloneable(value);
  }
  return kindByPrototype(value);
}

function kindByPrototype(value: object): Kind {
  let prototype = Object.getPrototypeOf(value) as object | null;
  for (
    ;
    prototype !== null && prototype !== Object.prototype;
    prototype = Object.getPrototypeOf(prototype)
  ) {
    if (prototype === wasmModule) throw misuse("Wasm modules cannot be stored");
    if (refused.has(prototype)) throw notCloneable(value);
    if (unsupported.has(prototype))
      throw blame(misuse("Unsupported object type"), value, remedyOfStream(prototype));
    if (secrets.has(prototype)) {
      throw blame(misuse("CryptoKey cannot be stored: export the key and store its bytes"), value);
    }
    if (prototype === scope["Blob"]?.prototype && isBlob(value)) return Kind.Blob;
    if (prototype === scope["DOMException"]?.prototype && isDOMException(value))
      return Kind.DOMException;
    const name = nodeSecret(prototype);
    if (name !== null)
      throw blame(misuse(`${name} cannot be stored: export it and store its bytes`), value);
    refuseHidden(value, prototype);
  }
  return Kind.Plain;
}

function remedyOfStream(prototype: object): string | undefined {
  const isReadable = prototype === scope["ReadableStream"]?.prototype;
  return isReadable ? "store its bytes: await new Response(stream).bytes()" : undefined;
}

/** Deno has none. */
const isExternal = types.isExternal as ((value: unknown) => boolean) | undefined;

const blobSize =
  scope["Blob"]?.prototype && Object.getOwnPropertyDescriptor(scope["Blob"].prototype, "size")?.get;
const exceptionCode =
  scope["DOMException"]?.prototype &&
  Object.getOwnPropertyDescriptor(scope["DOMException"].prototype, "code")?.get;

/** Whether the object has a Blob's inner state, and not only its prototype. */
function isBlob(value: object): boolean {
  try {
    return typeof blobSize?.call(value) === "number";
  } catch {
    return false;
  }
}

function isDOMException(value: object): boolean {
  if (!(scope["DOMException"]?.prototype as object | undefined)?.isPrototypeOf(value)) return false;
  try {
    return typeof exceptionCode?.call(value) === "number";
  } catch {
    return false;
  }
}

/** node:crypto's key and certificate classes, named without loading the module. */
function nodeSecret(prototype: object): string | null {
  const constructor = Object.getOwnPropertyDescriptor(prototype, "constructor")?.value as unknown;
  if (typeof constructor !== "function") return null;
  if (constructor.name !== "KeyObject" && constructor.name !== "X509Certificate") return null;
  // Only built-in classes print without their source.
  const names = Object.getOwnPropertyNames(prototype);
  return names.includes("export") || names.includes("equals") || names.includes("fingerprint256")
    ? constructor.name
    : null;
}
