// Duty: a picture, and the sizes of prefixes, as lines for people.

import type { Picture } from "./picture.js";
import type { PrefixSize } from "./sizes.js";

/** Operations of the slow log that a picture shows. */
const SLOWEST_SHOWN = 8;
/** Queues that a picture shows, those with the most messages. */
const QUEUES_SHOWN = 5;
const UNITS = ["B", "KB", "MB", "GB", "TB"];

export function linesOf(picture: Picture): string[] {
  const { database, at, seconds, databaseBytes, walBytes } = picture;
  const sizes = `${bytes(databaseBytes)}, log ${bytes(walBytes)}`;
  return [
    `${database}  ${at}  ${seconds.toFixed(1)} s  ${sizes}`,
    ...operationLines(picture),
    ...changeLines(picture),
    ...slowLines(picture),
    ...queueLines(picture),
  ];
}

export function sizeLines(sizes: readonly PrefixSize[]): string[] {
  const rows = sizes.map(({ prefix, entries, bytes: of }) => [prefix, count(entries), bytes(of)]);
  return table(["prefix", "entries", "bytes"], rows);
}

function operationLines({ operations, commitsPerSecond, conflictsPerSecond }: Picture): string[] {
  if (operations === null) {
    return ["", "operations: only of a server: each process counts its own (openkv top URL)"];
  }
  const rows = Object.entries(operations).map(([name, of]) => [
    name,
    rate(of.perSecond),
    rate(of.errorsPerSecond),
    ms(of.meanMs),
    ms(of.p99Ms),
  ]);
  const commits = `commits ${rate(commitsPerSecond!)}/s, conflicts ${rate(conflictsPerSecond!)}/s`;
  if (rows.length === 0) return ["", "operations: none yet"];
  return ["", ...table(["operation", "/s", "errors/s", "mean ms", "p99 ms"], rows), commits];
}

function changeLines({ changes }: Picture): string[] {
  if (changes === null) return ["", "changes: this database has no change feed for this caller"];
  const { perSecond, sampled, hottest } = changes;
  const head = `changes ${rate(perSecond)}/s${sampled ? " (sampled)" : ""}`;
  const rows = hottest.map((of) => [of.prefix, rate(of.perSecond)]);
  return ["", head, ...(rows.length > 0 ? table(["hottest prefix", "changes/s"], rows) : [])];
}

function slowLines({ slowest }: Picture): string[] {
  if (slowest === null || slowest.length === 0) return [];
  const rows = slowest
    .slice(0, SLOWEST_SHOWN)
    .map(({ operation, key, prefix, times, failed, durationMs, atMs }) => [
      `${operation}${times > 1 ? ` ×${times}` : ""}${failed ? " failed" : ""}`,
      ms(durationMs),
      new Date(atMs).toISOString(),
      key ?? (prefix === undefined ? "" : `${prefix} and below`),
    ]);
  return ["", ...table(["slowest of the last hour", "ms", "ended", "key"], rows)];
}

function queueLines({ queues }: Picture): string[] {
  const sum = (of: object) => Object.values(of).reduce((all, one) => all + one, 0);
  const named = Object.entries(queues).sort(([, one], [, other]) => sum(other) - sum(one));
  if (named.length === 0) return [];
  const rows = named
    .slice(0, QUEUES_SHOWN)
    .map(([name, of]) => [
      name || "(kv.enqueue)",
      count(of.pending),
      count(of.delayed),
      count(of.processing),
      count(of.dead),
    ]);
  return ["", ...table(["queue", "pending", "delayed", "processing", "dead"], rows)];
}

/** Columns behind each other; the first one is text, a number is at the right of its column. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => row[column]!.length)),
  );
  return [head, ...rows].map((row) =>
    row
      .map((cell, column) => {
        const isText = column === 0 || /^(?:ended|key)$/.test(head[column]!);
        return isText ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
      })
      .join("  ")
      .trimEnd(),
  );
}

function rate(perSecond: number): string {
  if (perSecond === 0) return "0";
  return perSecond < 100 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}

function count(n: number): string {
  return n.toLocaleString("en");
}

function ms(of: number | null): string {
  return of === null ? "" : of < 10 ? of.toFixed(3) : of.toFixed(1);
}

function bytes(of: number): string {
  let [n, unit] = [of, 0];
  while (n >= 1000 && unit < UNITS.length - 1) {
    n /= 1000;
    unit++;
  }
  return `${unit === 0 ? n : n.toFixed(1)} ${UNITS[unit]}`;
}
