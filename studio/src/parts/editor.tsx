// Duty: a field for a literal. Escape leaves it, so that Tab may indent.

import { useEffect, useRef, useState } from "preact/hooks";
import { report } from "../shell/toasts";

interface EditorProps {
  /** The text at the beginning; a new `of` begins anew. */
  readonly text: string;
  readonly of: string;
  readonly label: string;
  readonly isReadOnly?: boolean;
  onChange(text: string): void;
  onSave?(): void;
}

export function Editor({ text, of, label, isReadOnly = false, onChange, onSave }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const [isLoaded, setLoaded] = useState(false);
  const handlers = useRef({ onChange, onSave });
  handlers.current = { onChange, onSave };
  useEffect(() => {
    const element = host.current!;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    let isEnded = false;
    let end = (): void => {};
    import("./code-mirror").then(({ edit }) => {
      if (isEnded) return;
      const view = edit(root, {
        text,
        label,
        isReadOnly,
        onChange: (changed) => handlers.current.onChange(changed),
        onSave: () => handlers.current.onSave?.(),
        onLeave: () => element.parentElement?.querySelector<HTMLElement>("[data-leave]")?.focus(),
      });
      setLoaded(true);
      end = () => view.destroy();
    }, report);
    return () => {
      isEnded = true;
      end();
    };
  }, [of, isReadOnly]);
  return (
    <div class="editor">
      {!isLoaded && <pre>{text}</pre>}
      <div ref={host} hidden={!isLoaded} />
      <span class="visually-hidden" tabIndex={-1} data-leave>
        left {label}
      </span>
    </div>
  );
}
