// The indexes of index-kill.mjs.

export const PREFIX = ["t"];

export const INDEXES = {
  unique: { type: "value", prefix: PREFIX, on: "u", unique: true, name: "u" },
  ordered: { type: "value", prefix: PREFIX, on: ["n", "id"], name: "n" },
  multi: { type: "value", prefix: PREFIX, on: "tags", multi: true, name: "tags" },
};
