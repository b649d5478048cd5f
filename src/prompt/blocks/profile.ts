import type { PromptInputs } from "../contract.ts";

const PARTS = "`skills/`, `plugins/`, `cron/` and `memories/`";

/** Which profile this is, and whose files are not this session's to touch. */
export function profileStatement(input: PromptInputs): string {
  if (input.profile === "default") {
    return `Active Hermes profile: default. Other profiles, if there are any, live under ${input.rootHome}/profiles/<name>/ with their own ${PARTS}, which serve other sessions. Do not modify another profile's files unless the user explicitly tells you to.`;
  }
  return `Active Hermes profile: ${input.profile}. This session reads and writes ${input.profileHome}/. The default profile's ${PARTS} under ${input.rootHome}/ belong to a different session. Do not modify another profile's files unless the user explicitly tells you to; the write guard refuses it unless called with \`cross_profile=True\` after such an instruction.`;
}
