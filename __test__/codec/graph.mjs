// Whether two values are the same: kind by kind, down to the sign of zero, the holes of arrays and
// the stacks of errors, with the same objects in the same places. Deep equality tells none of these
// last, and never ends, or overflows, on maps and sets that hold themselves.

import assert from "node:assert/strict";

/** Throws where `a` and `b` differ; `what` says in the message which values they were. */
export function assertSame(a, b, what = "value") {
  const there = new Map();
  const back = new Map();
  const open = [[a, b, what]];
  while (open.length > 0) {
    const [x, y, path] = open.pop();
    if (typeof x !== "object" || x === null || typeof y !== "object" || y === null) {
      if (!Object.is(x, y)) assert.fail(`${path}: ${String(x)} is not ${String(y)}`);
      continue;
    }
    if (there.has(x) || back.has(y)) {
      assert.ok(
        there.get(x) === y && back.get(y) === x,
        `${path}: shared in one, not in the other`,
      );
      continue;
    }
    there.set(x, y);
    back.set(y, x);
    assert.equal(Object.getPrototypeOf(x), Object.getPrototypeOf(y), `${path}: class`);
    for (const [part, left, right] of parts(x, y, path)) open.push([left, right, `${path}${part}`]);
  }
}

function* parts(x, y, path) {
  if (x instanceof Map || x instanceof Set) {
    assert.equal(x.size, y.size, `${path}: size`);
    const [left, right] = [[...x], [...y]];
    for (let i = 0; i < left.length; i++) {
      if (x instanceof Set) yield [`<${i}>`, left[i], right[i]];
      else {
        yield [`<key ${i}>`, left[i][0], right[i][0]];
        yield [`<${i}>`, left[i][1], right[i][1]];
      }
    }
  } else if (x instanceof Date) {
    yield [".time", x.getTime(), y.getTime()];
  } else if (x instanceof RegExp) {
    yield [".source", String(x), String(y)];
  } else if (x instanceof Error) {
    for (const name of ["message", "stack", "cause"]) {
      if (name !== "stack")
        assert.equal(Object.hasOwn(x, name), Object.hasOwn(y, name), `${path}: own ${name}`);
      yield [`.${name}`, x[name], y[name]];
    }
  } else if (ArrayBuffer.isView(x)) {
    for (const name of ["byteOffset", "byteLength", "buffer"]) yield [`.${name}`, x[name], y[name]];
  } else if (x instanceof ArrayBuffer) {
    assert.deepEqual(new Uint8Array(x), new Uint8Array(y), `${path}: bytes`);
    yield [".maxByteLength", x.maxByteLength, y.maxByteLength];
  } else {
    if ([Number, String, Boolean, BigInt].some((kind) => x instanceof kind))
      yield ["()", x.valueOf(), y.valueOf()];
    const keys = Object.keys(x);
    assert.deepEqual(keys, Object.keys(y), `${path}: keys`);
    if (Array.isArray(x)) assert.equal(x.length, y.length, `${path}: length`);
    for (const key of keys) yield [`.${key}`, x[key], y[key]];
  }
}
