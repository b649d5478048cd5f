// What Tab and the menu offer: slash commands with their values, and file paths.
import { type AutocompleteProvider, CombinedAutocompleteProvider, type SlashCommand } from "@earendil-works/pi-tui";
import type { CommandDefinition } from "../../commands/definition.ts";
import { subcommandsOf } from "../../commands/registry.ts";

export interface DynamicValues {
  /** Titles of earlier conversations. */
  titles(): Promise<readonly string[]>;
  models(): Promise<readonly string[]>;
}

export function completions(
  commands: readonly CommandDefinition[],
  cwd: string,
  values: DynamicValues,
): AutocompleteProvider {
  const slash = commands.map((command): SlashCommand => {
    const dynamic = { resume: values.titles, model: values.models }[command.name];
    const fixed = subcommandsOf(command);
    return {
      name: command.name,
      description: command.description,
      ...(command.argsHint ? { argumentHint: command.argsHint } : {}),
      async getArgumentCompletions(prefix) {
        const candidates = dynamic ? await dynamic() : fixed;
        const matching = candidates.filter((value) => value.toLowerCase().startsWith(prefix.toLowerCase()));
        return matching.length > 0 ? matching.map((value) => ({ value, label: value })) : null;
      },
    };
  });
  return new CombinedAutocompleteProvider(slash, cwd);
}
