import { DEFAULT_IDENTITY } from "../../home/soul.ts";
import type { SoulReading } from "../contract.ts";

/** The user's SOUL.md as it is, or the built-in identity. A withheld file leaves its marker, never an agent without identity. */
export function identity(soul: SoulReading | null): string {
  const own = soul?.text ?? DEFAULT_IDENTITY;
  return soul?.blockedMarker ? `${own}\n\n${soul.blockedMarker}` : own;
}

export function productHelp(toolNames: readonly string[]): string {
  const skill = toolNames.includes("skill_view")
    ? ", or load the `hermes-agent` skill with `skill_view` if it is there; where they differ, the documentation is right"
    : "";
  return `You run on Hermes Agent. Questions about Hermes itself (setting it up, what it can do, why something does not work) are not answered from memory: consult its documentation (\`hermes --help\`, the docs folder of the installation)${skill}.`;
}
