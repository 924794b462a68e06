// Duty: the class of the promises that async functions return, whatever a program has put in the
// place of the global Promise (bluebird, zone.js, a polyfill), before this module was loaded or after.
// Invariant: js/ makes promises by this class alone. __test__/packaging/realms.test.mjs checks it.

export const NativePromise = (async () => {})().constructor as PromiseConstructor;
