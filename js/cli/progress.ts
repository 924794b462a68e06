// Duty: the progress of a long command: a line on the terminal, rewritten a few times a second.
// Never: output on a stream that is not a terminal.

const REDRAW_MS = 100;
const BAR_CELLS = 24;
/** The width of a terminal that does not say it. */
const LINE_CELLS = 80;

export class Progress {
  readonly #what: string;
  #total: number | undefined;
  readonly #unit: string;
  readonly #startMs: number;
  readonly #shown: boolean;
  #lastMs = 0;

  /** `total` in the unit of `update`'s `done`; without one there is no bar and no time left. */
  constructor(what: string, total: number | undefined, unit = "entries", nowMs = Date.now()) {
    this.#what = what;
    this.#total = total;
    this.#unit = unit;
    this.#startMs = nowMs;
    this.#shown = process.stderr.isTTY === true;
  }

  /** Sets the total once it is known. */
  expect(total: number | undefined): void {
    this.#total = total;
  }

  update(done: number, counted: number, nowMs = Date.now()): void {
    if (!this.#shown || nowMs - this.#lastMs < REDRAW_MS) return;
    this.#lastMs = nowMs;
    const line = describe(
      { what: this.#what, unit: this.#unit, total: this.#total, done, counted },
      nowMs - this.#startMs,
    );
    process.stderr.write(`\r\u001b[2K${fitted(line)}`);
  }

  /** Clears the line, and returns a summary. */
  end(entries: number, nowMs = Date.now()): string {
    if (this.#shown) process.stderr.write("\r\u001b[2K");
    const seconds = (nowMs - this.#startMs) / 1000;
    return `${this.#what} ${entries.toLocaleString("en")} entries in ${seconds.toFixed(1)} s`;
  }
}

/** Shows a line on the terminal until the returned function clears it. */
export function showLine(text: string): () => void {
  if (process.stderr.isTTY !== true) return () => {};
  process.stderr.write(`\r\u001b[2K${fitted(text)}`);
  return () => void process.stderr.write("\r\u001b[2K");
}

/** What the terminal has room for: a line that wraps could not be cleared. */
function fitted(line: string): string {
  return line.slice(0, Math.max((process.stderr.columns || LINE_CELLS) - 1, 1));
}

interface State {
  readonly what: string;
  readonly unit: string;
  readonly total: number | undefined;
  readonly done: number;
  readonly counted: number;
}

/** The line: a label, a bar, the count, the rate, the time left. */
export function describe(state: State, elapsedMs: number): string {
  const { what, unit, total, done } = state;
  const seconds = Math.max(elapsedMs, 1) / 1000;
  const rate = `${Math.round(state.counted / seconds).toLocaleString("en")}/s`;
  const counted = `${state.counted.toLocaleString("en")} ${unit}  ${rate}`;
  if (total === undefined || total === 0) return `${what}  ${counted}`;
  const part = Math.min(done / total, 1);
  const full = Math.round(part * BAR_CELLS);
  const bar = `${"█".repeat(full)}${"░".repeat(BAR_CELLS - full)}`;
  const left = done === 0 ? "" : `  ${duration(((total - done) / done) * seconds)} left`;
  return `${what} ${bar} ${Math.floor(part * 100)}%  ${counted}${left}`;
}

function duration(seconds: number): string {
  const whole = Math.max(Math.ceil(seconds), 0);
  const minutes = Math.floor(whole / 60);
  return minutes > 0 ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}
