// A list to choose from: arrows, numbers and Enter; with check marks when several may be chosen, with a filter when it is long.
import { type Component, matchesKey } from "@earendil-works/pi-tui";
import { wrapLines } from "./blocks.ts";
import { printable } from "./printable.ts";
import type { Theme } from "./theme.ts";
import { cut } from "./width.ts";

export interface Choice<T> {
  readonly label: string;
  readonly hint?: string;
  readonly value: T;
}

export interface ChoiceListOptions<T> {
  readonly choices: readonly Choice<T>[];
  readonly theme: Theme;
  readonly selected?: number;
  /** Space checks rows; Enter takes all checked ones, or the row itself when none is. */
  readonly multiple?: boolean;
  /** Typing narrows the list. Otherwise a number takes its row at once. */
  readonly filter?: boolean;
  readonly rows?: number;
  onTake(values: readonly T[]): void;
  onCancel(): void;
}

const ROWS = 10;

export class ChoiceList<T> implements Component {
  readonly #options: ChoiceListOptions<T>;
  readonly #checked = new Set<number>();
  #filter = "";
  /** Indexes into all choices. */
  #shown: readonly number[];
  #at: number;

  constructor(options: ChoiceListOptions<T>) {
    this.#options = options;
    this.#shown = options.choices.map((_, index) => index);
    this.#at = options.selected ?? 0;
  }

  handleInput(data: string): void {
    if (matchesKey(data, "escape")) return this.#options.onCancel();
    if (matchesKey(data, "up")) return this.#move(-1);
    if (matchesKey(data, "down") || matchesKey(data, "tab")) return this.#move(1);
    if (matchesKey(data, "enter")) return this.#take();
    if (this.#options.multiple && matchesKey(data, "space")) return this.#check(this.#shown[this.#at]);
    if (this.#filter === "" && /^[1-9]$/.test(data)) return this.#number(Number(data) - 1);
    if (!this.#options.filter) return;
    if (matchesKey(data, "backspace")) this.#narrow([...this.#filter].slice(0, -1).join(""));
    else if (data.length > 0 && data === printable(data) && !data.includes("\n")) this.#narrow(this.#filter + data);
  }

  render(width: number): string[] {
    const { theme, choices, filter, multiple } = this.#options;
    const most = this.#options.rows ?? ROWS;
    const from = Math.max(0, Math.min(this.#at - Math.floor(most / 2), this.#shown.length - most));
    const rows = this.#shown.slice(from, from + most).flatMap((index, place) => {
      const choice = choices[index];
      if (!choice) return [];
      const current = from + place === this.#at;
      const box = multiple ? (this.#checked.has(index) ? "[x] " : "[ ] ") : "";
      const head = `${current ? "❯ " : "  "}${index + 1}. ${box}`;
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
      ...(this.#filter === "" ? [] : [cut(theme.dim(`  filter: ${this.#filter}`), width)]),
      ...rows,
      ...(this.#shown.length === 0 ? [theme.dim(cut("  nothing matches", width))] : []),
      ...(hidden > 0 ? [theme.dim(cut(`  ${hidden} more; type to search`, width))] : []),
    ];
  }

  invalidate(): void {
    // nothing is kept between frames
  }

  #move(step: number): void {
    const count = this.#shown.length;
    if (count > 0) this.#at = (this.#at + step + count) % count;
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
    const { choices } = this.#options;
    const current = this.#shown[this.#at];
    const taken = this.#checked.size > 0 ? [...this.#checked].sort((a, b) => a - b) : [current];
    const values = taken.flatMap((index) => {
      const choice = index === undefined ? undefined : choices[index];
      return choice ? [choice.value] : [];
    });
    if (values.length > 0) this.#options.onTake(values);
  }

  #narrow(filter: string): void {
    this.#filter = filter;
    const wanted = filter.toLowerCase();
    const matches = ({ label, hint }: Choice<T>) => `${label} ${hint ?? ""}`.toLowerCase().includes(wanted);
    this.#shown = this.#options.choices.flatMap((choice, index) => (matches(choice) ? [index] : []));
    this.#at = 0;
  }
}
