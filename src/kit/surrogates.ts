// Half of a surrogate pair cannot be written as UTF-8; servers refuse the whole request because of one.

/** Lone surrogates become U+FFFD; everything else stays. */
export function sanitizeSurrogates(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** The JSON text of a value: same value, same bytes, and no lone surrogate anywhere. */
export function stringifyWellFormed(value: unknown): string {
  const json = JSON.stringify(value);
  return mayHoldLoneSurrogate(json) ? JSON.stringify(scrubSurrogates(value)) : json;
}

/** JSON.stringify writes a pair as it is and only a lone half as an escape; a literal backslash may look the same, which costs a walk. */
export function mayHoldLoneSurrogate(json: string): boolean {
  return json.includes("\\ud") && /\\ud[89a-f]/.test(json);
}

/** The value with every string in it, keys too, well formed. */
export function scrubSurrogates(value: unknown): unknown {
  if (typeof value === "string") return sanitizeSurrogates(value);
  if (Array.isArray(value)) return value.map(scrubSurrogates);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [sanitizeSurrogates(key), scrubSurrogates(entry)]),
  );
}
