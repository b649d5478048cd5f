import type { HookStanding } from "../../plugins/shell-hooks/shell-hooks.ts";

/** Whether a hook may run, in words for its owner. */
export function standingText(standing: HookStanding): string {
  if (standing.type === "allowed") {
    const by = { consent: "allowed by you", auto: "allowed by hooks_auto_accept", session: "allowed for now" };
    return by[standing.by];
  }
  if (standing.type === "unseen") return "not allowed yet; the next interactive conversation asks";
  if (standing.type === "changed") return "changed since you allowed it; the next interactive conversation asks";
  return `refused by the command policy (${standing.reason})`;
}
