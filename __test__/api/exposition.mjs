// Duty: a strict parser of Prometheus' text format 0.0.4: what it does not know is an error.

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const LABEL = `([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\\\n]|\\\\["\\\\n])*)"`;
const VALUE = "(?:[+-]?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?|[+-]?Inf|NaN)";
const HELP = new RegExp(`^# HELP (${NAME}) (?:[^\\\\\n]|\\\\[\\\\n])*$`);
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram|summary|untyped)$`);
const SAMPLE = new RegExp(
  `^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)?,?\\})? (${VALUE})(?: -?\\d+)?$`,
);

/** Families by name: `{ type, samples: [{ name, labels, value }] }`. */
export function parse(text) {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const families = new Map();
  const seen = new Set();
  let family;
  for (const line of text.slice(0, -1).split("\n")) {
    if (HELP.test(line)) continue;
    const typed = TYPE.exec(line);
    if (typed !== null) {
      const [, name, type] = typed;
      if (families.has(name)) throw new Error(`${name} is typed twice`);
      family = { name, type, samples: [] };
      families.set(name, family);
      continue;
    }
    const sample = SAMPLE.exec(line);
    if (sample === null) throw new Error(`not a line of the format: ${line}`);
    const [, name, labelText] = sample;
    const endings = family?.type === "summary" ? ["", "_sum", "_count"] : [""];
    if (!endings.some((ending) => name === family?.name + ending)) {
      throw new Error(`${name} is not of the family before it`);
    }
    const labels = {};
    for (const [, label, escaped] of (labelText ?? "").matchAll(new RegExp(LABEL, "g"))) {
      if (label in labels) throw new Error(`${label} is there twice: ${line}`);
      labels[label] = escaped.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    }
    const series = JSON.stringify([
      name,
      Object.entries(labels)
        .filter(([, is]) => is !== "")
        .sort(),
    ]);
    if (seen.has(series)) throw new Error(`the same series twice: ${line}`);
    seen.add(series);
    const value = Number(sample.at(-1).replace("Inf", "Infinity"));
    if (family.type === "counter" && !(value >= 0)) throw new Error(`a counter below 0: ${line}`);
    family.samples.push({ name, labels, value });
  }
  return families;
}
