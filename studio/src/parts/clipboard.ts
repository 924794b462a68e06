// Duty: copies text.

import { report, say } from "../shell/toasts";

/** `name` says what was copied. */
export function copyText(text: string, name: string): void {
  navigator.clipboard.writeText(text).then(() => say(`${name} copied`), report);
}
