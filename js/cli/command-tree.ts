// Duty: the commands of the program as a table, for completion in shells.

import type { Command } from "commander";

export interface Offer {
  readonly name: string;
  readonly description: string;
}

export interface OfferedOption extends Offer {
  /** The valid values; empty for any value. */
  readonly choices: readonly string[];
  readonly takesValue: boolean;
}

/** A command, for completion. */
export interface Place {
  /** The names of the commands with spaces between them; empty for the program itself. */
  readonly path: string;
  readonly commands: readonly Offer[];
  readonly options: readonly OfferedOption[];
}

/** Every command, the program first. */
export function placesOf(program: Command): Place[] {
  const shared = optionsOf(program);
  const places: Place[] = [];
  const visit = (command: Command, path: string): void => {
    const commands = command.commands.map((one) => ({
      name: one.name(),
      description: one.description(),
    }));
    const options = command === program ? shared : [...optionsOf(command), ...shared];
    places.push({ path, commands, options });
    for (const one of command.commands) visit(one, `${path} ${one.name()}`.trim());
  };
  visit(program, "");
  return places;
}

function optionsOf(command: Command): OfferedOption[] {
  const help: OfferedOption = {
    name: "--help",
    description: "print help",
    choices: [],
    takesValue: false,
  };
  const own = command.options
    .filter(({ hidden }) => !hidden)
    .flatMap((option): OfferedOption[] => {
      const { description, argChoices: choices = [] } = option;
      const takesValue = option.required || option.optional;
      const names = [option.long, option.short].filter((name) => name != null);
      return names.map((name) => ({ name, description, choices, takesValue }));
    });
  return command.parent === null ? [...own, help] : own;
}

/** The completions of `current`, after `words`. */
export function suggest(
  places: readonly Place[],
  words: readonly string[],
  current: string,
): string[] {
  let place = places[0]!;
  let expected: OfferedOption | undefined;
  for (const word of words) {
    if (expected !== undefined) {
      expected = undefined;
      continue;
    }
    expected = place.options.find(({ name, takesValue }) => name === word && takesValue);
    const inner = `${place.path} ${word}`.trim();
    place = places.find(({ path }) => path === inner) ?? place;
  }
  const offered = expected?.choices ?? [
    ...place.commands.map(({ name }) => name),
    ...(current.startsWith("-") ? place.options.map(({ name }) => name) : []),
  ];
  return offered.filter((name) => name.startsWith(current));
}
