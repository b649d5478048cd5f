// What waits to be sent: one line per message above the input, and a panel in which the messages are edited, deleted, moved or sent now.

import { type Component, matchesKey } from "@earendil-works/pi-tui";
import { t } from "../../home/language/words.ts";
import type { UserInput } from "../../llm/messages.ts";
import { cut, printable, type Theme, wrapColumns } from "../terminal-text.ts";
import { queuedText, type Turns } from "./turns.ts";

const SHOWN_CHARS = 500;
const LINES = 5;
const PANEL_ROWS = 8;
const KEYS_HELP = "Enter edit · d delete · Shift+Up/Down move · s send now · Esc close";

const oneLine = (text: string) => printable(text.slice(0, SHOWN_CHARS)).replace(/\s+/g, " ").trim();

/** The queue as it is always shown. */
export function queueLines(texts: readonly string[], width: number, theme: Theme): string[] {
  const lines = texts.slice(0, LINES).map((text) => t("▶ next: {text}", { text: oneLine(text) }));
  const more = texts.length - lines.length;
  if (more > 0) lines.push(t("▶ and {count} more", { count: more }));
  if (lines.length > 0) lines.push(`  ${t("Ctrl+X q edits the queue, Up takes back the last message")}`);
  return lines.map((line) => theme.dim(cut(line, width)));
}

interface PanelOptions {
  readonly turns: Pick<Turns, "queued" | "remove" | "move" | "sendNow">;
  readonly theme: Theme;
  /** Puts a message that was taken out of the queue into the input. */
  edit(input: UserInput): void;
  close(): void;
}

export class QueuePanel implements Component {
  readonly #options: PanelOptions;
  /** By itself, not by its place: what is first may be sent at any moment. */
  #selected: UserInput | undefined;

  constructor(options: PanelOptions) {
    this.#options = options;
    this.#selected = options.turns.queued.at(-1);
  }

  render(width: number): string[] {
    const { turns, theme } = this.#options;
    const { queued } = turns;
    if (queued.length === 0)
      return [cut(t("The queue is empty."), width), theme.dim(cut(`  ${t("Esc close")}`, width))];
    const at = this.#at;
    const from = Math.max(0, Math.min(at - PANEL_ROWS + 1, queued.length - PANEL_ROWS));
    const rows = queued.slice(from, from + PANEL_ROWS).map((input, index) => {
      const isSelected = from + index === at;
      const mark = input.from === "synthetic" ? "⚙ " : "";
      const line = cut(`${isSelected ? "❯" : " "} ${from + index + 1}. ${mark}${oneLine(queuedText(input))}`, width);
      return isSelected ? theme.accent(line) : line;
    });
    return [
      cut(t("Queue ({count})", { count: queued.length }), width),
      ...rows,
      ...wrapColumns(`  ${t(KEYS_HELP)}`, width).map(theme.dim),
    ];
  }

  handleInput(data: string): void {
    const { turns, edit, close } = this.#options;
    const { queued } = turns;
    const at = this.#at;
    const selected = queued[at];
    const pressed = (...keys: Parameters<typeof matchesKey>[1][]) => keys.some((key) => matchesKey(data, key));
    if (pressed("escape", "ctrl+c") || selected === undefined) return close();
    if (pressed("up")) this.#selected = queued[at - 1] ?? selected;
    else if (pressed("down")) this.#selected = queued[at + 1] ?? selected;
    else if (pressed("shift+up") || data === "K") this.#move(selected, -1);
    else if (pressed("shift+down") || data === "J") this.#move(selected, 1);
    else if (pressed("delete", "backspace") || data === "d") {
      this.#selected = queued[at + 1] ?? queued[at - 1];
      turns.remove(selected);
      if (queued.length === 1) close();
    } else if (data === "s") {
      close();
      turns.sendNow(selected);
    } else if ((pressed("enter") || data === "e") && selected.from !== "synthetic") {
      // It may have been sent since it was drawn.
      const isTaken = turns.remove(selected);
      close();
      if (isTaken) edit(selected);
    }
  }

  invalidate(): void {
    // drawn anew for every frame
  }

  get #at(): number {
    const { queued } = this.#options.turns;
    return Math.max(0, this.#selected ? queued.indexOf(this.#selected) : 0);
  }

  #move(selected: UserInput, by: -1 | 1): void {
    this.#selected = selected;
    this.#options.turns.move(selected, by);
  }
}
