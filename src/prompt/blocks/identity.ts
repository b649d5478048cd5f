import { DEFAULT_IDENTITY } from "../../home/soul.ts";
import type { PromptInputs } from "../contract.ts";

/** The user's SOUL.md as it is, or the built-in identity. */
export function identity(input: PromptInputs): string {
  return input.soul?.trim() || DEFAULT_IDENTITY;
}

export function productHelp(input: PromptInputs): string {
  const skill = input.toolNames.includes("skill_view")
    ? " or load the `hermes-agent` skill with `skill_view` if it is there; where the two differ, the documentation is right"
    : "";
  return `You run on Hermes Agent. When the user asks about Hermes itself (setting it up, what it can do, why something does not work), do not answer from memory: look it up in its documentation (\`hermes --help\`, the docs folder of the installation)${skill}.`;
}
