import type { ContentPart } from "../../llm/messages.ts";

/** The result with its hints. A picture stays as it is; the text goes to the first text part. */
export function withHints(
  content: string | readonly ContentPart[],
  hints: string | null,
): string | readonly ContentPart[] {
  if (hints === null) return content;
  if (typeof content === "string") return content + hints;
  const first = content.findIndex(({ type }) => type === "text");
  if (first === -1) return [{ type: "text", text: hints.trimStart() }, ...content];
  return content.map((part, index) =>
    index === first && part.type === "text" ? { ...part, text: part.text + hints } : part,
  );
}
