// Duty: what the page knows of the server: its kind, the tokens, what they allow.
// Invariant: tokens stay in this module's memory. They are in no storage, no cookie and no URL.

import { computed, signal } from "@preact/signals";
import { given, route } from "./router";

export interface Server {
  readonly version: string;
  readonly databases: "one" | "many";
}

/** Known before anything is shown. */
export const server = signal<Server>({ version: "", databases: "one" });

/** The scope of the token of the admin API. A database's scope is its name, `""` on a server of one. */
export const ADMIN = "/admin";

const tokens = signal<ReadonlyMap<string, string>>(new Map());

/** A question for a token. */
export interface Asking {
  readonly scope: string;
  readonly wrong: boolean;
  readonly answered: Promise<string | undefined>;
  answer(token: string | undefined): void;
}

/** The questions that are open, by their scopes. */
const askings = signal<ReadonlyMap<string, Asking>>(new Map());

const writing = signal<ReadonlyMap<string, boolean>>(new Map());

/** Whether the token of the present database may write; `undefined` until that is known. */
export const mayWrite = computed(() => writing.value.get(route.value.database));
export const readOnly = computed(() => mayWrite.value === false);

/** What the server has: many databases or one. */
export const isMany = computed(() => server.value.databases === "many");

/** The scope of what is shown. */
const presentScope = computed(() =>
  isMany.value ? route.value.database || ADMIN : route.value.database,
);

/** The question about what is shown; others wait until their scope is shown again. */
export const asking = computed(() => askings.value.get(presentScope.value));

/** The token of what is shown. */
export const presentToken = computed(() => tokenOf(presentScope.value));

/** Asks what the server is; index.html has begun the request. */
export async function meetServer(): Promise<void> {
  const response = await fetch("/~studio/server.json");
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  const found = (await response.json()) as Server;
  server.value = found;
  given.subscribe((address) => {
    if (address !== undefined) takeToken(presentScope.peek(), address.token);
  });
}

/** Keeps a token that was given, which also answers the question for it. */
function takeToken(scope: string, token: string): void {
  const open = askings.peek().get(scope);
  if (open === undefined) keepToken(scope, token);
  else open.answer(token);
}

export const tokenOf = (scope: string): string | undefined => tokens.value.get(scope);

/** Keeps the token of a scope; what an earlier one may do says nothing of it. */
export function keepToken(scope: string, token: string): void {
  if (tokenOf(scope) !== token) writing.value = without(writing.value, scope);
  tokens.value = new Map(tokens.value).set(scope, token);
}

/** Forgets the token of a scope, and what it may do. */
export function forget(scope = presentScope.value): void {
  tokens.value = without(tokens.value, scope);
  writing.value = without(writing.value, scope);
}

function without<T>(of: ReadonlyMap<string, T>, scope: string): ReadonlyMap<string, T> {
  return new Map([...of].filter(([one]) => one !== scope));
}

/** Keeps whether the token of a database may write, until the token is another one. */
export function keepRights(database: string, may: boolean): void {
  writing.value = new Map(writing.value).set(database, may);
}

/** Asks for the token of a scope. Requests that need it at the same time share one question. */
export function askToken(scope: string, wrong: boolean): Promise<string | undefined> {
  const open = askings.value.get(scope);
  if (open !== undefined) return open.answered;
  let resolve!: (token: string | undefined) => void;
  const answered = new Promise<string | undefined>((resolved) => {
    resolve = resolved;
  });
  const answer = (token: string | undefined): void => {
    askings.value = without(askings.value, scope);
    if (token !== undefined) keepToken(scope, token);
    resolve(token);
  };
  askings.value = new Map(askings.value).set(scope, { scope, wrong, answered, answer });
  return answered;
}

/** The URL of the API of the present database, without the origin. */
export function apiBase(database = route.value.database): string {
  return database === "" ? "/api" : `/${encodeURIComponent(database)}/api`;
}
