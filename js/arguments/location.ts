// Duty: resolves the path or URL of a database, or the default, to ":memory:", an absolute path, the
// URLs of servers, or the URL of PostgreSQL or of an object store.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { shown } from "./check.js";
import { assign } from "../model/define.js";
import { KvError, invalid, misuse } from "../model/errors.js";
import { hrefOf } from "../model/brands.js";

export const MEMORY = ":memory:";

/** The environment variable with the default path or URL. */
const URL_VARIABLE = "OPENKV_URL";
const DEFAULT_FOLDER = ".openkv";
const DEFAULT_FILE = "kv.sqlite3";
/** Files that mark the root folder of a program. */
const PROGRAM_FILES = ["package.json", "deno.json", "deno.jsonc"];

/** Schemes of a server. */
const SERVER_SCHEMES = ["http://", "https://"];
/** Schemes of PostgreSQL. */
const POSTGRES_SCHEMES = ["postgres://", "postgresql://"];
/** Schemes of object stores, and of folders that are used like one. */
const BUCKET_SCHEMES = ["s3://", "gs://", "az://", "bucket+file://"];
/** All schemes, for errors. */
const SCHEMES = [...SERVER_SCHEMES, ...POSTGRES_SCHEMES, ...BUCKET_SCHEMES, "file://"].join(", ");
/** The start of a URL. The letter of a drive, as in C://data, is not a scheme. */
const URL_START = /^(?:file:|[a-z][a-z0-9+.-]+:\/\/)/i;

/** The scheme of a known URL that is no URL: one slash, or none. */
const HALF_URL = /^(https?|postgres|postgresql|s3|gs|az|bucket\+file):(?!\/\/)/i;

/** A comma between the URLs of two servers of a database. */
const BETWEEN_URLS = /,(?=https?:\/\/)/i;
/** A comma before a URL that no list of servers can hold, or that is not directly behind it. */
const BEFORE_OTHER_URL = /,\s*[a-z][a-z0-9+.-]*:\/\//i;

/** ":memory:", an absolute path, or a URL: for servers all of them, with commas. Throws TypeError or an `UNSUPPORTED` KvError. */
export function locate(path: unknown, readonly: boolean): string {
  if (path === undefined || path === null) {
    const named = process.env[URL_VARIABLE];
    return named ? locateText(named) : defaultPath(readonly);
  }
  if (typeof path === "string") return locateText(path);
  const href = hrefOf(path);
  if (href !== undefined) return locateText(href);
  throw invalid(
    `Filename cannot be empty: received ${shown(path)}; ` +
      'openKv takes a path, ":memory:", or a file:, http:, https:, postgres: or s3: URL',
  );
}

/** Throws for a text that begins as a URL and would be taken for a path. It may hold a password: the message has its scheme only. */
export function refuseHalfUrl(what: string, text: string): void {
  const scheme = HALF_URL.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) return;
  const slashes = scheme === "bucket+file" ? ":///" : "://";
  throw invalid(
    `${what} begins with ${scheme}: and is no URL: one begins with ${scheme}${slashes}; ` +
      `a path of that name begins with ./${scheme}:`,
  );
}

/** Whether a result of {@link locate} has the URLs of servers. */
export function isServer(located: string): boolean {
  return SERVER_SCHEMES.some((scheme) => located.startsWith(scheme));
}

/** The URLs of the servers in a result of {@link locate}. */
export function urlsOf(located: string): string[] {
  return located.split(BETWEEN_URLS);
}

/** Whether a text is the URL of a database on PostgreSQL. */
export function isPostgres(text: string): boolean {
  const start = URL_START.exec(text)?.[0].toLowerCase();
  return start !== undefined && POSTGRES_SCHEMES.includes(start);
}

/** Whether a text is the URL of a database in an object store. */
export function isBucket(text: string): boolean {
  const start = URL_START.exec(text)?.[0].toLowerCase();
  return start !== undefined && BUCKET_SCHEMES.includes(start);
}

/** Whether a text is the URL of a database that is opened without a server, and is no file. */
export function isElsewhere(text: string): boolean {
  return isPostgres(text) || isBucket(text);
}

/** The URL of PostgreSQL without user and password. */
export function withoutLogin(url: string): string {
  return url.replace(/:\/\/[^/?]*@/, "://");
}

/** Throws for the URL of PostgreSQL or of an object store where a file is needed. */
export function refuseElsewhere(path: string, method: string, instead: string): void {
  refuseHalfUrl(`${method}: the path`, path);
  if (!isElsewhere(path)) return;
  const where = isBucket(path) ? "in an object store" : "on PostgreSQL";
  throw new KvError("UNSUPPORTED", `${method}: not for a database ${where}: ${instead}`);
}

function locateText(text: string): string {
  if (text === MEMORY) return text;
  if (text === "") {
    throw invalid(
      "Filename cannot be empty: the path is an empty string; leave it out for the default one",
    );
  }
  if (text.startsWith(":")) {
    const isMemory = /^:mem/i.test(text);
    throw invalid(
      "Filename cannot start with ':' unless prefixed with './'" +
        (isMemory ? `: a database in memory is "${MEMORY}"` : ""),
    );
  }
  if (text.includes("\0")) {
    const error = misuse("file name contained an unexpected NUL byte");
    throw assign(error, "code", "EINVAL");
  }
  const start = URL_START.exec(text)?.[0].toLowerCase();
  if (start === undefined) {
    if (BETWEEN_URLS.test(text)) throw badList();
    refuseHalfUrl("The path", text);
    return resolve(text);
  }
  const url = start + text.slice(start.length);
  if (isServer(url)) return serverUrls(url);
  // Rust parses it: it may have several hosts, which URL does not know.
  if (isElsewhere(url)) return url;
  if (start === "file:") return pathOfUrl(url);
  // A URL may hold a password: the message has its scheme only.
  throw new KvError("UNSUPPORTED", `Opening ${start} URLs: not supported yet; ${SCHEMES} are`);
}

/** Checks the URLs of the servers of a database. Other commas are parts of the URLs. */
function serverUrls(text: string): string {
  const urls = urlsOf(text);
  const hasEmpty = urls.length > 1 && urls.some((url) => url.endsWith(","));
  if (hasEmpty || urls.some((url) => BEFORE_OTHER_URL.test(url))) throw badList();
  return urls.map(serverUrl).join(",");
}

function badList(): TypeError {
  return invalid(
    "Each URL of a list begins with http:// or https:// directly behind a comma, and none is " +
      "empty: https://a.example.com/shop,https://b.example.com/shop",
  );
}

/** Checks the URL of a server. Errors do not repeat parts that may be secret. */
function serverUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw invalid("Invalid URL: one of a server is like https://kv.example.com/path");
  }
  if (url.username !== "" || url.password !== "") {
    throw invalid("A URL holds no user or password here: pass the option accessToken");
  }
  if (url.hash !== "") throw invalid(`A URL has no fragment here: received ${url.hash}`);
  return url.href;
}

function pathOfUrl(text: string): string {
  if (!text.startsWith("file://")) {
    throw invalid(`A file URL is absolute, like file:///data/kv.sqlite3: received ${text}`);
  }
  let url: URL;
  let path: string;
  try {
    url = new URL(text);
    path = fileURLToPath(url);
  } catch {
    throw invalid(
      `A file URL names no host and has no encoded slash, like file:///data/kv.sqlite3: received ${text}`,
    );
  }
  if (url.search !== "" || url.hash !== "") {
    throw invalid(`A file URL has no query and no fragment here: received ${text}`);
  }
  return path;
}

/** The default file below the root folder of the program. Creates its folder, which git ignores. */
function defaultPath(readonly: boolean): string {
  const folder = join(programFolder(process.cwd()), DEFAULT_FOLDER);
  if (!readonly) makeFolder(folder);
  return join(folder, DEFAULT_FILE);
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    const ignore = join(folder, ".gitignore");
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n");
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    const denied = ["EACCES", "EPERM", "EROFS"].includes(code);
    throw new KvError(
      denied ? "DENIED" : "UNAVAILABLE",
      `${message}: name a path for the database, or set ${URL_VARIABLE}`,
    );
  }
}

function programFolder(from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    if (PROGRAM_FILES.some((name) => existsSync(join(folder, name)))) return folder;
    if (folder === dirname(folder)) return from;
  }
}
