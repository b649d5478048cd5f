// Hints that are shown once in a home's life.
import type { OpenHome } from "../../home/open.ts";

const HINTS = {
  busy_input_prompt:
    "Enter while the agent works stops it and says the new message. /busy queue waits for the end, /busy steer tells it on the way.",
  tool_progress_prompt: "These lines are the tools at work. /verbose shows less or more of them.",
} as const;

export type HintName = keyof typeof HINTS;

/** The hint, the first time; null ever after. `shown` is what this process has shown already: writing takes a moment. */
export function firstTimeHint(name: HintName, home: OpenHome, shown: Set<HintName>): string | null {
  if (shown.has(name) || home.config().onboarding.seen[name] || home.managed || home.configBroken) return null;
  shown.add(name);
  home
    .setConfigKey(["onboarding", "seen", name], true)
    .catch((error: unknown) => home.log.warn(`the hint ${name} could not be marked as seen`, error));
  return HINTS[name];
}
