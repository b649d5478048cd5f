// The input: a prompt symbol in front, history on Up and Down, a shadow of what could follow, a menu that never submits by accident.
import { Editor, matchesKey, type TUI, visibleWidth } from "@earendil-works/pi-tui";
import type { InputHistory } from "./input-history.ts";
import { selectTheme, type Theme } from "./theme.ts";
import { cut } from "./width.ts";

// The editor takes 30 % of the rows it is told of, so it is told of few enough to stay at 8.
const MOST_ROWS = 27;
const CURSOR_AT_END = "\u001b[7m \u001b[0m";

export interface PromptEditorOptions {
  /** What stands in front of the first line. */
  prompt(): string;
  readonly theme: Theme;
}

export class PromptEditor extends Editor {
  typedBefore: InputHistory;
  readonly #options: PromptEditorOptions;
  #indent = 0;
  #bottom = "";
  #textWidth = 80;

  constructor(tui: TUI, history: InputHistory, options: PromptEditorOptions) {
    const { theme } = options;
    super(withFewRows(tui), { borderColor: theme.dim, selectList: selectTheme(theme) }, { autocompleteMaxVisible: 8 });
    this.typedBefore = history;
    this.#options = options;
  }

  override render(width: number): string[] {
    const symbol = `${this.#options.prompt()} `;
    this.#indent = Math.min(visibleWidth(symbol), Math.max(0, width - 4));
    this.#textWidth = width - this.#indent - 1;
    const lines = super.render(Math.max(1, width - this.#indent));
    const bottom = lines.indexOf(this.#bottom, 1);
    const blank = " ".repeat(this.#indent);
    return lines.map((line, index) => {
      if (index === 0 || index === bottom) return line;
      if (index > bottom) return blank + line;
      const prefix = index === 1 ? cut(symbol, this.#indent) : blank;
      return prefix + this.#withShadow(line);
    });
  }

  override handleInput(data: string): void {
    if (this.isShowingAutocomplete()) {
      if (!matchesKey(data, "enter")) return super.handleInput(data);
      // Enter takes the row; only a row that changes nothing any more is a finished command.
      const before = this.getText().trimEnd();
      super.handleInput("\t");
      if (this.getText().trimEnd() === before) super.handleInput("\r");
      return;
    }
    if (matchesKey(data, "tab") && this.#shadow() !== "") return this.insertTextAtCursor(this.#shadow());
    if (matchesKey(data, "up") && this.#onEdge("first")) return this.#walk(this.typedBefore.older(this.getText()));
    if (matchesKey(data, "down") && this.#onEdge("last")) return this.#walk(this.typedBefore.newer(this.getText()));
    super.handleInput(data);
  }

  protected override renderTopBorder(width: number, hidden: number): string {
    return super.renderTopBorder(width + this.#indent, hidden);
  }

  protected override renderBottomBorder(width: number, hidden: number): string {
    this.#bottom = super.renderBottomBorder(width + this.#indent, hidden);
    return this.#bottom;
  }

  #walk(entry: string | null): void {
    if (entry !== null) this.setText(entry);
  }

  /** The cursor's line is the first or last one there is, wrapped lines counted. */
  #onEdge(edge: "first" | "last"): boolean {
    const { line, col } = this.getCursor();
    const lines = this.getLines();
    const text = lines[line] ?? "";
    const side = edge === "first" ? text.slice(0, col) : text.slice(col);
    return line === (edge === "first" ? 0 : lines.length - 1) && visibleWidth(side) < this.#textWidth;
  }

  #shadow(): string {
    const { line, col } = this.getCursor();
    const lines = this.getLines();
    if (lines.length > 1 || line !== 0 || col !== (lines[0] ?? "").length || this.isShowingAutocomplete()) return "";
    const rest = this.typedBefore.continuation(lines[0] ?? "");
    return rest.includes("\n") ? "" : rest;
  }

  #withShadow(line: string): string {
    const at = line.indexOf(CURSOR_AT_END);
    const shadow = this.focused && at !== -1 ? this.#shadow() : "";
    if (shadow === "") return line;
    const room = visibleWidth(line.slice(at));
    const [first = ""] = [...shadow];
    if (visibleWidth(first) > room) return line;
    const shown = cut(shadow.slice(first.length), room - visibleWidth(first));
    return `${line.slice(0, at)}\u001b[7m${first}\u001b[0m${this.#options.theme.dim(shown)}`;
  }
}

function withFewRows(tui: TUI): TUI {
  return {
    terminal: {
      get rows() {
        return Math.min(tui.terminal.rows, MOST_ROWS);
      },
    },
    requestRender: (force?: boolean) => tui.requestRender(force),
  } as TUI; // all that an editor asks of it
}
