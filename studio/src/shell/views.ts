// Duty: the table of views: name, title, key, and the module that is loaded when one is opened.

import type { ComponentType } from "preact";

export interface View {
  readonly name: string;
  readonly title: string;
  /** Pressed after `g`. */
  readonly key: string;
  /** Whether it is about the server instead of a database. */
  readonly isOfServer?: boolean;
  load(): Promise<{ default: ComponentType }>;
}

export const VIEWS: readonly View[] = [
  {
    ...{ name: "databases", title: "Databases", key: "d", isOfServer: true },
    load: () => import("../views/databases"),
  },
  { name: "overview", title: "Overview", key: "o", load: () => import("../views/overview") },
  { name: "entries", title: "Entries", key: "e", load: () => import("../views/entries") },
  { name: "queues", title: "Queues", key: "q", load: () => import("../views/queues") },
  { name: "search", title: "Search", key: "s", load: () => import("../views/search") },
  { name: "watch", title: "Watch", key: "w", load: () => import("../views/watch") },
  { name: "atomic", title: "Atomic", key: "a", load: () => import("../views/atomic") },
  { name: "metrics", title: "Metrics", key: "m", load: () => import("../views/metrics") },
];
