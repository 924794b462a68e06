// Duty: the entry of openkv/testing: what the tests of programs with openkv use.

export { faulty, type FaultyOptions } from "./faulty.js";
export { type TestClock, testClock } from "./test-clock.js";
