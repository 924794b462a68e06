// Duty: completion: generates scripts for completion in bash, zsh and fish from the table of
// commands.

import { Argument, type Command } from "commander";
import { type Place, placesOf } from "../command-tree.js";
import { put } from "../output.js";

const SHELLS = ["bash", "zsh", "fish"] as const;

export function addCompletionCommand(program: Command): void {
  program
    .command("completion")
    .description("print a script that completes this command in a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .action(async (shell: (typeof SHELLS)[number]) => {
      const places = placesOf(program);
      const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };
      await put(scripts[shell](places));
    });
}

/**
 * Code that sets `at` to the commands before the cursor, as `/queue/list`. `word` is each word
 * before it.
 */
function walk(places: readonly Place[], indent: string): string {
  const paths = places.slice(1).map(({ path }) => `/${path.replaceAll(" ", "/")}`);
  return ['case "$at/$word" in', `  ${paths.join("|")}) at="$at/$word" ;;`, "esac"]
    .map((line) => indent + line)
    .join("\n");
}

function optionsWithValue(places: readonly Place[]): string {
  const names = places.flatMap(({ options }) =>
    options.filter((one) => one.takesValue).map(({ name }) => name),
  );
  return [...new Set(names)].join("|");
}

/** Cases of the completions: the words of each command, and the values of its options. */
function offers(places: readonly Place[], indent: string): string {
  const at = places.map(({ path, commands, options }) => {
    const place = path === "" ? '""' : `/${path.replaceAll(" ", "/")}`;
    const names = options.map(({ name }) => name).join(" ");
    return `  ${place}) commands="${commands.map(({ name }) => name).join(" ")}" options="${names}" ;;`;
  });
  return ['case "$at" in', ...at, "esac"].map((line) => indent + line).join("\n");
}

function choices(places: readonly Place[], indent: string): string {
  const found = places.flatMap(({ path, options }) =>
    options
      .filter((one) => one.choices.length > 0)
      .map(
        ({ name, choices: some }) =>
          `  "${path === "" ? "" : `/${path.replaceAll(" ", "/")}`} ${name}") choices="${some.join(" ")}" ;;`,
      ),
  );
  return ['case "$at $previous" in', ...found, "esac"].map((line) => indent + line).join("\n");
}

/**
 * The differences between bash and zsh: the words of the line from `first` to `end`, and one of
 * them.
 */
interface Words {
  readonly first: number;
  readonly end: string;
  word(index: string): string;
}

/** The code that bash and zsh share: sets `commands`, `options` and `choices` for the cursor. */
function lookup(places: readonly Place[], { first, end, word }: Words): string {
  return `  local at="" word="" commands="" options="" choices="" i
  local previous="${word(`${end}-1`)}"
  for ((i = ${first}; i < ${end}; i++)); do
    word="${word("i")}"
    case "$word" in
      ${optionsWithValue(places)}) ((i++)); continue ;;
    esac
${walk(places, "    ")}
  done
${choices(places, "  ")}
${offers(places, "  ")}`;
}

function bashScript(places: readonly Place[]): string {
  const word = (index: string): string => `\${COMP_WORDS[${index}]}`;
  return `# openkv completion bash: source it, or put it where bash-completion looks.
_openkv() {
  local current="${word("COMP_CWORD")}"
${lookup(places, { first: 1, end: "COMP_CWORD", word })}
  if [[ -n "$choices" ]]; then
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
  elif [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$commands" -- "$current"))
  fi
}
complete -o default -F _openkv openkv
`;
}

function zshScript(places: readonly Place[]): string {
  const word = (index: string): string => `\${words[${index}]}`;
  return `#compdef openkv
# openkv completion zsh: source it behind compinit, or put it as _openkv into a folder of $fpath.
_openkv() {
${lookup(places, { first: 2, end: "CURRENT", word })}
  if [[ -n "$choices" ]]; then
    compadd -- \${=choices}
  elif [[ "$PREFIX" == -* ]]; then
    compadd -- \${=options}
  elif [[ -n "$commands" ]]; then
    compadd -- \${=commands}
  else
    _files
  fi
}
compdef _openkv openkv
`;
}

function fishScript(places: readonly Place[]): string {
  const quoted = (text: string): string =>
    `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = places.flatMap(({ path, commands, options }) => {
    const place = `-n '__openkv_at "${path}"'`;
    return [
      ...commands.map(
        ({ name, description }) =>
          `complete -c openkv -f ${place} -a ${name} -d ${quoted(description)}`,
      ),
      ...options.map(({ name, description, takesValue, choices: some }) => {
        const flag = name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
        const value =
          some.length > 0 ? ` -x -a ${quoted(some.join(" "))}` : takesValue ? " -r" : "";
        return `complete -c openkv ${place} ${flag}${value} -d ${quoted(description)}`;
      }),
    ];
  });
  const paths = places
    .slice(1)
    .map(({ path }) => `"${path}"`)
    .join(" ");
  return `# openkv completion fish: source it, or put it into ~/.config/fish/completions/openkv.fish
function __openkv_at
  set -l at ""
  for word in (commandline -opc)[2..-1]
    set -l inner (string trim "$at $word")
    if contains -- "$inner" ${paths}
      set at "$inner"
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join("\n")}
`;
}
