// Duty: writes the table in docs/contract.md that says which feature works on which place, from the tables of
// capabilities and commands in the Rust. `npm run generate` runs it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
export const page = join(root, "docs", "contract.md");
const capabilities = readFileSync(join(root, "crates/core/src/model/capability.rs"), "utf8");
const commands = readFileSync(join(root, "crates/wire/src/protocol/command.rs"), "utf8");
const START = "<!-- table: npm run generate -->\n";
const END = "<!-- end of the table -->\n";

/** The capabilities that a replica adds: reads, which it answers itself. */
const OF_A_REPLICA = ["SynchronousReads", "FullTextSearch"];

/** The places by their heading: the constant of `Capabilities`, and what else decides. */
const PLACES = {
  file: { lacks: lacksOf("FILE") },
  memory: { lacks: lacksOf("MEMORY") },
  PostgreSQL: { lacks: lacksOf("POSTGRES") },
  "PostgreSQL, led": { lacks: lacksOf("POSTGRES") },
  "PostgreSQL, replica": { lacks: withReplica(lacksOf("POSTGRES")) },
  "openkv's server": { lacks: lacksOf("REMOTE"), isRemote: true },
  "openkv's server, replica": { lacks: withReplica(lacksOf("REMOTE")), isRemote: true },
  "another KV Connect server": { lacks: lacksOf("REMOTE"), isRemote: true, isOther: true },
};

/**
 * The rows. `command` is a row of crates/wire/src/protocol/command.rs, which names its capability. A feature with a
 * command, and an `extension` of another kind, needs openkv's own server; one that is `inProcess` needs
 * the database in this process.
 */
const FEATURES = [
  ["`get`, `getMany`, `list`, `paginate`", {}],
  ["`getSync`, `getManySync`", { capability: "SynchronousReads" }],
  ["`count`", {}],
  ["`where`, `keysOnly`", {}],
  ["`depth`, `withExpiry`", { command: "Scan" }],
  ["`set`, `delete`, `atomic`; `sum`, `min`, `max` of `KvU64`", {}],
  ["`transaction`", {}],
  ["`append`, `prepend`, `touch`, `persist`, `uuidv7`", { extension: true }],
  ["`deleteMany`", { command: "DeleteMany" }],
  ["`ttl`", { command: "Ttl" }],
  ["`watch` of keys", {}],
  ["`watch` of a range", { extension: true }],
  ["`enqueue`", {}],
  ["`listenQueue`", { extension: true }],
  ["`queue`: named queues, dead letters", { command: "QueueStats" }],
  ["`lease`, `checkLease`", { extension: true }],
  ["`limiter`", { extension: true }],
  ["`once`", { extension: true }],
  ["`createIndex`, `listIndexes`, `dropIndex`", { command: "CreateIndex" }],
  ["`explain`", { command: "Explain" }],
  ["`search`", { command: "Search" }],
  ["`at`", { inProcess: true }],
  ["`history`", { command: "History" }],
  ["`archive`", { inProcess: true, capability: "Archive" }],
  ["`backup`", { command: "Backup" }],
  ["`check`", { command: "Check" }],
  ["`vacuum`", { command: "Vacuum" }],
  ["`checkpoint`", { command: "Checkpoint" }],
  ["`stats`", { command: "Stats" }],
  ["`metrics`", { command: "Metrics" }],
];

/** The features, each with the places where it works: `Map<feature, Map<place, boolean>>`. */
export function features() {
  return new Map(
    FEATURES.map(([feature, needs]) => [
      feature,
      new Map(Object.entries(PLACES).map(([name, place]) => [name, works(needs, place)])),
    ]),
  );
}

function works({ command, extension, inProcess, capability }, { lacks, isRemote, isOther }) {
  const needed = [capability, command && capabilityOf(command)];
  if (needed.some((one) => lacks.includes(one))) return false;
  if (isRemote && inProcess) return false;
  return !(isOther && (command || extension));
}

function withReplica(lacks) {
  return lacks.filter((one) => !OF_A_REPLICA.includes(one));
}

/** The capabilities that `Capabilities::NAME` lacks. */
function lacksOf(name) {
  const [, body] = new RegExp(`pub const ${name}: Self = Self \\{(.*?)\\};`, "s").exec(
    capabilities,
  );
  return [...body.matchAll(/Capability::(\w+)/g)].map(([, capability]) => capability);
}

/** The capability that a command needs; undefined for none. */
function capabilityOf(command) {
  const row = new RegExp(`^ +${command} = \\d+, .*\\[(\\w*)\\], "[^"]*";$`, "m").exec(commands);
  if (row === null) throw new Error(`crates/wire/src/protocol/command.rs has no ${command}`);
  return row[1] || undefined;
}

/** The page with the generated table. */
export function written() {
  const text = readFileSync(page, "utf8");
  const [start, end] = [text.indexOf(START) + START.length, text.indexOf(END)];
  const names = Object.keys(PLACES);
  const lines = [
    `| | ${names.join(" | ")} |`,
    `|---|${names.map(() => "---|").join("")}`,
    ...[...features()].map(([feature, on]) => {
      return `| ${feature} | ${[...on.values()].map((is) => (is ? "yes" : "no")).join(" | ")} |`;
    }),
  ];
  return `${text.slice(0, start)}${lines.join("\n")}\n${text.slice(end)}`;
}
