// Duty: what each view shows. They are in one file with the page: together they are smaller than the
// text editor or the charts, which are loaded when they are needed.

import type { ComponentType } from "preact";
import type { ViewName } from "../shell/views";
import { Atomic } from "./atomic";
import { Databases } from "./databases";
import { Entries } from "./entries";
import { MetricsView } from "./metrics";
import { Overview } from "./overview";
import { Queues } from "./queues";
import { Search } from "./search";
import { Watch } from "./watch";

export const SHOWN: Readonly<Record<ViewName, ComponentType>> = {
  atomic: Atomic,
  databases: Databases,
  entries: Entries,
  metrics: MetricsView,
  overview: Overview,
  queues: Queues,
  search: Search,
  watch: Watch,
};
