// Duty: filters again, in JavaScript: what `where` means, written to be obviously right. And random
// values and filters for it.

import { KvU64 } from "../../index.mjs";

/** Whether a value meets a filter. */
export function meets(value, where) {
  return conditions(where, value instanceof KvU64 ? value.value : value, []);
}

function conditions(where, value, path) {
  return Object.entries(where).every(([name, operand]) => {
    if (name === "$and") return operand.every((inner) => conditions(inner, value, path));
    if (name === "$or") return operand.some((inner) => conditions(inner, value, path));
    if (name === "$not") return !conditions(operand, value, path);
    if (name.startsWith("$")) return operator(name, operand, reach(value, path));
    const steps = [...path, ...name.split(".")];
    if (isCondition(operand)) return conditions(operand, value, steps);
    return operator("$eq", operand, reach(value, steps));
  });
}

const isCondition = (operand) =>
  operand !== null && Object.getPrototypeOf(operand) === Object.prototype;

/** Everything that a path leads to. */
function reach(value, [step, ...rest]) {
  if (step === undefined) return [value];
  const direct = into(value, step);
  if (direct.length > 0) return direct.flatMap((inner) => reach(inner, rest));
  if (!Array.isArray(value)) return [];
  return value.flatMap((element) => into(element, step)).flatMap((inner) => reach(inner, rest));
}

function into(value, step) {
  if (Array.isArray(value))
    return Object.hasOwn(value, step) && step !== "length" ? [value[step]] : [];
  if (value instanceof Map) {
    return [...value]
      .filter(([key]) => typeof key !== "bigint" && String(key) === step)
      .map(([, inner]) => inner);
  }
  const plain =
    value !== null &&
    typeof value === "object" &&
    Object.getPrototypeOf(value) === Object.prototype;
  return plain && Object.hasOwn(value, step) ? [value[step]] : [];
}

const COMPLEMENTS = {
  $ne: "$eq",
  $nin: "$in",
  $notContains: "$contains",
  $nei: "$eqi",
  $notContainsi: "$containsi",
  $notEmpty: "$empty",
};

function operator(name, operand, found) {
  if (name in COMPLEMENTS) return !operator(COMPLEMENTS[name], operand, found);
  const some = (test) => found.some(test);
  const nothing = (test) => found.length === 0 || found.some(test);
  switch (name) {
    case "$exists":
      return found.length > 0 === operand;
    case "$null":
      return nothing((item) => item == null) === operand;
    case "$empty":
      return nothing((item) => item == null || size(item) === 0) === operand;
    case "$in":
      return some((item) => operand.some((one) => equal(item, one)));
    case "$eq":
      return some((item) => equal(item, operand));
    case "$gt":
      return some((item) => compare(item, operand) > 0);
    case "$gte":
      return some((item) => compare(item, operand) >= 0);
    case "$lt":
      return some((item) => compare(item, operand) < 0);
    case "$lte":
      return some((item) => compare(item, operand) <= 0);
    case "$between":
      return some((item) => compare(item, operand[0]) >= 0 && compare(item, operand[1]) <= 0);
    case "$contains":
      return some((item) => contains(item, operand));
    case "$startsWith":
      return some((item) => typeof item === "string" && item.startsWith(operand));
    case "$endsWith":
      return some((item) => typeof item === "string" && item.endsWith(operand));
    case "$eqi":
      return some((item) => typeof item === "string" && fold(item) === fold(operand));
    case "$containsi":
      return some((item) =>
        typeof item === "string"
          ? fold(item).includes(fold(operand))
          : elements(item).some((one) => typeof one === "string" && fold(one) === fold(operand)),
      );
    case "$startsWithi":
      return some((item) => typeof item === "string" && fold(item).startsWith(fold(operand)));
    case "$endsWithi":
      return some((item) => typeof item === "string" && fold(item).endsWith(fold(operand)));
    default:
      throw new Error(name);
  }
}

/** Enough for the letters that are drawn here. */
const fold = (text) => text.replaceAll("ß", "ss").toUpperCase().toLowerCase();

const elements = (item) => (Array.isArray(item) ? item : item instanceof Set ? [...item] : []);

function contains(item, operand) {
  if (typeof item === "string" && typeof operand === "string") return item.includes(operand);
  if (item instanceof Uint8Array && operand instanceof Uint8Array) {
    return Buffer.from(item).includes(Buffer.from(operand));
  }
  return elements(item).some((element) => equal(element, operand));
}

function size(item) {
  if (typeof item === "string" || Array.isArray(item) || item instanceof Uint8Array)
    return item.length;
  if (item instanceof Map || item instanceof Set) return item.size;
  const plain = typeof item === "object" && Object.getPrototypeOf(item) === Object.prototype;
  return plain ? Object.keys(item).length : Number.NaN;
}

const equal = (a, b) => (a === null && b === null) || compare(a, b) === 0;

/** Below zero, zero, above; NaN for what has no order. JavaScript compares bigints exactly. */
function compare(a, b) {
  const kind = kindOf(a);
  if (kind === undefined || kind !== kindOf(b)) return Number.NaN;
  if (kind === "string" || kind === "bytes")
    return Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const [x, y] = kind === "date" ? [a.getTime(), b.getTime()] : [a, b];
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : Number.NaN;
}

function kindOf(value) {
  if (value instanceof Date) return "date";
  if (value instanceof Uint8Array) return "bytes";
  const type = typeof value;
  if (type === "number" || type === "bigint") return "number";
  return type === "string" || type === "boolean" ? type : undefined;
}

const NAMES = ["a", "b", "0", "1", "1e+21"];
const TEXTS = ["", "a", "A", "ab", "Straße", "STRASSE", "é", "😀", "\uffff"];
const NUMBERS = [
  0,
  -0,
  1,
  -1.5,
  2 ** 53,
  Number.NaN,
  Infinity,
  0n,
  1n,
  -2n,
  2n ** 53n + 1n,
  10n ** 30n,
];

export function randomPrimitive(random) {
  return random.pick([
    () => null,
    () => random.chance(0.5),
    () => random.pick(NUMBERS),
    () => random.pick(TEXTS),
    () => new Date(random.pick([0, 1.5e12, -1, Number.NaN])),
    () => new Uint8Array(random.list(random.int(0, 2), () => random.int(0, 2))),
  ])();
}

/** A value, deep enough for paths. Objects are met again now and then. */
export function randomSubject(random, depth = 0, met = []) {
  if (depth > 3 || random.chance(0.3)) return randomPrimitive(random);
  if (met.length > 0 && random.chance(0.1)) return random.pick(met);
  const inner = () => randomSubject(random, depth + 1, met);
  const names = NAMES.filter(() => random.chance(0.5));
  const made = random.pick([
    () => Object.fromEntries(names.map((name) => [name, inner()])),
    () => random.list(random.int(0, 3), inner),
    () =>
      new Map(
        names.map((name) => [random.chance(0.3) && name < "9" ? Number(name) : name, inner()]),
      ),
    () => new Set(random.list(random.int(0, 2), () => randomPrimitive(random))),
    () => [inner(), , inner()],
    // Names that are no indexes.
    () => Object.assign([inner(), , inner()], { "": inner(), "01": inner() }),
  ])();
  met.push(made);
  return made;
}

export function randomWhere(random, depth = 0) {
  const names = random.list(random.int(depth === 0 ? 1 : 0, 2), () => {
    const steps = random.list(random.int(1, 3), () => random.pick(NAMES));
    return [
      steps.join("."),
      random.chance(0.3) ? randomPrimitive(random) : randomCondition(random, depth),
    ];
  });
  if (depth < 2 && random.chance(0.4))
    names.push(randomLogic(random, () => randomWhere(random, depth + 1)));
  if (random.chance(0.1)) names.push(...Object.entries(randomCondition(random, 2)));
  return Object.fromEntries(names);
}

function randomLogic(random, inner) {
  return random.pick([
    () => ["$not", inner()],
    () => ["$and", random.list(random.int(0, 2), inner)],
    () => ["$or", random.list(random.int(0, 2), inner)],
  ])();
}

function randomCondition(random, depth) {
  const ordered = () => {
    for (;;) {
      const value = randomPrimitive(random);
      if (value !== null) return value;
    }
  };
  const text = () => random.pick(TEXTS);
  const one = () =>
    random.pick([
      () => [random.pick(["$eq", "$ne", "$contains", "$notContains"]), randomPrimitive(random)],
      () => [random.pick(["$gt", "$gte", "$lt", "$lte"]), ordered()],
      () => ["$between", [ordered(), ordered()]],
      () => [
        random.pick(["$in", "$nin"]),
        random.list(random.int(0, 3), () => randomPrimitive(random)),
      ],
      () => [random.pick(["$startsWith", "$endsWith", "$eqi", "$nei", "$containsi"]), text()],
      () => [random.pick(["$notContainsi", "$startsWithi", "$endsWithi"]), text()],
      () => [random.pick(["$null", "$empty", "$notEmpty", "$exists"]), random.chance(0.5)],
      () => (depth < 2 ? randomLogic(random, () => randomCondition(random, depth + 1)) : one()),
    ])();
  return Object.fromEntries(random.list(random.int(1, 2), one));
}
