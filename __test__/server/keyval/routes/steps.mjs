// Duty: what the steps of the lists of routes have in common.

export const SAVE = Symbol("save");
export const ERROR = Symbol("error");
export const EVENTS = Symbol("events");
export const RAW = Symbol("raw");

/** A body that is no JSON. */
export const raw = (body) => ({ [RAW]: body });
export const save = (name) => ({ [SAVE]: name });
export const error = (status, text) => ({ [ERROR]: status, text });
export const stamp = (value) => /^[0-9a-f]{20}$/.test(value);
export const text = (value) => typeof value === "string" && value !== "";
export const number = (value) => Number.isFinite(value);
export const written = { ok: true, versionstamp: stamp };
export const entry = (key, value) => ({ key, value, versionstamp: stamp });
export const absent = (key) => ({ key, value: null, versionstamp: null });

/** Three users, beside another entry. */
export const USERS = [
  ["PUT", "/keys/users/1", { name: "Ada", age: 36 }, written],
  ["PUT", "/keys/users/2", { name: "Bo", age: 17, tag: null }, written],
  ["PUT", "/keys/users/2/mail", "bo@example.com", written],
  ["PUT", "/keys/config", { on: true }, written],
];
export const ADA = entry(["users", 1], { name: "Ada", age: 36 });
export const BO = entry(["users", 2], { name: "Bo", age: 17, tag: null });
export const MAIL = entry(["users", 2, "mail"], "bo@example.com");
export const CONFIG = entry(["config"], { on: true });
