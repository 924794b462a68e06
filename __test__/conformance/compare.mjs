// Duty: say where two values differ, to the last structured-clone detail: classes, holes, extra
// properties, −0, shared references and cycles. Written out because the deep equalities of Node,
// Bun and Deno disagree with one another in exactly these corners.

const TypedArray = Object.getPrototypeOf(Uint8Array);

/** The first difference as a path and a reason, or null when the two are the same. */
export function difference(actual, expected) {
  return compare(actual, expected, "value", { there: new Map(), back: new Map() });
}

function compare(a, b, path, seen) {
  if (!isObject(a) || !isObject(b)) {
    return Object.is(a, b) ? null : `${path}: ${show(a)} is not ${show(b)}`;
  }
  if (seen.there.has(a) || seen.back.has(b)) {
    return seen.there.get(a) === b && seen.back.get(b) === a ? null : `${path}: sharing differs`;
  }
  seen.there.set(a, b);
  seen.back.set(b, a);
  const [classA, classB] = [className(a), className(b)];
  if (classA !== classB) return `${path}: a ${classA} is not a ${classB}`;
  return compareContent(a, b, classA, path, seen) ?? compareProperties(a, b, path, seen);
}

function compareContent(a, b, name, path, seen) {
  if (Array.isArray(a)) return compare(a.length, b.length, `${path}.length`, seen);
  if (a instanceof Map) return compareLists([...a].flat(), [...b].flat(), `${path}(map)`, seen);
  if (a instanceof Set) return compareLists([...a], [...b], `${path}(set)`, seen);
  if (a instanceof Date) return compare(a.getTime(), b.getTime(), `${path}(date)`, seen);
  if (a instanceof RegExp) {
    return compareLists([a.source, a.flags], [b.source, b.flags], `${path}(regexp)`, seen);
  }
  if (["Boolean", "Number", "String", "BigInt"].includes(name)) {
    return compare(a.valueOf(), b.valueOf(), `${path}(boxed)`, seen);
  }
  if (a instanceof Error) {
    const fields = (e) => [Object.hasOwn(e, "message"), e.message, e.name, e.stack];
    const cause = (e) => [Object.hasOwn(e, "cause"), e.cause];
    return (
      compareLists(fields(a), fields(b), `${path}(error)`, seen) ??
      compareLists(cause(a), cause(b), `${path}(cause)`, seen)
    );
  }
  if (a instanceof ArrayBuffer) {
    const shape = (x) => [Boolean(x.resizable), x.resizable ? x.maxByteLength : x.byteLength];
    return (
      compareLists(shape(a), shape(b), `${path}(buffer)`, seen) ??
      compareBytes(new Uint8Array(a), new Uint8Array(b), path)
    );
  }
  if (ArrayBuffer.isView(a)) return compareBytes(bytesOf(a), bytesOf(b), path);
  return null;
}

function compareProperties(a, b, path, seen) {
  if (a instanceof Error || ArrayBuffer.isView(a) || a instanceof String) return null;
  const [keysA, keysB] = [Object.keys(a), Object.keys(b)];
  if (keysA.join("\0") !== keysB.join("\0")) {
    return `${path}: properties [${keysA}] are not [${keysB}]`;
  }
  for (const key of keysA) {
    const found = compare(a[key], b[key], `${path}.${key}`, seen);
    if (found) return found;
  }
  return null;
}

function compareLists(a, b, path, seen) {
  if (a.length !== b.length) return `${path}: ${a.length} items are not ${b.length}`;
  for (let i = 0; i < a.length; i++) {
    const found = compare(a[i], b[i], `${path}[${i}]`, seen);
    if (found) return found;
  }
  return null;
}

function compareBytes(a, b, path) {
  if (a.length !== b.length) return `${path}: ${a.length} bytes are not ${b.length}`;
  const at = a.findIndex((byte, i) => byte !== b[i]);
  return at === -1 ? null : `${path}: byte ${at} is ${a[at]}, not ${b[at]}`;
}

function bytesOf(view) {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

function isObject(x) {
  return (typeof x === "object" && x !== null) || typeof x === "function";
}

function className(object) {
  if (object instanceof TypedArray) return object[Symbol.toStringTag];
  const prototype = Object.getPrototypeOf(object);
  return prototype === null ? "null" : (prototype.constructor?.name ?? "?");
}

/** A value in few words, for messages. */
export function show(value) {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "string") return JSON.stringify(value.slice(0, 200));
  if (Object.is(value, -0)) return "-0";
  if (!isObject(value)) return String(value);
  if (ArrayBuffer.isView(value)) return `${className(value)} [${bytesOf(value).slice(0, 40)}]`;
  try {
    const text = JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${v}n` : v));
    return (text ?? className(value)).slice(0, 200);
  } catch {
    return className(value);
  }
}
