// Duty: the frame of all views: navigation, title, the view of the route, dialogs.

import { useEffect } from "preact/hooks";
import { tokenMayWrite } from "../api/entries";
import { Confirmation } from "../parts/dialog";
import icon from "../icon.svg";
import { openViews } from "./commands";
import { Help, helpIsOpen } from "./help";
import { Palette, paletteIsOpen } from "./palette";
import { go, hrefOf, route } from "./router";
import { isMany, keepRights, mayWrite, presentToken, readOnly, server } from "./session";
import { nextTheme, theme } from "./theme";
import { TokenDialog } from "./token-dialog";
import { Toasts, report } from "./toasts";
import { SHOWN } from "../views";
import type { View } from "./views";

export function App() {
  const { view: name, database } = route.value;
  const found = openViews.value.find((view) => view.name === name);
  // A server of many databases begins with their list.
  const view = found ?? openViews.value[0];
  const Shown = view && SHOWN[view.name];
  useEffect(() => {
    document.title = `${view?.title ?? "openkv"}${database === "" ? "" : ` · ${database}`} · openkv studio`;
  }, [view, database]);
  const isKnown = mayWrite.value !== undefined;
  const token = presentToken.value;
  useEffect(() => {
    if (isKnown || (isMany.value && database === "")) return;
    // The answer for a token that was forgotten meanwhile says nothing of the next one.
    let isPresent = true;
    tokenMayWrite().then((may) => isPresent && keepRights(database, may), report);
    return () => {
      isPresent = false;
    };
  }, [database, isKnown, token]);
  return (
    <div class="shell">
      <Navigation present={view} />
      <header class="bar">
        <h1>{view?.title}</h1>
        {isMany.value && database !== "" && <Place database={database} />}
        {readOnly.value && (
          <span class="badge warn" title="The token may only read">
            read-only
          </span>
        )}
        <span class="grow" />
        <button type="button" class="wide" onClick={() => (paletteIsOpen.value = true)}>
          Commands <kbd>Ctrl K</kbd>
        </button>
        <button
          type="button"
          class="icon"
          aria-label={`Theme: ${theme.value}`}
          title={`Theme: ${theme.value}`}
          onClick={nextTheme}
        >
          {{ system: "◐", light: "☀", dark: "☾" }[theme.value]}
        </button>
        <button
          type="button"
          class="icon"
          aria-label="Keys"
          onClick={() => (helpIsOpen.value = true)}
        >
          ?
        </button>
      </header>
      <main class="main" id="main" tabIndex={-1}>
        {Shown !== undefined && <Shown key={`${database}/${view?.name}`} />}
      </main>
      <TokenDialog />
      <Confirmation />
      <Help />
      <Palette />
      <Toasts />
    </div>
  );
}

function toMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Place({ database }: { readonly database: string }) {
  return (
    <button
      type="button"
      class="database"
      title="All databases"
      onClick={() => go(hrefOf("databases", {}, ""))}
    >
      <span class="soft">database</span> {database}
    </button>
  );
}

function Navigation({ present }: { readonly present: View | undefined }) {
  return (
    <nav class="side" aria-label="Views">
      <a class="skip button" href={location.hash} onClick={toMain}>
        Skip to the view
      </a>
      <a class="brand" href={hrefOf("", {}, "")}>
        <img src={icon} alt="" />
        openkv
      </a>
      {openViews.value.map(({ name, title, isOfServer }) => (
        <a
          key={name}
          class="item"
          href={hrefOf(name, {}, isOfServer ? "" : route.value.database)}
          aria-current={present?.name === name ? "page" : undefined}
        >
          {title}
        </a>
      ))}
      <p class="foot">version {server.value.version}</p>
    </nav>
  );
}
