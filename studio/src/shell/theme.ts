// Duty: dark, light, or what the system has. The choice is kept in this browser; it is no secret.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const NAME = "openkv-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(dark.matches);
dark.addEventListener("change", () => {
  systemIsDark.value = dark.matches;
});

function kept(): Theme {
  try {
    const found = localStorage.getItem(NAME);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}

export const theme = signal<Theme>(kept());
export const isDark = signal(false);

effect(() => {
  isDark.value = theme.value === "system" ? systemIsDark.value : theme.value === "dark";
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
  try {
    localStorage.setItem(NAME, theme.value);
  } catch {
    // A browser without storage asks the system each time.
  }
});

const NEXT: Readonly<Record<Theme, Theme>> = { system: "light", light: "dark", dark: "system" };

export function nextTheme(): void {
  theme.value = NEXT[theme.value];
}
