// Cutting by cells, as the renderer counts them: a line that is one cell too long is an error there.
import { stripTerminalSequences, truncateToWidth, visibleWidth } from "@earendil-works/pi-tui";

/** Cut by cells, with dots that never exceed the width. */
export function cut(text: string, width: number): string {
  if (visibleWidth(text) <= width) return text;
  if (width <= 3) return ".".repeat(Math.max(0, width));
  const shortened = truncateToWidth(text, width, "...");
  return text.includes("\u001b") ? shortened : stripTerminalSequences(shortened);
}

export const padTo = (text: string, width: number) => text + " ".repeat(Math.max(0, width - visibleWidth(text)));
