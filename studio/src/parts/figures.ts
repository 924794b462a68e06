// Duty: numbers, sizes and durations as text.

/** An integer with commas. `toLocaleString` loads the tables of languages, 30 ms of the first view. */
export const whole = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let [value, at] = [bytes / 1024, 0];
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at++;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[at]}`;
}

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];

/** A duration in its two largest units: `2 h 5 min`. */
export function duration(ms: number): string {
  let rest = Math.max(0, Math.round(ms / 1000));
  const parts: string[] = [];
  for (const [unit, seconds] of UNITS) {
    const count = Math.floor(rest / seconds);
    rest -= count * seconds;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.length === 0 ? "0 s" : parts.slice(0, 2).join(" ");
}

/** A count with its noun: `1 entry`, `2 entries`. */
export const counted = (n: number, one: string, many: string): string =>
  `${whole(n)} ${n === 1 ? one : many}`;
