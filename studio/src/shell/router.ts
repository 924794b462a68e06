// Duty: the route in the fragment of the URL: `#/entries?key=…`, on a server of many databases
// `#/@shop/entries?key=…`. A link made with `hrefOf` leads to the same view in another tab.

import { batch, signal } from "@preact/signals";

export interface Route {
  /** The name of the database; empty on a server of one, and for views of the server. */
  readonly database: string;
  readonly view: string;
  readonly params: Readonly<Record<string, string>>;
}

/** An object, so that a token which is given again is noticed. */
interface Given {
  readonly token: string;
}

function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter((part) => part !== "");
  const database = parts[0]?.startsWith("@") ? decoded(parts.shift()!.slice(1)) : "";
  return {
    database,
    view: parts[0] ?? "overview",
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** A text without its escapes; as it is if they are malformed, since anybody can type an address. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Takes the token out of the fragment before anything else reads it: it must not stay in the address
 * bar, in the history, or in a link that somebody copies.
 */
function takeToken(): Given | undefined {
  const found = /^#(?:(.*)[?&])?token=([^&]+)$/.exec(location.hash);
  if (found === null) return undefined;
  history.replaceState(null, "", found[1] ? `#${found[1]}` : "#/");
  return { token: decoded(found[2]!) };
}

/** What the last address with a token gave, for what that address leads to. */
export const given = signal(takeToken());

export const route = signal<Route>(parse(location.hash));

addEventListener("hashchange", () => {
  batch(() => {
    given.value = takeToken() ?? given.value;
    route.value = parse(location.hash);
  });
});

/** The link to a view of the present database; parameters that are empty are left out. */
export function hrefOf(
  view: string,
  params: Readonly<Record<string, string | undefined>> = {},
  database = route.value.database,
): string {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(given as [string, string][]).toString();
  const place = database === "" ? "" : `/@${encodeURIComponent(database)}`;
  return `#${place}/${view}${query === "" ? "" : `?${query}`}`;
}

export function go(href: string): void {
  location.hash = href;
}

/** Changes parameters of the present view, without an entry of the history. */
export function setParams(changes: Readonly<Record<string, string | undefined>>): void {
  const { view, params } = route.value;
  history.replaceState(null, "", hrefOf(view, { ...params, ...changes }));
  route.value = parse(location.hash);
}
