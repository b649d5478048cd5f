// What child agents do, one line each, the same in every door that shows a feed.
import type { SubagentEvent } from "../agent/events.ts";
import { cellWidth, cutCells } from "../kit/cells.ts";
import { feedRow } from "./feed.ts";

export interface SubagentLook {
  /** Cells of the whole line; the text gives way. */
  readonly width?: number;
  /** Every call of a child too, not only its beginning, its stages and its end. */
  readonly everyCall?: boolean;
  readonly prefix?: string;
}

/** `┊ 🔀 [1/3] find the tests`, indented by depth; null for what is not worth a line. */
export function subagentLine(
  event: SubagentEvent,
  { width, everyCall, prefix = "┊" }: SubagentLook = {},
): string | null {
  const said = words(event, everyCall === true);
  if (said === null) return null;
  const { mark, text, tail = "" } = said;
  const place = event.taskCount > 1 ? `[${event.taskIndex + 1}/${event.taskCount}] ` : "";
  const head = `${prefix} ${"  ".repeat(event.depth - 1)}${mark} ${place}`;
  const room = width === undefined ? Number.POSITIVE_INFINITY : Math.max(8, width - cellWidth(head) - cellWidth(tail));
  return `${head}${cutCells(text.replace(/\s+/g, " ").trim(), room, "...")}${tail}`;
}

/** The same in a few words, for a line that is overwritten. */
export function subagentActivity(event: SubagentEvent): string | null {
  if (event.phase === "complete" || event.phase === "spawn_requested") return null;
  const place = event.taskCount > 1 ? `[${event.taskIndex + 1}/${event.taskCount}] ` : "";
  return `🔀 ${place}${event.call ? callText(event.call) : event.text || event.goal}`;
}

interface Words {
  readonly mark: string;
  readonly text: string;
  readonly tail?: string;
}

function words(event: SubagentEvent, everyCall: boolean): Words | null {
  switch (event.phase) {
    case "start":
      return { mark: "🔀", text: event.goal };
    case "progress":
      return { mark: "· ", text: event.text ?? "" };
    case "tool":
      return everyCall && event.call ? { mark: "· ", text: callText(event.call) } : null;
    case "complete": {
      const tail = event.ms === undefined ? "" : `  ${(event.ms / 1000).toFixed(1)}s`;
      if (event.status === "completed") return { mark: "✓ ", text: event.goal, tail };
      return { mark: "✗ ", text: `${event.goal}: ${event.status}, ${event.text ?? ""}`, tail };
    }
    default:
      return null;
  }
}

function callText(call: NonNullable<SubagentEvent["call"]>): string {
  const { emoji, verb, detail } = feedRow(call);
  return `${emoji} ${verb} ${detail.slice(0, 300)}`;
}
