// Ctrl+O and Ctrl+T: the whole terminal for what scrolled by in one line, or not at all: the output of calls, the thinking of the last
// turn. It is not opened in place, because lines that have scrolled away belong to the terminal.
import { type Component, matchesKey } from "@earendil-works/pi-tui";
import { feedRow, feedSuffix } from "../feed.ts";
import { cut, printable, type Theme, wrapLines } from "../terminal-text.ts";
import { detailRows, type FinishedCall } from "./tool-block.ts";
import { toolDetails } from "./tool-details.ts";

/** One thing to look at. */
export interface Page {
  readonly title: string;
  /** Its end says most, so it is shown first. */
  readonly fromEnd?: boolean;
  rows(width: number, theme: Theme): readonly string[];
}

const PRINTS: ReadonlySet<string> = new Set(["terminal", "process", "execute_code"]);

export function pageOfCall({ call, result, ms }: Pick<FinishedCall, "call" | "result" | "ms">): Page {
  const { emoji, verb, detail } = feedRow(call);
  const suffix = feedSuffix(call.name, result);
  const head = `${emoji} ${verb} ${printable(detail).replace(/\s+/g, " ").slice(0, 200)}`.trim();
  return {
    title: `${head}  ${(ms / 1000).toFixed(1)}s${suffix === null ? "" : ` ${suffix}`}`,
    fromEnd: PRINTS.has(call.name),
    rows: (width, theme) => detailRows(toolDetails(call, result), width, theme),
  };
}

export function pageOfText(title: string, text: string): Page {
  const clean = printable(text).trim();
  return { title, rows: (width, theme) => wrapLines(clean, width).map(theme.dim) };
}

interface InspectorOptions {
  /** The last one is shown first. */
  readonly pages: readonly Page[];
  readonly theme: Theme;
  /** Rows of the terminal. */
  height(): number;
  onClose(): void;
  onChange(): void;
}

/** Title, a blank line, and the line with the keys. */
const OTHER_ROWS = 3;
const LEAST_ROWS = 5;

export class Inspector implements Component {
  readonly #options: InspectorOptions;
  #page: number;
  /** The first row that is shown. */
  #top = 0;
  #rows: { readonly width: number; readonly page: number; readonly rows: readonly string[] } | null = null;

  constructor(options: InspectorOptions) {
    this.#options = options;
    this.#page = options.pages.length - 1;
    this.#begin();
  }

  render(width: number): string[] {
    const { pages, theme } = this.#options;
    const rows = this.#allRows(Math.max(8, width - 2));
    const room = this.#room;
    const last = Math.max(0, rows.length - room);
    this.#top = Math.min(Math.max(0, this.#top), last);
    const shown = rows.slice(this.#top, this.#top + room);
    const place = rows.length > room ? `lines ${this.#top + 1}–${this.#top + shown.length} of ${rows.length}` : "";
    const count = pages.length > 1 ? `call ${this.#page + 1} of ${pages.length}` : "";
    const keys = ["Esc closes", place && "↑↓ scroll", count && "← → other calls"].filter((part) => part !== "");
    const foot = [count, place, ...keys].filter((part) => part !== "").join(" · ");
    return [
      theme.bold(cut(pages[this.#page]?.title ?? "", width)),
      "",
      ...(shown.length === 0 ? [theme.dim("  (nothing)")] : shown.map((row) => cut(`  ${row}`, width))),
      ...Array.from({ length: room - Math.max(1, shown.length) }, () => ""),
      theme.dim(cut(foot, width)),
    ];
  }

  invalidate(): void {
    this.#rows = null;
  }

  handleInput(data: string): void {
    const { onClose, onChange } = this.#options;
    if (["escape", "ctrl+o", "ctrl+t", "enter", "q"].some((key) => matchesKey(data, key as "escape"))) return onClose(); // ids of keys
    const step = this.#step(data);
    if (step === null) return;
    if (step.page !== 0) this.#turn(step.page);
    else this.#top += step.rows;
    onChange();
  }

  #step(data: string): { readonly rows: number; readonly page: number } | null {
    const rows = (count: number) => ({ rows: count, page: 0 });
    if (matchesKey(data, "up") || matchesKey(data, "k")) return rows(-1);
    if (matchesKey(data, "down") || matchesKey(data, "j")) return rows(1);
    if (matchesKey(data, "pageUp")) return rows(-this.#room);
    if (matchesKey(data, "pageDown") || matchesKey(data, "space")) return rows(this.#room);
    if (matchesKey(data, "home")) return rows(Number.NEGATIVE_INFINITY);
    if (matchesKey(data, "end")) return rows(Number.POSITIVE_INFINITY);
    if (matchesKey(data, "left")) return { rows: 0, page: -1 };
    if (matchesKey(data, "right")) return { rows: 0, page: 1 };
    return null;
  }

  #turn(by: number): void {
    const next = Math.min(Math.max(0, this.#page + by), this.#options.pages.length - 1);
    if (next === this.#page) return;
    this.#page = next;
    this.#begin();
  }

  #begin(): void {
    this.#top = this.#options.pages[this.#page]?.fromEnd ? Number.POSITIVE_INFINITY : 0;
  }

  get #room(): number {
    return Math.max(LEAST_ROWS, this.#options.height() - OTHER_ROWS);
  }

  #allRows(width: number): readonly string[] {
    const known = this.#rows;
    if (known?.width === width && known.page === this.#page) return known.rows;
    const rows = this.#options.pages[this.#page]?.rows(width, this.#options.theme) ?? [];
    this.#rows = { width, page: this.#page, rows };
    return rows;
  }
}
