// Duty: shows the lines that differ between two texts.

import { changesOf } from "../values/changes";

const SIGNS = { same: " ", added: "+", removed: "−" };
const NAMES = { same: "", added: "added: ", removed: "removed: " };

interface ChangesProps {
  readonly before: string;
  readonly after: string;
}

export function ChangesView({ before, after }: ChangesProps) {
  return (
    <pre class="changes">
      {changesOf(before, after).map(({ mark, text }) => (
        <div class={mark}>
          <span aria-hidden="true">{SIGNS[mark]} </span>
          <span class="visually-hidden">{NAMES[mark]}</span>
          {text}
        </div>
      ))}
    </pre>
  );
}
