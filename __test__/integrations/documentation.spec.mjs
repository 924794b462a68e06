// Duty: the programs of docs/integrations.md and docs/bullmq.md run when they are pasted into a project with the libraries.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const here = dirname(fileURLToPath(import.meta.url));
const pages = ["integrations.md", "bullmq.md"];
/** Below node_modules, where the programs find the libraries. */
const project = join(here, "node_modules", ".project");
/** A hang guard for one program. */
const RUN_MS_MAX = 30_000;

rmSync(project, { recursive: true, force: true });
mkdirSync(project);

for (const page of pages) {
  describe(`of docs/${page}`, () => {
    const text = readFileSync(join(here, "..", "..", "docs", page), "utf8");
    const programs = [...text.matchAll(/```js\n(\/\/ (\S+\.mjs)\n.*?)```/gs)];
    it("every block of JavaScript is a program", () => {
      expect(programs.length).toBe(text.split("```js\n").length - 1);
    });
    for (const [, source, name] of programs) {
      it(name, { timeout: RUN_MS_MAX }, () => {
        writeFileSync(join(project, name), source);
        const { status, stdout, stderr } = spawnSync(process.execPath, [name], {
          cwd: project,
          encoding: "utf8",
          timeout: RUN_MS_MAX,
        });
        expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
        const told = [...source.matchAll(/^ *console\.log\(.*\); \/\/ (.+)$/gm)].map(
          ([, line]) => line,
        );
        expect(told.length).toBeGreaterThan(0);
        expect(stdout.trimEnd().split("\n")).toEqual(told);
      });
    }
  });
}
