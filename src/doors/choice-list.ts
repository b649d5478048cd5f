// A list to choose from: arrows, numbers and Enter; with check marks when several may be chosen, with a filter when it is long.
// pi-tui's own SelectList filters by the beginning of a value only and knows no check marks, no numbers and no rows of several lines.
import { type Component, matchesKey, ProcessTerminal, TuiAltScreen } from "@earendil-works/pi-tui";
import type { PickItem, PickOptions } from "../commands/context.ts";
import { said, t } from "../home/language/words.ts";
import {
  cellWidth,
  cut,
  makeTheme,
  onlyStyled,
  padCells,
  printable,
  singleKeys,
  type Theme,
  wrapLines,
} from "./terminal-text.ts";

export type Choice<T> = PickItem<T>;

export interface ChoiceListOptions<T> extends PickOptions<T> {
  readonly choices: readonly Choice<T>[];
  readonly theme: Theme;
  /** Space checks rows; Enter takes all checked ones, or the row itself when none is. */
  readonly multiple?: boolean;
  /** These rows are checked at first, and Enter takes what is checked in the end, be it nothing. */
  readonly checked?: ReadonlySet<T>;
  /** Typing narrows the list. Otherwise a number takes its row at once. */
  readonly filter?: boolean;
  /** False: the rows have no numbers, and digits narrow the list like letters; `shown`: they have, and digits narrow all the same. */
  readonly numbers?: boolean | "shown";
  rows?(): number;
  onTake(values: readonly T[]): void;
  onCancel(): void;
  /** A preview or further rows have come: draw again. */
  onChange?(): void;
}

const ROWS = 10;
/** Lines of a preview, with the rule above it. */
export const PREVIEW_ROWS = 7;
/** Hints give way before a label gets narrower than this. */
const LEAST_LABEL = 30;
/** Labels longer than this keep their hints right behind them. */
const MOST_LABEL = 44;
/** Looking elsewhere begins when typing pauses. */
const PAUSE_MS = 150;

interface Row<T> {
  readonly choice: Choice<T>;
  /** Its place among all choices; -1 for one that was found elsewhere. */
  readonly index: number;
}

export class ChoiceList<T> implements Component {
  readonly #options: ChoiceListOptions<T>;
  readonly #checked: Set<number>;
  readonly #all: readonly Row<T>[];
  readonly #previews = new Map<T, string>();
  #filter = "";
  #found: readonly Row<T>[] = [];
  #shown: readonly Row<T>[];
  #at: number;
  #pause: NodeJS.Timeout | undefined;

  constructor(given: ChoiceListOptions<T>) {
    // Labels are names most often; hints are words of ours.
    const options = { ...given, choices: given.choices.map((choice) => ({ ...choice, hint: saidHint(choice.hint) })) };
    this.#options = options;
    this.#all = options.choices.map((choice, index) => ({ choice, index }));
    this.#shown = this.#all;
    this.#checked = new Set(
      this.#all.filter(({ choice }) => options.checked?.has(choice.value)).map(({ index }) => index),
    );
    this.#at = options.selected ?? 0;
  }

  get narrowed(): boolean {
    return this.#filter !== "";
  }

  handleInput(data: string): void {
    if (matchesKey(data, "escape")) return this.narrowed ? this.#narrow("") : this.#options.onCancel();
    if (matchesKey(data, "up")) return this.#move(-1);
    if (matchesKey(data, "down") || matchesKey(data, "tab")) return this.#move(1);
    if (matchesKey(data, "pageUp")) return this.#jump(-ROWS);
    if (matchesKey(data, "pageDown")) return this.#jump(ROWS);
    if (matchesKey(data, "enter")) return this.#take();
    if (this.#options.multiple && matchesKey(data, "space")) return this.#check(this.#shown[this.#at]?.index);
    const numbered = (this.#options.numbers ?? true) === true;
    if (numbered && !this.narrowed && /^[1-9]$/.test(data)) return this.#number(Number(data) - 1);
    if (!this.#options.filter) return;
    if (matchesKey(data, "backspace")) this.#narrow([...this.#filter].slice(0, -1).join(""));
    else if (data.length > 0 && data === printable(data) && !data.includes("\n")) this.#narrow(this.#filter + data);
  }

  render(width: number): string[] {
    const { theme, filter } = this.#options;
    const most = this.#options.rows?.() ?? ROWS;
    const from = Math.max(0, Math.min(this.#at - Math.floor(most / 2), this.#shown.length - most));
    const page = this.#shown.slice(from, from + most);
    const columns = filter ? this.#columns(width) : null;
    const rows = page.flatMap((row, place) => {
      const current = from + place === this.#at;
      return columns ? [this.#oneLine(row, current, columns, width)] : this.#manyLines(row, current, width);
    });
    const hidden = this.#shown.length - page.length;
    const typed = this.narrowed ? [cut(theme.dim(`  ${t("filter: {text}", { text: this.#filter })}`), width)] : [];
    const body = [
      ...rows,
      ...(this.#shown.length === 0 ? [theme.dim(cut(`  ${t("nothing matches")}`, width))] : []),
      ...(hidden > 0 ? [theme.dim(cut(`  ${t("{count} more; type to search", { count: hidden })}`, width))] : []),
    ];
    if (!this.#options.preview) return [...typed, ...body];
    // A list above a preview keeps its height while it is narrowed: nothing jumps under the eyes.
    const height = Math.min(most, this.#all.length) + (this.#all.length > most ? 1 : 0);
    const blank = new Array<string>(Math.max(0, height - body.length)).fill("");
    return [
      ...(typed.length > 0 ? typed : [theme.dim(cut(`  ${t("type to search")}`, width))]),
      ...body,
      ...blank,
      ...this.#previewLines(width),
    ];
  }

  invalidate(): void {
    // nothing is kept between frames
  }

  #head({ choice, index }: Row<T>, current: boolean): string {
    const { numbers = true, multiple, choices, filter } = this.#options;
    const digits = filter ? String(choices.length).length : 0;
    const shownNumber = index < 0 ? " ".repeat(digits + 2) : `${String(index + 1).padStart(digits)}. `;
    const number = numbers === false ? "" : shownNumber;
    const box = multiple ? (this.#checked.has(index) ? "[x] " : "[ ] ") : "";
    const mark = choices.some((one) => one.current) ? (choice.current ? "● " : "  ") : "";
    return `${current ? "❯ " : "  "}${number}${box}${mark}`;
  }

  #oneLine(row: Row<T>, current: boolean, columns: readonly number[], width: number): string {
    const { theme } = this.#options;
    const label = printable(row.choice.label).replaceAll("\n", " ");
    const head = this.#head(row, current) + label;
    const paint = current ? theme.accent : (line: string) => line;
    const { hint } = row.choice;
    if (typeof hint !== "object") {
      const room = cellWidth(head) - cellWidth(label) + this.#labelRoom(width);
      return cut(hint ? `${padCells(paint(head), room)}  ${theme.dim(printable(hint))}` : paint(head), width);
    }
    const room = width - columns.reduce((sum, cells) => sum + cells + 2, 0);
    const cells = columns.map((column, at) => padCells(printable(hint[at] ?? ""), column));
    const beside = cells.length > 0 ? `  ${theme.dim(cells.join("  "))}` : "";
    return cut(`${padCells(paint(cut(head, room, "…")), room)}${beside}`.trimEnd(), width);
  }

  /** Hints of one piece stand below each other, unless a label is so long that they would be at the far edge. */
  #labelRoom(width: number): number {
    const hinted = this.#options.choices.filter(({ hint }) => hint);
    const longest = Math.max(0, ...hinted.map(({ label }) => cellWidth(label)));
    return longest <= Math.min(MOST_LABEL, width / 2) ? longest : 0;
  }

  /** Widths of the hints that fit beside the labels. All of a hint is shown, or nothing. */
  #columns(width: number): number[] {
    const { choices } = this.#options;
    const hints = choices.flatMap(({ hint }) => (typeof hint === "object" ? [hint] : []));
    const count = Math.max(0, ...hints.map((hint) => hint.length));
    const columns = Array.from({ length: count }, (_, at) =>
      Math.max(0, ...hints.map((hint) => cellWidth(printable(hint[at] ?? "")))),
    );
    const longest = Math.max(0, ...choices.map(({ label }) => cellWidth(label)));
    const needed = Math.min(longest, LEAST_LABEL) + 6;
    const taken = () => columns.reduce((sum, cells) => sum + cells + 2, 0);
    while (columns.length > 0 && width - taken() < needed) columns.pop();
    // Hints stand beside the labels, not at the far edge.
    const spare = width - taken() - (longest + 8);
    if (columns.length > 0 && spare > 0) columns[columns.length - 1] = (columns.at(-1) ?? 0) + spare;
    return columns;
  }

  #manyLines(row: Row<T>, current: boolean, width: number): string[] {
    const { theme } = this.#options;
    const head = this.#head(row, current);
    const { hint: given } = row.choice;
    const text = typeof given === "object" ? given.join("  ") : given;
    const hint = text ? `  ${theme.dim(printable(text))}` : "";
    const paint = current ? theme.accent : (line: string) => line;
    const lines = wrapLines(printable(row.choice.label), Math.max(10, width - head.length - 1));
    return lines.map((line, i) =>
      cut(paint(i === 0 ? head + line : " ".repeat(head.length) + line) + (i === lines.length - 1 ? hint : ""), width),
    );
  }

  #previewLines(width: number): string[] {
    const { preview, theme, onChange } = this.#options;
    const row = this.#shown[this.#at];
    const known = row && this.#previews.get(row.choice.value);
    if (row && known === undefined) {
      const { value } = row.choice;
      this.#previews.set(value, "");
      const keep = (text: string) => {
        this.#previews.set(value, text);
        onChange?.();
      };
      preview?.(value).then(keep, () => keep("(cannot be read)"));
    }
    const cells = Math.max(10, width - 4);
    const lines = wrapLines(printable(known ?? ""), cells).slice(0, PREVIEW_ROWS - 1);
    const padded = [...lines, ...new Array<string>(PREVIEW_ROWS - 1 - lines.length).fill("")];
    return [theme.dim("─".repeat(width)), ...padded.map((line) => cut(theme.dim(`  ${line}`), width))];
  }

  #move(step: number): void {
    const count = this.#shown.length;
    if (count > 0) this.#at = (this.#at + step + count) % count;
  }

  #jump(by: number): void {
    this.#at = Math.max(0, Math.min(this.#shown.length - 1, this.#at + by));
  }

  #number(index: number): void {
    if (index >= this.#options.choices.length) return;
    if (this.#options.multiple) return this.#check(index);
    this.#at = index;
    if (!this.#options.filter) this.#take();
  }

  #check(index: number | undefined): void {
    if (index === undefined || index < 0) return;
    if (!this.#checked.delete(index)) this.#checked.add(index);
  }

  #take(): void {
    const { choices, checked, onTake } = this.#options;
    const current = this.#shown[this.#at]?.choice;
    const several = this.#checked.size > 0 || checked;
    const taken = [...this.#checked].sort((a, b) => a - b).map((index) => choices[index]);
    const values = (several ? taken : [current]).flatMap((choice) => (choice ? [choice.value] : []));
    if (values.length > 0 || checked) onTake(values);
  }

  #narrow(filter: string): void {
    this.#filter = filter;
    this.#found = [];
    this.#arrange();
    this.#at = 0;
    clearTimeout(this.#pause);
    const { find } = this.#options;
    if (!find || [...filter.trim()].length < 2) return;
    this.#pause = setTimeout(() => {
      // A search that fails finds nothing; the rows are there all the same.
      find(filter.trim()).then(
        (found) => this.#add(filter, found),
        () => undefined,
      );
    }, PAUSE_MS);
    this.#pause.unref();
  }

  #add(filter: string, found: readonly Choice<T>[]): void {
    if (filter !== this.#filter) return;
    this.#found = found.map((choice) => ({ choice, index: -1 }));
    this.#arrange();
    this.#options.onChange?.();
  }

  #arrange(): void {
    const words = this.#filter.toLowerCase().split(/\s+/);
    const matches = ({ choice }: Row<T>) => {
      const text = searchText(choice).toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const own = this.#all.filter(matches);
    const there = new Set(own.map(({ choice }) => choice.value));
    this.#shown = [...own, ...this.#found.filter(({ choice }) => !there.has(choice.value))];
  }
}

const saidHint = (hint: Choice<unknown>["hint"]) =>
  typeof hint === "object" ? hint.map(said) : hint === undefined ? undefined : said(hint);

const searchText = <T>({ label, hint = "", search }: Choice<T>) =>
  search ?? `${label} ${typeof hint === "string" ? hint : hint.join(" ")}`;

export interface ScreenQuestion<T>
  extends Pick<ChoiceListOptions<T>, "choices" | "selected" | "multiple" | "checked" | "numbers" | "preview" | "find"> {
  readonly title: string;
  readonly hint: string;
  /** False: `q` narrows the list like other letters, also as the first one. */
  readonly quitKey?: boolean;
  /** Ctrl+C, which leaves more than this list; the list ends as by Esc. */
  onInterrupt?(): void;
}

/** The list with its title and hint; `done` gets the chosen values, or null. */
export function questionPage<T>(
  question: ScreenQuestion<T>,
  screen: {
    readonly theme: Theme;
    rows(): number;
    done(taken: readonly T[] | null): void;
    /** Something came later: draw again. */
    changed?(): void;
  },
): Component & { handleInput(data: string): void } {
  const { theme, done } = screen;
  let titleRows = 1;
  const list = new ChoiceList<T>({
    ...question,
    theme,
    filter: true,
    rows: () => Math.max(1, screen.rows() - 5 - titleRows - (question.preview ? PREVIEW_ROWS : 0)),
    onTake: done,
    onCancel: () => done(null),
    onChange: () => screen.changed?.(),
  });
  return {
    render: (width) => {
      const title = wrapLines(said(question.title), width).map((line) => theme.bold(cut(line, width)));
      titleRows = title.length;
      return onlyStyled([...title, "", ...list.render(width), "", theme.dim(cut(said(question.hint), width))], width);
    },
    invalidate: () => list.invalidate(),
    handleInput: (data) => {
      const interrupts = matchesKey(data, "ctrl+c");
      if (interrupts) question.onInterrupt?.();
      const leaves =
        interrupts || matchesKey(data, "ctrl+d") || (data === "q" && question.quitKey !== false && !list.narrowed);
      if (leaves) done(null);
      else list.handleInput(data);
    },
  };
}

/** Takes over the terminal until something is chosen (null = cancelled), then restores it. */
export async function chooseOnScreen<T>(
  question: ScreenQuestion<T>,
  options: { readonly color: boolean },
): Promise<readonly T[] | null> {
  const terminal = new ProcessTerminal();
  const start = terminal.start.bind(terminal);
  terminal.start = (onInput, onResize) => start(singleKeys(onInput), onResize);
  const tui = new TuiAltScreen(terminal, false, undefined, { mouse: false });
  const { promise, resolve } = Promise.withResolvers<readonly T[] | null>();
  const page = questionPage(question, {
    theme: makeTheme(options.color),
    rows: () => tui.terminal.rows,
    done: resolve,
    changed: () => tui.requestRender(),
  });
  // As an overlay it has all keys; what lies on the screen itself scrolls with some of them.
  tui.showOverlay(page, { anchor: "top-left", width: "100%", maxHeight: "100%" });
  tui.start();
  try {
    return await promise;
  } finally {
    tui.stop();
  }
}
