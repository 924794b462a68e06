// Duty: the keys that work in every view.

import { helpIsOpen } from "./help";
import { paletteIsOpen } from "./palette";
import { openViews } from "./commands";
import { go, hrefOf, route } from "./router";

/** How long `g` waits for the second key. */
const SECOND_KEY_MS = 1500;

let begun = 0;

/** Whether keys are text for an element. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0] as HTMLElement;
  return (
    target.isContentEditable === true || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)
  );
}

export function listen(): void {
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      paletteIsOpen.value = !paletteIsOpen.value;
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const isSecond = performance.now() - begun < SECOND_KEY_MS;
    begun = 0;
    const view = isSecond ? openViews.value.find(({ key }) => key === event.key) : undefined;
    if (view !== undefined) go(hrefOf(view.name, {}, view.isOfServer ? "" : route.value.database));
    else if (event.key === "?") helpIsOpen.value = true;
    else if (event.key === "g") begun = performance.now();
    else if (event.key === "/") {
      const field = document.querySelector<HTMLElement>("[data-find]");
      if (field !== null) {
        event.preventDefault();
        field.focus();
      }
    }
  });
}
