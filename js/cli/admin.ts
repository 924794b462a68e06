// Duty: the client of the admin API of a server.

import type { Command } from "commander";
import { urlsOf } from "../arguments/location.js";
import type { GlobalOptions } from "./database.js";
import { NotDone, WrongUsage } from "./outcome.js";

/** A token of a database in an answer. */
export interface TokenView {
  id: string;
  rights: string;
  createdAt: string;
  /** Only in the answer that creates it. */
  token?: string;
}

/** A database in an answer. */
export interface DatabaseView {
  name: string;
  databaseId: string;
  path: string;
  createdAt: string;
  /** Not of a database on PostgreSQL. */
  bytes?: number;
  watches: number;
  quotas: Record<string, number>;
  tokens: TokenView[];
  /** Only in the answer that creates it. */
  token?: string;
}

/** The status of an answer to a request without a token that needs one. */
const UNAUTHORIZED = 401;
/** The status of an answer without a document. */
const NO_CONTENT = 204;

/** Time limit of a request. */
const ANSWER_MS_MAX = 30_000;

export interface AdminOptions {
  server?: string;
  adminToken?: string;
}

/** Adds the options for the server to a command of the admin API. */
export function withServer(command: Command): Command {
  return command
    .option("--server <url>", "the server (default: that of --db or OPENKV_URL)")
    .option("--admin-token <token>", "an admin's token (env: OPENKV_ADMIN_TOKEN)");
}

/** Sends one request; `path` is below `v1/admin`, with its parts unescaped. */
export async function ask<T>(
  command: Command,
  method: string,
  path: readonly string[],
  body?: object,
): Promise<T> {
  const options = command.optsWithGlobals<AdminOptions & GlobalOptions>();
  const token = options.adminToken ?? options.token ?? process.env.OPENKV_ADMIN_TOKEN;
  const url = urlOf(serverOf(options), ["v1/admin", ...path.map(encodeURIComponent)].join("/"));
  let answer: Response;
  try {
    answer = await fetch(url, {
      method,
      // A server of this machine without tokens asks for none; another one says so.
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      body: body === undefined ? null : JSON.stringify(body),
      redirect: "error",
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
  } catch (error) {
    const { cause, message } = error as Error & { cause?: Error };
    throw new NotDone(`${url.origin} does not answer: ${cause?.message || message}`);
  }
  const text = await answer.text();
  if (answer.status === UNAUTHORIZED && token === undefined) {
    throw new WrongUsage(
      `${url.origin} asks for a token: give --admin-token or OPENKV_ADMIN_TOKEN`,
    );
  }
  if (!answer.ok) throw new NotDone(`the server refused (${answer.status}): ${detailOf(text)}`);
  if (answer.status === NO_CONTENT) return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new NotDone(
      `${url.origin} is no server of openkv: it answers ${method} ${url.pathname} with no JSON; check the URL`,
    );
  }
}

/** A URL, or the path below one. */
function urlOf(given: string, path = ""): URL {
  try {
    return new URL(path, given);
  } catch {
    throw new WrongUsage(`${given} is no URL: give one such as http://127.0.0.1:4512`);
  }
}

/** The text of a refusal: that of problem details, or all of it if a proxy has refused. */
function detailOf(text: string): string {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    if (typeof detail === "string") return detail;
  } catch {}
  return text.trim();
}

/** Ends with a slash, because a proxy may serve the server below a path. */
function serverOf({ server, db }: AdminOptions & GlobalOptions): string {
  const given = server ?? db;
  if (given === undefined || !/^https?:\/\//i.test(given)) {
    throw new WrongUsage("give the server's URL as --server or --db");
  }
  return server === undefined
    ? urlOf(urlsOf(given)[0]).origin
    : urlOf(server).href.replace(/\/*$/, "/");
}
