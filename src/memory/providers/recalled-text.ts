import { scanForThreats } from "../../safety/threats/scan.ts";

/** Text of a provider on its way into a prompt: a paragraph that does not pass the threat scan is replaced by a line that says so. */
export function screenRecall(text: string): string {
  return text
    .split(/(\n[ \t]*\n\s*)/)
    .map((part, index) => (index % 2 === 0 ? screenParagraph(part) : part))
    .join("")
    .trim();
}

function screenParagraph(paragraph: string): string {
  const ids = scanForThreats(paragraph, "context").map(({ id }) => id);
  return ids.length === 0 ? paragraph : `[BLOCKED: recalled text contained threat pattern(s): ${ids.join(", ")}.]`;
}
