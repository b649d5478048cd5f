// A list to choose from: arrows, numbers and Enter; with check marks when several may be chosen, with a filter when it is long.
// pi-tui's own SelectList filters by the beginning of a value only and knows no check marks, no numbers and no rows of several lines.
import { type Component, matchesKey, ProcessTerminal, TuiAltScreen } from "@earendil-works/pi-tui";
import { cut, makeTheme, onlyStyled, printable, type Theme, wrapLines } from "./terminal-text.ts";

export interface Choice<T> {
  readonly label: string;
  readonly hint?: string;
  /** What the filter looks at in place of label and hint. */
  readonly search?: string;
  readonly value: T;
}

export interface ChoiceListOptions<T> {
  readonly choices: readonly Choice<T>[];
  readonly theme: Theme;
  readonly selected?: number;
  /** Space checks rows; Enter takes all checked ones, or the row itself when none is. */
  readonly multiple?: boolean;
  /** These rows are checked at first, and Enter takes what is checked in the end, be it nothing. */
  readonly checked?: ReadonlySet<T>;
  /** Typing narrows the list. Otherwise a number takes its row at once. */
  readonly filter?: boolean;
  /** False: the rows have no numbers, and digits narrow the list like letters. */
  readonly numbers?: boolean;
  rows?(): number;
  onTake(values: readonly T[]): void;
  onCancel(): void;
}

const ROWS = 10;

export class ChoiceList<T> implements Component {
  readonly #options: ChoiceListOptions<T>;
  readonly #checked: Set<number>;
  #filter = "";
  /** Indexes into all choices. */
  #shown: readonly number[];
  #at: number;

  constructor(options: ChoiceListOptions<T>) {
    this.#options = options;
    this.#shown = options.choices.map((_, index) => index);
    this.#checked = new Set(this.#shown.filter((index) => options.checked?.has(options.choices[index]?.value as T))); // the index is one of theirs
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
    if (this.#options.multiple && matchesKey(data, "space")) return this.#check(this.#shown[this.#at]);
    if (this.#numbered && !this.narrowed && /^[1-9]$/.test(data)) return this.#number(Number(data) - 1);
    if (!this.#options.filter) return;
    if (matchesKey(data, "backspace")) this.#narrow([...this.#filter].slice(0, -1).join(""));
    else if (data.length > 0 && data === printable(data) && !data.includes("\n")) this.#narrow(this.#filter + data);
  }

  render(width: number): string[] {
    const { theme, choices, filter, multiple } = this.#options;
    const most = this.#options.rows?.() ?? ROWS;
    const from = Math.max(0, Math.min(this.#at - Math.floor(most / 2), this.#shown.length - most));
    const rows = this.#shown.slice(from, from + most).flatMap((index, place) => {
      const choice = choices[index];
      if (!choice) return [];
      const current = from + place === this.#at;
      const box = multiple ? (this.#checked.has(index) ? "[x] " : "[ ] ") : "";
      const head = `${current ? "❯ " : "  "}${this.#numbered ? `${index + 1}. ` : ""}${box}`;
      const hint = choice.hint ? `  ${theme.dim(printable(choice.hint))}` : "";
      const label = printable(choice.label);
      const paint = current ? theme.accent : (line: string) => line;
      if (filter) return [cut(paint(head + label.replaceAll("\n", " ")) + hint, width)];
      const lines = wrapLines(label, Math.max(10, width - head.length - 1));
      return lines.map((line, i) =>
        cut(
          paint(i === 0 ? head + line : " ".repeat(head.length) + line) + (i === lines.length - 1 ? hint : ""),
          width,
        ),
      );
    });
    const hidden = this.#shown.length - Math.min(most, this.#shown.length);
    return [
      ...(this.narrowed ? [cut(theme.dim(`  filter: ${this.#filter}`), width)] : []),
      ...rows,
      ...(this.#shown.length === 0 ? [theme.dim(cut("  nothing matches", width))] : []),
      ...(hidden > 0 ? [theme.dim(cut(`  ${hidden} more; type to search`, width))] : []),
    ];
  }

  invalidate(): void {
    // nothing is kept between frames
  }

  get #numbered(): boolean {
    return this.#options.numbers ?? true;
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
    if (index === undefined) return;
    if (!this.#checked.delete(index)) this.#checked.add(index);
  }

  #take(): void {
    const { choices, checked } = this.#options;
    const current = this.#shown[this.#at];
    const taken = this.#checked.size > 0 || checked ? [...this.#checked].sort((a, b) => a - b) : [current];
    const values = taken.flatMap((index) => {
      const choice = index === undefined ? undefined : choices[index];
      return choice ? [choice.value] : [];
    });
    if (values.length > 0 || checked) this.#options.onTake(values);
  }

  #narrow(filter: string): void {
    this.#filter = filter;
    const wanted = filter.toLowerCase();
    const matches = ({ label, hint = "", search = `${label} ${hint}` }: Choice<T>) =>
      search.toLowerCase().includes(wanted);
    this.#shown = this.#options.choices.flatMap((choice, index) => (matches(choice) ? [index] : []));
    this.#at = 0;
  }
}

export interface ScreenQuestion<T>
  extends Pick<ChoiceListOptions<T>, "choices" | "selected" | "multiple" | "checked" | "numbers"> {
  readonly title: string;
  readonly hint: string;
}

/** The list with its title and hint; `done` gets the chosen values, or null. */
export function questionPage<T>(
  question: ScreenQuestion<T>,
  screen: { readonly theme: Theme; rows(): number; done(taken: readonly T[] | null): void },
): Component & { handleInput(data: string): void } {
  const { theme, done } = screen;
  const list = new ChoiceList<T>({
    ...question,
    theme,
    filter: true,
    rows: () => Math.max(1, screen.rows() - 6),
    onTake: done,
    onCancel: () => done(null),
  });
  return {
    render: (width) =>
      onlyStyled(
        [theme.bold(cut(question.title, width)), "", ...list.render(width), "", theme.dim(cut(question.hint, width))],
        width,
      ),
    invalidate: () => list.invalidate(),
    handleInput: (data) => {
      const leaves = matchesKey(data, "ctrl+c") || matchesKey(data, "ctrl+d") || (data === "q" && !list.narrowed);
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
  const tui = new TuiAltScreen(new ProcessTerminal(), false, undefined, { mouse: false });
  const { promise, resolve } = Promise.withResolvers<readonly T[] | null>();
  const page = questionPage(question, {
    theme: makeTheme(options.color),
    rows: () => tui.terminal.rows,
    done: resolve,
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
