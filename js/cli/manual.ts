// Duty: the end of every command's --help: examples, and the exit codes.

import type { Command } from "commander";
import { EXIT_CODES } from "./exit-codes.js";

const ON = "openkv -d app.sqlite3";

/** Examples by command; a test parses each with the program. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  get: [`${ON} get users ada`, `${ON} get logo --raw > logo.png`],
  list: [
    `${ON} list users --limit 10`,
    `${ON} list users --where '{ age: { $gte: 18 } }' --json=plain`,
  ],
  count: [`${ON} count users --at 2026-11-24`, `${ON} count users --where '{ city: "Rome" }'`],
  watch: [`${ON} watch counter`, `${ON} watch --prefix users --initial --json`],
  history: [`${ON} history price`, `${ON} history price --limit 5 --json`],
  diff: [
    "openkv diff app.sqlite3 --from 2026-11-24T15:00:00Z",
    `${ON} diff --from 0000000000000a1b0000 --to 0000000000000a2c0000 --prefix users --json`,
  ],
  set: [
    `${ON} set users ada '{ name: "Ada", born: date("1815-12-10") }'`,
    `${ON} set note 'hello world'`,
    `${ON} set zip --string 00501`,
    `${ON} set session abc open --expire-in 1h`,
    `${ON} set logo --file logo.png`,
  ],
  delete: [
    `${ON} delete '["users", "ada"]'`,
    `${ON} delete --prefix sessions --where '{ age: { $gt: 7 } }' --yes`,
  ],
  ttl: [`${ON} ttl session abc`],
  touch: [`${ON} touch session abc --expire-in 1h`],
  persist: [`${ON} persist session abc`],
  sum: [`${ON} sum page views 1n`, `${ON} sum stock bolts --min 0 -- -3`],
  append: [`${ON} append log started '{ at: date("2026-01-01") }'`],
  atomic: [
    `${ON} atomic '{ check: ["seat", 7], versionstamp: null }' '{ set: ["seat", 7], value: "ada" }'`,
    `${ON} atomic < steps.ndjson`,
  ],
  enqueue: [`${ON} enqueue '{ to: "ada" }' --queue mail --delay 1m`],
  "queue list": [`${ON} queue list`],
  "queue stats": [`${ON} queue stats mail`],
  "queue delete": [`${ON} queue delete mail 42`],
  "queue cancel": [`${ON} queue cancel mail 42`],
  "queue pause": [`${ON} queue pause mail`],
  "queue resume": [`${ON} queue resume mail`],
  "queue drain": [`${ON} queue drain mail --delayed`],
  "queue limit": [`${ON} queue limit mail --rate 100/1m --group-concurrency 1`],
  "queue limits": [`${ON} queue limits mail`],
  "queue groups": [`${ON} queue groups mail --limit 20`],
  "queue progress": [`${ON} queue progress mail 42`],
  "queue events": [`${ON} queue events mail --json`],
  "queue result": [`${ON} queue result mail 42 --wait 10s`],
  "queue schedule": [
    `${ON} queue schedule mail report '{ kind: "daily" }' --cron '0 8 * * MON-FRI' --time-zone Europe/Berlin`,
  ],
  "queue unschedule": [`${ON} queue unschedule mail report`],
  "queue schedules": [`${ON} queue schedules mail`],
  "queue peek": [`${ON} queue peek mail --state delayed --limit 10`],
  "queue receive": [`${ON} queue receive mail --wait 10s`],
  "queue listen": [`${ON} queue listen mail --json`],
  "dead list": [`${ON} dead list mail --limit 10`],
  "dead get": [`${ON} dead get mail 17`],
  "dead requeue": [`${ON} dead requeue mail 17`, `${ON} dead requeue mail --all`],
  "dead delete": [`${ON} dead delete mail 17`],
  "dead purge": [`${ON} dead purge mail --older-than 1d`],
  search: [`${ON} search products 'name:bik* NOT blue' --highlight`],
  "index create": [`${ON} index create products name details.maker --tokenize porter`],
  "index list": [`${ON} index list`],
  "index drop": [`${ON} index drop products`],
  export: [`${ON} export app.ndjson`, `${ON} export app.ndjson --resume`],
  import: [`${ON} import app.ndjson`, `${ON} import - --prefix old < app.ndjson`],
  copy: [
    "openkv copy app.sqlite3 other.sqlite3",
    "openkv copy app.sqlite3 backup.sqlite3 --if-newer",
  ],
  backup: [
    `${ON} backup app-monday.sqlite3`,
    "openkv backup https://kv.example.com/shop shop-monday.sqlite3",
  ],
  restore: [
    "openkv restore app-monday.sqlite3 app.sqlite3",
    "openkv restore /mnt/backup/app app.sqlite3 --at 2026-11-24T10:00:00Z",
  ],
  "bucket status": ["openkv bucket status 's3://my-bucket/shop?region=eu-central-1'"],
  "bucket verify": ["openkv bucket verify s3://my-bucket/shop --json"],
  "archive run": ["openkv archive run app.sqlite3 /mnt/backup/app --retention 30d"],
  "archive list": ["openkv archive list /mnt/backup/app"],
  "archive verify": ["openkv archive verify s3://backups/app"],
  "archive prune": ["openkv archive prune /mnt/backup/app --retention 30d"],
  promote: ["openkv promote near.sqlite3"],
  check: [`${ON} check`],
  stats: [`${ON} stats --entries`],
  vacuum: [`${ON} vacuum`],
  top: [
    "openkv top http://127.0.0.1:4512",
    "openkv top app.sqlite3 --once --json",
    "openkv top app.sqlite3 --sizes --depth 2",
  ],
  shell: [`${ON} shell`, `${ON} shell < commands.txt`],
  completion: [
    "source <(openkv completion bash)",
    "openkv completion fish > ~/.config/fish/completions/openkv.fish",
  ],
  serve: [
    "openkv serve --path app.sqlite3 --listen 127.0.0.1:4512",
    "openkv serve --path databases/ --archive s3://backups/shop --archive-retention 90d",
    "openkv serve --engine postgres://shop@db.example.com/app --advertise https://a.example.com",
    "openkv serve --engine s3://my-bucket/app?region=eu-central-1 --cache copies/ --advertise https://a.example.com",
    "openkv serve --path near.sqlite3 --replica-of https://kv.example.com/shop --listen 127.0.0.1:4513",
    "openkv serve --path near/ --replica-of https://kv.example.com --advertise https://near.example.com",
  ],
  studio: ["openkv studio app.sqlite3", "openkv studio http://127.0.0.1:4512 --no-open"],
  mcp: [
    "openkv mcp app.sqlite3",
    "openkv mcp http://127.0.0.1:4512 --write",
    "openkv mcp app.sqlite3 --listen 127.0.0.1:8080",
  ],
  "db list": ["openkv db list --server http://127.0.0.1:4512"],
  "db create": ["openkv db create shop --server http://127.0.0.1:4512 --quota-bytes 1000000000"],
  "db show": ["openkv db show shop --server http://127.0.0.1:4512"],
  "db quotas": ["openkv db quotas shop --server http://127.0.0.1:4512 --quota-watches 100"],
  "db archive": [
    "openkv db archive shop --server http://127.0.0.1:4512",
    "openkv db archive shop --to s3://backups/shop --retention 90d --server http://127.0.0.1:4512",
    "openkv db archive shop --off --server http://127.0.0.1:4512",
  ],
  "db drop": ["openkv db drop shop --server http://127.0.0.1:4512 --yes"],
  "cluster schema": ["openkv cluster schema > schema.sql"],
  "cluster status": [
    "openkv cluster status --engine postgres://shop@db.example.com/app",
    "openkv cluster status --engine s3://my-bucket/app?region=eu-central-1",
  ],
  "token generate": ["export OPENKV_ACCESS_TOKEN=$(openkv token generate)"],
  "token list": ["openkv token list shop --server http://127.0.0.1:4512"],
  "token create": ["openkv token create shop --rights read --server http://127.0.0.1:4512"],
  "token revoke": ["openkv token revoke shop 1 --server http://127.0.0.1:4512"],
};

/** Adds examples and exit codes to every command. */
export function addManual(program: Command): void {
  const codes = EXIT_CODES.map(([code, meaning]) => `  ${`${code}`.padEnd(5)}${meaning}`).join(
    "\n",
  );
  const visit = (command: Command, path: string): void => {
    for (const one of command.commands) visit(one, `${path} ${one.name()}`.trim());
    if (command === program || command.commands.length > 0) return;
    const examples = (EXAMPLES[path] ?? []).map((example) => `  ${example}`);
    const shown = examples.length > 0 ? `\nExamples:\n${examples.join("\n")}\n` : "";
    command.addHelpText("after", `${shown}\nExit codes:\n${codes}`);
  };
  visit(program, "");
}
