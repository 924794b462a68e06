// Duty: opens a URL in the browser of the user.

import { type ChildProcess, spawn } from "node:child_process";

/** An opener that fails does so at once; one that is alive after this long has opened the URL. */
const FAILS_WITHIN_MS = 1500;

/**
 * Opens a URL, and returns whether a browser seems to be open. On Linux the variable BROWSER names
 * the program, or several with colons between them, of which the first that works is taken.
 */
export async function openBrowser(url: string): Promise<boolean> {
  for (const [command, ...words] of openers()) {
    if (await starts(command, [...words, url])) return true;
  }
  return false;
}

/** How to reach a page of this machine from another one, for a user who is logged in from there. */
export function tunnelTo(url: string): string {
  if (process.env.SSH_CONNECTION === undefined) return "";
  const { port, hostname } = new URL(url);
  return `; from your machine after: ssh -L ${port}:${hostname}:${port} THIS_MACHINE`;
}

type Opener = readonly [string, ...string[]];

/** None of them is a shell, which would interpret the URL. */
function openers(): Opener[] {
  if (process.platform === "darwin") return [["open"]];
  if (process.platform === "win32") return [["rundll32", "url.dll,FileProtocolHandler"]];
  const { BROWSER, DISPLAY, WAYLAND_DISPLAY } = process.env;
  if (BROWSER) {
    const words = BROWSER.split(":").map((one) => one.split(/\s+/).filter((word) => word !== ""));
    return words.filter((one): one is [string, ...string[]] => one.length > 0);
  }
  // Without a desktop xdg-open looks for a browser in the terminal, which this program is using.
  return DISPLAY || WAYLAND_DISPLAY ? [["xdg-open"]] : [];
}

/** Whether a program starts, and does not fail at once. */
function starts(command: string, words: readonly string[]): Promise<boolean> {
  const child: ChildProcess = spawn(command, words, { detached: true, stdio: "ignore" });
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(true), FAILS_WITHIN_MS);
    const settle = (isOpen: boolean): void => {
      clearTimeout(timer);
      resolve(isOpen);
    };
    child.once("error", () => settle(false));
    child.once("exit", (code) => settle(code === 0));
    child.unref();
  });
}
