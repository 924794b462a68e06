// Duty: the lines that differ between two texts, for views of conflicts and changes.

export interface Line {
  readonly mark: "same" | "added" | "removed";
  readonly text: string;
}

/** Lines up to which the longest common sequence is searched. Beyond, all lines differ. */
const LINES_MAX = 800;

export function changesOf(before: string, after: string): Line[] {
  const a = before.split("\n");
  const b = after.split("\n");
  if (a.length > LINES_MAX || b.length > LINES_MAX) {
    const whole = (mark: Line["mark"], lines: string[]): Line[] =>
      lines.map((text) => ({ mark, text }));
    return before === after ? whole("same", a) : [...whole("removed", a), ...whole("added", b)];
  }
  // lengths[i][j]: of the longest sequence that a from i and b from j have in common.
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i]![j] =
        a[i] === b[j]
          ? lengths[i + 1]![j + 1]! + 1
          : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ mark: "same", text: a[i++]! });
      j++;
    } else if (j === b.length || (i < a.length && lengths[i + 1]![j]! >= lengths[i]![j + 1]!)) {
      lines.push({ mark: "removed", text: a[i++]! });
    } else {
      lines.push({ mark: "added", text: b[j++]! });
    }
  }
  return lines;
}
