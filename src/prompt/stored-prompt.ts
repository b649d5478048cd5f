// Small, exact cuts into a prompt that is already stored. Both rely on where a block stands, never on what its text claims.

/** The same prompt for another destination during a fail-over: the `Model:` and `Provider:` lines of its last block and nothing else. */
export function retargetPrompt(prompt: string, to: { readonly model: string; readonly provider: string }): string {
  const start = prompt.lastIndexOf("\n\n") + 1;
  const line = prompt.slice(start);
  if (!line.trimStart().startsWith("Conversation started: ")) return prompt;
  const changed = line
    .replace(/^Model: .*$/m, () => `Model: ${to.model}`)
    .replace(/^Provider: .*$/m, () => `Provider: ${to.provider}`);
  return prompt.slice(0, start) + changed;
}
