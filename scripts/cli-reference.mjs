// Duty: writes the last section of docs/cli.md, every command with its arguments and options, from
// the program itself. `npm run generate` runs it.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
export const page = join(root, "docs", "cli.md");
const HEAD = "## All commands and options\n";

/** The section, with its heading. */
export function reference() {
  const { makeProgram } = createRequire(import.meta.url)("../build/cli/main.js");
  const program = makeProgram();
  const parts = [
    HEAD,
    "Written by `scripts/cli-reference.mjs` from the program. Options that every command has:\n",
    table(program),
  ];
  const visit = (command, path) => {
    for (const one of command.commands) visit(one, [...path, one.name()]);
    if (command.commands.length > 0) return;
    parts.push(
      `### \`${path.join(" ")} ${command.usage()}\`\n`,
      `${sentence(command.description())}\n`,
      table(command),
    );
  };
  visit(program, ["openkv"]);
  return parts.filter((part) => part !== "").join("\n");
}

/** The page with the generated section. */
export function written() {
  const text = readFileSync(page, "utf8");
  const start = text.indexOf(HEAD);
  return (start === -1 ? `${text.trimEnd()}\n\n` : text.slice(0, start)) + reference();
}

function table(command) {
  const rows = [
    ...command.registeredArguments.map((one) => [`<${one.name()}>`, one]),
    ...command.options.filter(({ hidden }) => !hidden).map((one) => [one.flags, one]),
  ];
  if (rows.length === 0) return "";
  const lines = rows.map(([name, one]) => `| \`${name}\` | ${told(one)} |`);
  return `| | |\n|---|---|\n${lines.join("\n")}\n`;
}

function told({ description, argChoices, defaultValue, envVar }) {
  const facts = [
    ...(argChoices ? [`one of ${argChoices.join(", ")}`] : []),
    ...(defaultValue === undefined || typeof defaultValue === "boolean"
      ? []
      : [`default: ${defaultValue}`]),
    ...(envVar ? [`env: ${envVar}`] : []),
  ];
  const text = facts.length > 0 ? `${description} (${facts.join("; ")})` : description;
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}
