// Duty: what the command palette offers: the views, and what the present view adds while it is open.

import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { helpIsOpen } from "./help";
import { go, hrefOf, route } from "./router";
import { forget, isMany } from "./session";
import { nextTheme } from "./theme";
import { VIEWS } from "./views";

export interface Command {
  readonly title: string;
  readonly keys?: string;
  run(): void;
}

const ofView = signal<readonly Command[]>([]);

/** Adds commands while a component is shown. */
export function useCommands(commands: readonly Command[]): void {
  useEffect(() => {
    ofView.value = [...ofView.value, ...commands];
    return () => {
      ofView.value = ofView.value.filter((command) => !commands.includes(command));
    };
  }, [commands]);
}

/** The views that can be opened now. */
export const openViews = computed(() =>
  VIEWS.filter(({ isOfServer }) =>
    isOfServer ? isMany.value : !isMany.value || route.value.database !== "",
  ),
);

export const commands = computed<readonly Command[]>(() => [
  ...ofView.value,
  ...openViews.value.map(({ name, title, key, isOfServer }) => ({
    title: `Go to ${title}`,
    keys: `g ${key}`,
    run: () => go(hrefOf(name, {}, isOfServer ? "" : route.value.database)),
  })),
  { title: "Change the theme", run: nextTheme },
  {
    title: "Show the keys",
    keys: "?",
    run: () => {
      helpIsOpen.value = true;
    },
  },
  {
    title: "Forget the access token",
    // What the token may do is unknown then, so the page asks for one.
    run: () => forget(),
  },
]);
