// The editor with what surrounds it: persistent history, large pastes, a stashed draft.

import { appendFile, chmod, readFile } from "node:fs/promises";
import { type AutocompleteProvider, Editor, matchesKey, type TUI } from "@earendil-works/pi-tui";
import { messageOf } from "../../kit/errors.ts";
import { cellWidth, cut, type Theme } from "../terminal-text.ts";
import { selectTheme } from "./blocks.ts";
import { cleanPaste, type PasteLimits, Pastes, shouldCollapse } from "./pastes.ts";

const TYPED_KEPT = 20;
const PASTE_OPEN = "\u001b[200~";
const PASTE_CLOSE = "\u001b[201~";

interface InputLineOptions {
  readonly theme: Theme;
  readonly historyFile: string;
  /** What is kept, in files and for Up: keys that were typed or pasted are not. */
  readonly withoutKeys: (text: string) => string;
  readonly pastesDir: string;
  display(path: string): string;
  prompt(): string;
  pasteLimits(): PasteLimits;
  now(): Date;
  /** Something besides the text goes out with it: then there may be no text. */
  hasMore(): boolean;
  onSubmit(text: string): void;
  /** A paste on an empty line. Empty itself when there was no text to paste. */
  onPasted(text: string): void;
  onWarning(text: string): void;
}

export class InputLine {
  readonly editor: PromptEditor;
  readonly #options: InputLineOptions;
  readonly #pastes: Pastes;
  #stash = "";
  /** Submitted texts that held pastes, and how they were typed. */
  readonly #typedAs = new Map<string, string>();

  constructor(tui: TUI, options: InputLineOptions) {
    this.#options = options;
    this.#pastes = new Pastes({
      folder: options.pastesDir,
      display: options.display,
      withoutKeys: options.withoutKeys,
      onTrouble: (error) =>
        options.onWarning(`The paste could not be saved as a file (${reason(error)}); its text is sent anyway.`),
    });
    this.editor = new PromptEditor(tui, new InputHistory(), { ...options, covered: () => tui.hasOverlay() });
    this.editor.onSubmit = (text) => void this.#submit(text);
  }

  get draft(): string {
    return this.editor.getText();
  }

  set draft(text: string) {
    this.editor.setText(text);
  }

  /** A message that was submitted is a draft again, with placeholders for its pastes. */
  putBack(text: string): void {
    this.draft = this.#typedAs.get(text) ?? text;
  }

  get history(): InputHistory {
    return this.editor.typedBefore;
  }

  async loadHistory(): Promise<void> {
    try {
      this.editor.typedBefore = new InputHistory(await loadHistory(this.#options.historyFile));
    } catch (error) {
      this.#options.onWarning(`The input history could not be read: ${reason(error)}`);
    }
  }

  /** Stashes the draft; with nothing typed, restores it. */
  stash(): void {
    const draft = this.draft;
    this.draft = draft === "" ? this.#stash : "";
    this.#stash = draft;
  }

  /** The draft with its pastes in full, for an editor that shows everything. */
  async expanded(): Promise<string> {
    return (await this.#pastes.expand(this.draft)).text;
  }

  /** Keys that must not reach the editor as they are. */
  intercept(data: string): { consume: true } | undefined {
    if (matchesKey(data, "alt+enter") || matchesKey(data, "ctrl+enter")) {
      this.editor.insertTextAtCursor("\n");
      return { consume: true };
    }
    if (!data.startsWith(PASTE_OPEN) || !data.endsWith(PASTE_CLOSE)) return undefined;
    this.paste(data.slice(PASTE_OPEN.length, -PASTE_CLOSE.length));
    return { consume: true };
  }

  paste(pasted: string): void {
    const text = cleanPaste(pasted);
    const wasEmpty = this.draft === "";
    const collapsed = shouldCollapse(text, this.#options.pasteLimits(), this.draft);
    const shown = collapsed ? this.#pastes.store(text, this.#options.now()) : withoutControls(text);
    this.editor.insertTextAtCursor(shown);
    if (wasEmpty) this.#options.onPasted(shown);
  }

  async #submit(typed: string): Promise<void> {
    if (typed.trim() === "") {
      if (this.#options.hasMore()) this.#options.onSubmit("");
      return;
    }
    const { text, missing } = await this.#pastes.expand(typed);
    for (const placeholder of missing)
      this.#options.onWarning(`The file for ${placeholder} no longer exists; its text is missing.`);
    if (text !== typed) this.#keepTyped(text, typed);
    this.#options.onSubmit(text);
    await this.#remember(typed);
  }

  #keepTyped(text: string, typed: string): void {
    this.#typedAs.delete(text);
    this.#typedAs.set(text, typed);
    const [oldest] = this.#typedAs.keys();
    if (this.#typedAs.size > TYPED_KEPT && oldest !== undefined) this.#typedAs.delete(oldest);
  }

  async #remember(entry: string): Promise<void> {
    const kept = this.#options.withoutKeys(entry);
    if (!this.history.add(kept)) return;
    try {
      await appendHistory(this.#options.historyFile, kept, this.#options.now());
    } catch (error) {
      this.#options.onWarning(`The input history could not be written: ${reason(error)}`);
    }
  }
}

const withoutControls = (text: string) => text.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
const reason = (error: unknown) => messageOf(error);

// The input: a prompt symbol in front, history on Up and Down, a shadow of what could follow, a menu that never submits by accident.

// pi-tui's editor uses 30 % of the rows; with this limit it stays at 8.
const MAX_ROWS = 27;
const CURSOR_AT_END = "\u001b[7m \u001b[0m";

interface PromptEditorOptions {
  /** What stands in front of the first line. */
  prompt(): string;
  readonly theme: Theme;
  /** A list lies over the end of the screen; what of the input stands out above it is blank. */
  covered?(): boolean;
}

export class PromptEditor extends Editor {
  typedBefore: InputHistory;
  readonly #options: PromptEditorOptions;
  #indent = 0;
  #bottom = "";
  #textWidth = 80;
  #menuRows = 0;
  /** The text in front of the cursor that the rows of the menu are for. */
  #menuFor = "";

  constructor(tui: TUI, history: InputHistory, options: PromptEditorOptions) {
    const { theme } = options;
    super(
      withFewRows(tui),
      { borderColor: theme.inputRule, selectList: selectTheme(theme) },
      { autocompleteMaxVisible: 8 },
    );
    this.typedBefore = history;
    this.#options = options;
  }

  override render(width: number): string[] {
    const symbol = `${this.#options.prompt()} `;
    this.#indent = Math.min(cellWidth(symbol), Math.max(0, width - 4));
    this.#textWidth = width - this.#indent - 1;
    const lines = super.render(Math.max(1, width - this.#indent));
    const bottom = lines.indexOf(this.#bottom, 1);
    this.#menuRows = lines.length - bottom - 1;
    if (this.#options.covered?.()) return lines.map(() => "");
    const blank = " ".repeat(this.#indent);
    return lines.map((line, index) => {
      if (index === 0 || index === bottom) return line;
      if (index > bottom) return blank + line;
      const prefix = index === 1 ? this.#options.theme.user(cut(symbol, this.#indent)) : blank;
      return prefix + this.#withShadow(line);
    });
  }

  /** Rows of the menu, as it was last drawn. */
  get menuRows(): number {
    return this.#menuRows;
  }

  override setAutocompleteProvider(provider: AutocompleteProvider): void {
    super.setAutocompleteProvider({
      ...(provider.triggerCharacters && { triggerCharacters: provider.triggerCharacters }),
      getSuggestions: async (lines, line, col, options) => {
        const suggestions = await provider.getSuggestions(lines, line, col, options);
        this.#menuFor = upTo(lines, line, col);
        return suggestions;
      },
      applyCompletion: (...args) => provider.applyCompletion(...args),
      shouldTriggerFileCompletion: (...args) => provider.shouldTriggerFileCompletion?.(...args) ?? true,
    });
  }

  override handleInput(data: string): void {
    // Rows are looked up beside the typing: those of an earlier text would be put into the wrong place.
    const { line, col } = this.getCursor();
    const taken = matchesKey(data, "enter") || matchesKey(data, "tab");
    if (taken && this.isShowingAutocomplete() && this.#menuFor !== upTo(this.getLines(), line, col))
      super.handleInput("\u001b");
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
    return line === (edge === "first" ? 0 : lines.length - 1) && cellWidth(side) < this.#textWidth;
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
    const room = cellWidth(line.slice(at));
    const [first = ""] = [...shadow];
    if (cellWidth(first) > room) return line;
    const shown = cut(shadow.slice(first.length), room - cellWidth(first));
    return `${line.slice(0, at)}\u001b[7m${first}\u001b[0m${this.#options.theme.dim(shown)}`;
  }
}

const upTo = (lines: readonly string[], line: number, col: number) =>
  [...lines.slice(0, line), (lines[line] ?? "").slice(0, col)].join("\n");

function withFewRows(tui: TUI): TUI {
  return {
    terminal: {
      get rows() {
        return Math.min(tui.terminal.rows, MAX_ROWS);
      },
    },
    requestRender: (force?: boolean) => tui.requestRender(force),
  } as TUI; // all that an editor asks of it
}

// The input history of a home, in the original's file format:
// per entry an empty line, `# YYYY-MM-DD HH:MM:SS.ffffff`, then each input line with `+` in front.

const MAX_ENTRIES = 1000;

/** Earlier inputs, and the position while the user steps through them. */
export class InputHistory {
  readonly #entries: string[];
  /** Steps back from the draft; 0 = at the draft. */
  #back = 0;
  #draft = "";

  constructor(entries: readonly string[] = []) {
    this.#entries = entries.filter((entry, index) => entry !== entries[index - 1]).slice(-MAX_ENTRIES);
  }

  /** False for a repetition of the newest entry. */
  add(entry: string): boolean {
    this.#back = 0;
    if (entry === this.#entries.at(-1)) return false;
    this.#entries.push(entry);
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift();
    return true;
  }

  /** The entry before the shown text; null when there is none. The draft is kept for the way back. */
  older(shown: string): string | null {
    if (this.#back === 0 || shown !== this.#shown()) this.#back = 0;
    if (this.#back >= this.#entries.length) return null;
    if (this.#back === 0) this.#draft = shown;
    this.#back++;
    return this.#shown();
  }

  /** The entry after the shown text, then the draft; null at the draft. */
  newer(shown: string): string | null {
    if (this.#back === 0 || shown !== this.#shown()) return null;
    this.#back--;
    return this.#shown();
  }

  /** Newest first, each text once. */
  matching(query: string): readonly string[] {
    const wanted = query.toLowerCase();
    return [...new Set(this.#entries.filter((entry) => entry.toLowerCase().includes(wanted)).reverse())];
  }

  /** The rest of the newest entry that begins like this text. */
  continuation(text: string): string {
    if (text === "") return "";
    return this.#entries.findLast((entry) => entry !== text && entry.startsWith(text))?.slice(text.length) ?? "";
  }

  #shown(): string {
    return this.#back === 0 ? this.#draft : (this.#entries.at(-this.#back) ?? "");
  }
}

export function parseHistory(text: string): string[] {
  const entries: string[] = [];
  let lines: string[] = [];
  const close = () => {
    if (lines.length > 0) entries.push(lines.join("\n"));
    lines = [];
  };
  for (const line of text.split("\n")) {
    if (line.startsWith("+")) lines.push(line.slice(1));
    else close();
  }
  close();
  return entries;
}

export function renderEntry(text: string, now: Date): string {
  const pad = (value: number, width = 2) => String(value).padStart(width, "0");
  const date = `${now.getFullYear()}-${pad(now.getMonth() + 1)}-${pad(now.getDate())}`;
  const time = `${pad(now.getHours())}:${pad(now.getMinutes())}:${pad(now.getSeconds())}.${pad(now.getMilliseconds(), 3)}000`;
  const lines = text.split("\n").map((line) => `+${line}`);
  return `\n# ${date} ${time}\n${lines.join("\n")}\n`;
}

/** Oldest first. A missing file is an empty history. */
export async function loadHistory(path: string): Promise<string[]> {
  try {
    return parseHistory(await readFile(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

export async function appendHistory(path: string, text: string, now: Date): Promise<void> {
  await appendFile(path, renderEntry(text, now), { mode: 0o600 });
  await chmod(path, 0o600);
}
