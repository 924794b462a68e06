// Duty: the naive model of a database: what every operation must answer, written to be obviously
// right and not to be fast.

import { KvU64 } from "../../index.mjs";
import { compareKeys } from "./keys.mjs";

const U64 = 2n ** 64n;

export class Model {
  /** `{ key, value, versionstamp }`, in no order. */
  entries = [];
  last = "";

  get(key) {
    return this.entries.find((entry) => compareKeys(entry.key, key) === 0);
  }

  /** What a list of this selector yields, before limits. */
  list(selector, reverse) {
    const inside = this.entries.filter(({ key }) => within(selector, key));
    inside.sort((a, b) => compareKeys(a.key, b.key));
    return reverse ? inside.reverse() : inside;
  }

  /** The places of the checks that do not hold. */
  failedChecks(checks) {
    const holds = ({ key, versionstamp }) => (this.get(key)?.versionstamp ?? null) === versionstamp;
    return [...checks.keys()].filter((place) => !holds(checks[place]));
  }

  /**
   * The entries after these mutations, or null when one of them is refused. The stamp is what the
   * commit answered.
   */
  after(mutations, versionstamp) {
    let entries = this.entries;
    const found = (key) => entries.find((entry) => compareKeys(entry.key, key) === 0);
    for (const mutation of mutations) {
      const { type, key } = mutation;
      const current = found(key);
      entries = entries.filter((entry) => entry !== current);
      if (type === "delete" || (type === "set" && mutation.expireIn === 0)) continue;
      const value = type === "set" ? mutation.value : combine(mutation, current);
      if (value === refused) return null;
      entries.push({ key, value, versionstamp });
    }
    return entries;
  }

  /** Takes over a commit that happened. */
  apply(mutations, versionstamp) {
    this.entries = this.after(mutations, versionstamp);
    this.last = versionstamp;
  }
}

const refused = Symbol("refused");

/** `own`: by the method, which knows plain bigints too; else by mutate(), as Deno has it. */
function combine({ type, value: operand, own }, current) {
  if (!current) return operand;
  const { value } = current;
  if (own && typeof value === "bigint") {
    if (type === "sum") return value + operand.value;
    return (type === "min") === value < operand.value ? value : operand.value;
  }
  if (operand instanceof KvU64) {
    if (!(value instanceof KvU64)) return refused;
    const [a, b] = [value.value, operand.value];
    if (type === "sum") return new KvU64((a + b) % U64);
    return new KvU64((type === "min") === a < b ? a : b);
  }
  if (typeof operand === "bigint" && value instanceof KvU64) {
    return operand >= 0n && operand < U64 ? new KvU64((value.value + operand) % U64) : refused;
  }
  return typeof value === typeof operand ? value + operand : refused;
}

function within({ prefix, start, end }, key) {
  if (prefix) {
    if (key.length <= prefix.length) return false;
    if (compareKeys(key.slice(0, prefix.length), prefix) !== 0) return false;
  }
  if (start && compareKeys(key, start) < 0) return false;
  return !(end && compareKeys(key, end) >= 0);
}
