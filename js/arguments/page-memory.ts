// Duty: checks the options of openKv about the memory for the pages of files, and how many are open.

import { invalid } from "../model/errors.js";
import { shown } from "./check.js";
import {
  CACHE_BYTES_MIN,
  CACHE_BYTES_MAX,
  MMAP_BYTES_MAX,
  OPEN_DATABASES_MAX,
} from "../model/limits.js";

/** Bytes of the page cache of each connection; undefined: the addon's default. */
export function checkCacheSize(given: unknown): number | undefined {
  return checkBytes("cacheSize", given, CACHE_BYTES_MIN, CACHE_BYTES_MAX);
}

/** Bytes of the file that readers map into memory; undefined: none. */
export function checkMmapSize(given: unknown): number | undefined {
  return checkBytes("mmapSize", given, 0, MMAP_BYTES_MAX);
}

/** How many databases in files the process keeps open; undefined: as many as it does. */
export function checkMaxOpen(given: unknown): number | undefined {
  return checkWhole("maxOpen", given, 1, OPEN_DATABASES_MAX, "");
}

function checkBytes(name: string, given: unknown, least: number, most: number): number | undefined {
  return checkWhole(name, given, least, most, " (bytes)");
}

function checkWhole(
  name: string,
  given: unknown,
  least: number,
  most: number,
  unit: string,
): number | undefined {
  if (given === undefined) return undefined;
  const isWhole = Number.isInteger(given);
  if (isWhole && (given as number) >= least && (given as number) <= most) return given as number;
  throw invalid(
    `${name} must be an integer from ${least} to ${most}${unit}: received ${shown(given)}`,
  );
}
