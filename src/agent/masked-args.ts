/** Arguments of a call as a screen may show them: secrets masked in every text, however deep. */
export function maskArgs(
  args: Readonly<Record<string, unknown>>,
  redact: (text: string) => string,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, maskValue(value, redact)]));
}

function maskValue(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((item) => maskValue(item, redact));
  if (typeof value !== "object" || value === null) return value;
  return maskArgs(value as Record<string, unknown>, redact); // parsed from JSON: a plain object
}
