const WORDS =
  "yes|no|ok|okay|sure|thanks|thank you|y|n|yep|nope|yeah|nah|hi|hey|hello|yo|sup|continue|go ahead|do it|proceed|got it|cool|nice|great|done|next|lgtm|k";
const TRIVIAL = new RegExp(`^(?:${WORDS})[\\s\\p{P}\\p{S}]*$`, "iu");

/** Nothing could be recalled for it: empty, a command, or a bare acknowledgement or greeting. */
export function isTrivialPrompt(text: string): boolean {
  const said = text.trim();
  return said === "" || said.startsWith("/") || TRIVIAL.test(said);
}

/** What was typed without the skills that were called with it: `/release tag it` -> `tag it`. */
export function withoutSkillCalls(typed: string): string {
  return typed.trim().replace(/^(?:\/[^\s/]+(?:\s+|$))+/, "");
}
