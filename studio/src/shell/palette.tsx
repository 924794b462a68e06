// Duty: the command palette: commands by a part of their name, and keys of entries by their literal.

import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { parseKey } from "../values/parse";
import { printKey } from "../values/print";
import { type Command, commands } from "./commands";
import { go, hrefOf } from "./router";

export const paletteIsOpen = signal(false);

/** The command that opens the entry whose key is typed: `["users", 42]`. */
function openingOf(text: string): Command[] {
  if (!text.trim().startsWith("[")) return [];
  try {
    const key = printKey(parseKey(text));
    return [{ title: `Open the entry ${key}`, run: () => go(hrefOf("entries", { key })) }];
  } catch {
    return [];
  }
}

export function Palette() {
  return paletteIsOpen.value ? <OpenPalette /> : null;
}

function OpenPalette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  useEffect(() => dialog.current!.showModal(), []);
  const words = text.toLowerCase().split(/\s+/);
  const matches = (command: Command): boolean =>
    words.every((word) => command.title.toLowerCase().includes(word));
  const found = [...openingOf(text), ...commands.value.filter(matches)];
  const close = (): void => {
    paletteIsOpen.value = false;
  };
  const run = (command: Command | undefined): void => {
    close();
    command?.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt((now) => Math.max(0, Math.min(found.length - 1, now + step)));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[at]);
    }
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Command palette"
      onCancel={close}
      onClose={close}
    >
      <input
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found[at] === undefined ? undefined : `${id}-${at}`}
        placeholder='A command, or a key: ["users", 42]'
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id={id} role="listbox" aria-label="Commands" tabIndex={-1} class="options">
        {found.map((command, place) => (
          <div
            key={command.title}
            id={`${id}-${place}`}
            role="option"
            tabIndex={-1}
            aria-selected={place === at}
            onPointerMove={() => setAt(place)}
            onClick={() => run(command)}
            onKeyDown={onKeyDown}
          >
            <span>{command.title}</span>
            {command.keys !== undefined && <kbd>{command.keys}</kbd>}
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="empty">No command has this name.</p>}
    </dialog>
  );
}
