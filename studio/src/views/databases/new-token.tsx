// Duty: shows a new token, once.

import { copyText } from "../../parts/clipboard";

export function NewToken({ token, onClose }: { readonly token: string; onClose(): void }) {
  return (
    <div class="notice warn row" role="status">
      <span>A new token. It is shown only now:</span>
      <code class="grow">{token}</code>
      <button type="button" onClick={() => copyText(token, "Token")}>
        Copy
      </button>
      <button type="button" onClick={onClose}>
        Done
      </button>
    </div>
  );
}
