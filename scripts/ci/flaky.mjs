// Duty: the list of tests that may fail once, each with its cause.
//
// `npm test`, `npm run test:runtime` and CI run a failed test once more if it is in this list. Any other
// failure fails the run. A test leaves the list when its cause is corrected; Rust tests are never in it.

/**
 * Causes by name: of a test file below `__test__/` ("replica/cuts.test.mjs"), a run in another runtime
 * ("deno api"), or a step of CI ("studio-test").
 */
export const FLAKY = {};

/** Whether all of these tests may fail once. */
export function mayFailOnce(names) {
  return names.length > 0 && names.every((name) => Object.hasOwn(FLAKY, name));
}
