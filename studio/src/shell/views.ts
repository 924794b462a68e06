// Duty: the table of views: name, title, key. views/index.ts has what they show.

export type ViewName =
  | "databases"
  | "overview"
  | "entries"
  | "queues"
  | "search"
  | "watch"
  | "atomic"
  | "metrics";

export interface View {
  readonly name: ViewName;
  readonly title: string;
  /** Pressed after `g`. */
  readonly key: string;
  /** Whether it is about the server instead of a database. */
  readonly isOfServer?: boolean;
}

export const VIEWS: readonly View[] = [
  { name: "databases", title: "Databases", key: "d", isOfServer: true },
  { name: "overview", title: "Overview", key: "o" },
  { name: "entries", title: "Entries", key: "e" },
  { name: "queues", title: "Queues", key: "q" },
  { name: "search", title: "Search", key: "s" },
  { name: "watch", title: "Watch", key: "w" },
  { name: "atomic", title: "Atomic", key: "a" },
  { name: "metrics", title: "Metrics", key: "m" },
];
