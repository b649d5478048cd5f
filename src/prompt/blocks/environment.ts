import type { PromptInputs } from "../contract.ts";

export function environmentHints(input: PromptInputs): string {
  const host = `Host: ${input.hostName}\nUser home directory: ${input.userHome}`;
  return [host, input.environmentHint.trim()].filter((text) => text !== "").join("\n\n");
}
