// Numbers in refusals of requests that are too long.

const LIMIT_PATTERNS: readonly RegExp[] = [
  /(?:maximum|max)(?:imum)? (?:context|model|input|prompt|sequence) (?:length|size|window)(?: of this model| for this model)?(?: is| of| =|:)?\s*(?:only )?(\d[\d,_]*)/i,
  /context[ _](?:length|size|window)(?: limit)?(?: of| is| =|:)\s*(?:only )?(\d[\d,_]*)/i,
  /context_length_exceeded:?\s*(\d[\d,_]*)/i,
  /\d[\d,_]* tokens?\s*>\s*(\d[\d,_]*)(?: tokens?)? (?:maximum|limit)/i,
  /(?:exceeds?|over|greater than|larger than)(?: the)?(?: available| model'?s?)?(?: maximum| max)?(?: context)?(?: length| size| window| limit| token limit)?(?: of| is)? \(?(\d[\d,_]*)(?: tokens?)?/i,
  /(?:n_ctx(?:_slot)?|max_model_len|max_position_embeddings)["' ]*[=:(]\s*(\d[\d,_]*)/i,
  /(?:limit|maximum)(?: is| of| =|:)\s*(\d[\d,_]*) tokens/i,
  /(?:最大长度|上下文长度)[^\d]{0,8}(\d[\d,_]*)/,
];

/** The window a server names when it refuses a request as too long; null when it names none (1,024 ... 10 million). */
export function parseContextLimitFromError(text: string): number | null {
  for (const pattern of LIMIT_PATTERNS) {
    const limit = toNumber(pattern.exec(text)?.[1]);
    if (limit !== null && limit >= 1024 && limit <= 10_000_000) return limit;
  }
  return null;
}

const AVAILABLE_PATTERNS: readonly RegExp[] = [
  /available[_ ]tokens?(?: is| are| =|:)?\s*(\d[\d,_]*)/i,
  /(\d[\d,_]*)\s*(?:tokens? )?(?:are |is )?available(?: tokens?)?/i,
  /(?:only|leaves?|remaining)(?: room for)?\s*(\d[\d,_]*)\s*(?:output )?tokens?/i,
];

/** How many output tokens the server says are left, when the output cap alone was too large; else null. */
export function parseAvailableOutputTokensFromError(text: string): number | null {
  if (!/max(?:imum)?[_ ](?:completion_|output_|new_)?tokens/i.test(text)) return null;
  if (!/available|leaves?|remaining/i.test(text)) return null;
  for (const pattern of AVAILABLE_PATTERNS) {
    const available = toNumber(pattern.exec(text)?.[1]);
    if (available !== null && available >= 1) return available;
  }
  return null;
}

function toNumber(digits: string | undefined): number | null {
  if (!digits) return null;
  const value = Number(digits.replace(/[,_]/g, ""));
  return Number.isSafeInteger(value) ? value : null;
}
