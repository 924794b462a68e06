// Duty: one request of the API: token, typed JSON, problems as errors.
// Invariant: a request that changes something names its database. The user may open another one between the requests of
// an action, so what begins the action takes the database, once.

import { ADMIN, apiBase, askToken, forget, tokenOf } from "../shell/session";
import { route } from "../shell/router";
import type { Path } from "./routes";

export const TYPED = "application/vnd.openkv+json";

/** A request that the server has refused. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(status: number, problem: Readonly<Record<string, unknown>>) {
    super(String(problem.detail ?? problem.error ?? `The server answered ${status}`));
    this.status = status;
    this.code = String(problem.code ?? status);
    this.problem = problem;
  }
}

export interface ApiRequest {
  /** The database that is asked; the present one if none is given. */
  readonly database?: string;
  readonly method?: string;
  /** What stands for `{id}` in the path. */
  readonly id?: string;
  /** What stands for `{name}` in the path. */
  readonly name?: string;
  /** A body, sent as typed JSON. */
  readonly body?: unknown;
  /** A body that is sent as it is, and its type. */
  readonly file?: { readonly content: Blob; readonly type: string };
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly signal?: AbortSignal;
  /** Of the answer. */
  readonly accept?: string;
}

/** Sends a request to the API of a database. */
export function ask(path: Path, request: ApiRequest = {}): Promise<Response> {
  const { database = route.value.database } = request;
  const whole = path
    .replace("{id}", encodeURIComponent(request.id ?? ""))
    .replace("{name}", encodeURIComponent(request.name ?? ""));
  return send(apiBase(database) + whole, database, request);
}

/** The same, for an answer in JSON. */
export async function askJson<T>(path: Path, request: ApiRequest = {}): Promise<T> {
  return (await (await ask(path, request)).json()) as T;
}

/** Sends a request to the admin API. */
export async function askAdmin<T>(path: string, request: ApiRequest = {}): Promise<T> {
  const response = await send(`/v1/admin${path}`, ADMIN, {
    accept: "application/json",
    ...request,
  });
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

async function send(path: string, scope: string, request: ApiRequest): Promise<Response> {
  for (;;) {
    const token = tokenOf(scope);
    const response = await sendOnce(path, token, request);
    if (response.ok) return response;
    if (response.status !== 401) throw await errorOf(response);
    // Another request may have got a token meanwhile.
    if (tokenOf(scope) !== token) continue;
    if (token !== undefined) forget(scope);
    const given = await askToken(scope, token !== undefined);
    if (given === undefined) throw await errorOf(response);
  }
}

async function sendOnce(
  path: string,
  token: string | undefined,
  request: ApiRequest,
): Promise<Response> {
  const { method, body, file, headers = {}, query = {}, signal, accept = TYPED } = request;
  const type = file?.type ?? (body === undefined ? undefined : TYPED);
  const content = file?.content ?? (body === undefined ? undefined : JSON.stringify(body));
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  try {
    return await fetch(given.length === 0 ? path : `${path}?${search}`, {
      method: method ?? (content === undefined ? "GET" : "POST"),
      headers: {
        accept,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(type === undefined ? {} : { "content-type": type }),
        ...headers,
      },
      cache: "no-store",
      credentials: "omit",
      ...(content === undefined ? {} : { body: content }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new ApiError(0, { detail: "The server does not answer.", code: "OFFLINE" });
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    return new ApiError(response.status, JSON.parse(text) as Record<string, unknown>);
  } catch {
    return new ApiError(response.status, { detail: text });
  }
}

export const isAborted = (error: unknown): boolean => (error as Error)?.name === "AbortError";
