// Duty: the exit codes. docs/cli.md and every --help list them.

export const DONE = 0;
export const NOT_DONE = 1;
export const WRONG_USAGE = 2;
export const INTERRUPTED = 130;

export const EXIT_CODES: readonly (readonly [number, string])[] = [
  [DONE, "done"],
  [
    NOT_DONE,
    "it did not happen: no such entry, a check failed, the database refused, lines were not stored",
  ],
  [WRONG_USAGE, "the command line is wrong, and nothing was done"],
  [INTERRUPTED, "interrupted"],
];
