// Duty: the subset of protobuf that the mock server needs, in both directions.

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest > 0n ? low | 0x80 : low);
  } while (rest > 0n);
  return Buffer.from(bytes);
}

/** A message of `[number, value]` fields: bytes, numbers and booleans. */
export function message(...fields) {
  const parts = fields.map(([number, value]) =>
    typeof value === "object"
      ? Buffer.concat([varint((number << 3) | 2), varint(value.length), value])
      : Buffer.concat([varint(number << 3), varint(value)]),
  );
  return Buffer.concat(parts);
}

/** The fields of a message by number, each a list: bytes, or numbers as bigints. */
export function fields(bytes) {
  const found = {};
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(next());
    const value = tag % 8 === 2 ? take(Number(next())) : next();
    (found[tag >> 3] ??= []).push(value);
  }
  return found;

  function take(length) {
    at += length;
    return bytes.subarray(at - length, at);
  }
}
