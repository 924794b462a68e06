// Duty: makes properties and objects that Object.prototype cannot change, in a program that has put
// properties there: an object inherits them, a descriptor inherits `get`, `set` and `value`.

/** An object with these properties that inherits none. */
export function bare<O extends object>(properties: O): O {
  return { __proto__: null, ...properties };
}

export function defineProperty<O extends object>(
  object: O,
  name: PropertyKey,
  descriptor: PropertyDescriptor,
): O {
  return Object.defineProperty(object, name, bare(descriptor));
}

/** A property as an assignment makes it, also where Object.prototype has one that is read-only. */
export function assign<O extends object, Name extends string, Value>(
  object: O,
  name: Name,
  value: Value,
): O & { [N in Name]: Value } {
  const plain = { value, enumerable: true, configurable: true, writable: true };
  return defineProperty(object, name, plain) as O & { [N in Name]: Value };
}
