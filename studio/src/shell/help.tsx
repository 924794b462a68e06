// Duty: the list of keys.

import { signal } from "@preact/signals";
import { Dialog } from "../parts/dialog";
import { VIEWS } from "./views";

export const helpIsOpen = signal(false);

const KEYS: readonly (readonly [string, string])[] = [
  ["Ctrl K", "Command palette"],
  ["?", "This list"],
  ["/", "To the field for the prefix or search"],
  ["↑ ↓", "Move in a tree or list"],
  ["→ ←", "Open and close a branch; to its parent"],
  ["Enter", "Open the entry"],
  ["Space", "Mark the entry"],
  ["Delete", "Delete the entry, or what is marked"],
  ["n", "New entry"],
  ["Ctrl S", "Save the value that is edited"],
  ["Esc", "Close a dialog; leave the editor"],
];

export function Help() {
  if (!helpIsOpen.value) return null;
  const close = (): void => {
    helpIsOpen.value = false;
  };
  const all = [...KEYS, ...VIEWS.map(({ key, title }) => [`g ${key}`, title] as const)];
  return (
    <Dialog title="Keys" onClose={close}>
      <table>
        <tbody>
          {all.map(([keys, does]) => (
            <tr key={keys}>
              <th scope="row">
                {keys.split(" ").map((key) => (
                  <>
                    <kbd>{key}</kbd>{" "}
                  </>
                ))}
              </th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="row end">
        <button type="button" class="primary" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
