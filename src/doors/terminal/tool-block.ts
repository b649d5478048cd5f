// A finished call in the transcript: its line, and below it, when it is open, what it was given and what it found.

import type { AgentEvent } from "../../agent/events.ts";
import { said } from "../../home/language/words.ts";
import { plural } from "../../kit/formats.ts";
import { feedLine, feedSuffix } from "../feed.ts";
import { cut, type Theme, wrapLines } from "../terminal-text.ts";
import { CachedBlock } from "./blocks.ts";
import { type DetailLine, toolDetails } from "./tool-details.ts";

export type FinishedCall = Extract<AgentEvent, { type: "tool_end" }>;

const OPEN_LINES = 30;

interface ToolLook {
  readonly theme: Theme;
  readonly detailChars: number;
  /** Its output stands below its line. */
  readonly open: boolean;
}

export class ToolBlock extends CachedBlock {
  readonly #finished: Pick<FinishedCall, "call" | "result" | "ms">;
  readonly #look: ToolLook;

  constructor(finished: Pick<FinishedCall, "call" | "result" | "ms">, look: ToolLook) {
    super();
    this.#finished = finished;
    this.#look = look;
  }

  protected draw(width: number): string[] {
    const { call, result, ms } = this.#finished;
    const { theme, detailChars, open } = this.#look;
    const suffix = feedSuffix(call.name, result);
    const style = suffix ? theme.warn : theme.dim;
    const { toolPrefix: prefix, toolEmojis: emojis } = theme.look;
    const line = cut(style(feedLine(call, ms, suffix, { width, detailChars, prefix, emojis })), width);
    if (!open) return [line];
    const details = detailRows(toolDetails(call, result), Math.max(10, width - 4), theme);
    return [line, ...bounded(details, theme).map((each) => cut(`  ${theme.dim("│")} ${each}`, width))];
  }
}

/** Rows of at most `width` cells, painted by what they are. */
export function detailRows(lines: readonly DetailLine[], width: number, theme: Theme): string[] {
  return lines.flatMap(({ kind, text }) => {
    const paint = { given: theme.accent, found: theme.dim, note: theme.warn, bad: theme.error }[kind];
    return wrapLines(text, width).map(paint);
  });
}

/** The beginning and the end; of what is between only the count. */
function bounded(rows: readonly string[], theme: Theme): readonly string[] {
  if (rows.length <= OPEN_LINES) return rows;
  const head = Math.ceil(OPEN_LINES / 2);
  const tail = OPEN_LINES - head;
  const between = rows.length - head - tail;
  return [
    ...rows.slice(0, head),
    theme.dim(said(`… ${plural(between, "more line")}; Ctrl+O shows them`)),
    ...rows.slice(-tail),
  ];
}
