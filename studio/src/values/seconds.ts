// Duty: seconds that were typed, as the whole milliseconds of the API.

/** `undefined` for an empty field. Rounded: 1.001 * 1000 is 1000.9999999999999. */
export const msOf = (seconds: string): number | undefined =>
  seconds === "" ? undefined : Math.round(Number(seconds) * 1000);
