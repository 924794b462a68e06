// Duty: CodeMirror for literals, in a module of its own that is loaded with the first editor.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascriptLanguage } from "@codemirror/lang-javascript";
import {
  HighlightStyle,
  bracketMatching,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const COLOURS = HighlightStyle.define([
  { tag: tags.string, color: "var(--t-string)" },
  { tag: tags.number, color: "var(--t-number)" },
  { tag: [tags.bool, tags.null, tags.atom], color: "var(--t-boolean)" },
  { tag: tags.propertyName, color: "var(--t-name)" },
  { tag: tags.variableName, color: "var(--t-bytes)" },
  { tag: tags.comment, color: "var(--soft)" },
]);

/** Expressions alone: a text that begins with a brace is an object, not a block. */
const LITERALS = javascriptLanguage.configure({ top: "SingleExpression" });

const LOOK = EditorView.theme({
  "&": {
    fontSize: "var(--mono-field-font)",
    color: "var(--ink)",
    backgroundColor: "var(--raised)",
    maxHeight: "60vh",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-gutters": {
    backgroundColor: "var(--ground)",
    color: "var(--soft)",
    borderRight: "1px solid var(--line)",
  },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-wash) !important",
  },
});

export interface EditorOptions {
  readonly text: string;
  readonly label: string;
  readonly isReadOnly: boolean;
  onChange(text: string): void;
  onSave(): void;
  onLeave(): void;
}

/**
 * Shows an editor in a shadow root: there its styles are constructed sheets, which the policy of the page
 * allows; elsewhere they would be an inline element.
 */
export function edit(root: ShadowRoot, options: EditorOptions): EditorView {
  const handled = (work: () => void) => (): boolean => {
    work();
    return true;
  };
  const saves = { key: "Mod-s", preventDefault: true, run: handled(() => options.onSave()) };
  const leaves = { key: "Escape", run: handled(() => options.onLeave()) };
  const state = EditorState.create({
    doc: options.text,
    extensions: [
      lineNumbers(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      LITERALS,
      indentUnit.of("  "),
      syntaxHighlighting(COLOURS),
      EditorView.lineWrapping,
      EditorState.readOnly.of(options.isReadOnly),
      EditorView.contentAttributes.of({ "aria-label": options.label }),
      keymap.of([saves, leaves, indentWithTab, ...defaultKeymap, ...historyKeymap]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) options.onChange(update.state.doc.toString());
      }),
      LOOK,
    ],
  });
  return new EditorView({ state, root, parent: root });
}
