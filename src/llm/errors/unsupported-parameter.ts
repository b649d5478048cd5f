// A server that names a parameter it does not take: the request can be repeated without it, and the session remembers.

const DROPPABLE = [
  "temperature",
  "top_p",
  "max_tokens",
  "max_completion_tokens",
  "reasoning_effort",
  "reasoning",
  "thinking",
  "stream_options",
  "parallel_tool_calls",
  "service_tier",
] as const;

export type DroppableParameter = (typeof DROPPABLE)[number];

const REFUSALS =
  /(?:unsupported|unknown|unrecognized|unexpected|extra|invalid)[^.\n]{0,40}(?:parameter|argument|field|value|key)s?[^\w\n]{0,6}\s*(?:supplied|named)?[\s:'"`]*([a-z_]+)|['"`]?([a-z_]+)['"`]?\s*(?:is|are) (?:not supported|unsupported|deprecated|not permitted|not allowed)|['"`]?([a-z_]+)['"`]? does not support|([a-z_]+):? extra inputs are not permitted/gi;

/** The parameter a refusal names, if it is one that a request can do without; else null. */
export function unsupportedParameter(text: string): DroppableParameter | null {
  // OpenAI's words for a model that does not think but was asked for its thoughts.
  if (/encrypted content is not supported/i.test(text)) return "reasoning";
  for (const match of text.matchAll(REFUSALS)) {
    const named = match
      .slice(1)
      .find((name) => name !== undefined)
      ?.toLowerCase();
    const known = DROPPABLE.find((name) => name === named);
    if (known) return known;
  }
  return null;
}
