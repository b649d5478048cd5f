// The editor with what surrounds it: lasting history, big pastes, newline keys.
import { Editor, matchesKey, type TUI } from "@earendil-works/pi-tui";
import { appendHistory, loadHistory } from "./input-history.ts";
import { cleanPaste, type PasteLimits, Pastes, shouldCollapse } from "./pastes.ts";
import { selectTheme } from "./questions.ts";
import type { Theme } from "./theme.ts";

const PASTE_OPEN = "\u001b[200~";
const PASTE_CLOSE = "\u001b[201~";

export interface InputLineOptions {
  readonly historyFile: string;
  readonly pastesDir: string;
  pasteLimits(): PasteLimits;
  now(): Date;
  onSubmit(text: string): void;
  onWarning(text: string): void;
}

export class InputLine {
  readonly editor: Editor;
  readonly #options: InputLineOptions;
  readonly #pastes: Pastes;
  #lastEntry: string | null = null;

  constructor(tui: TUI, theme: Theme, options: InputLineOptions) {
    this.#options = options;
    this.#pastes = new Pastes(options.pastesDir);
    this.editor = new Editor(tui, { borderColor: theme.dim, selectList: selectTheme(theme) });
    this.editor.onSubmit = (text) => void this.#submit(text);
  }

  async loadHistory(): Promise<void> {
    try {
      for (const entry of await loadHistory(this.#options.historyFile)) {
        this.editor.addToHistory(entry);
        this.#lastEntry = entry;
      }
    } catch (error) {
      this.#options.onWarning(`The input history could not be read: ${error instanceof Error ? error.message : error}`);
    }
  }

  clear(): void {
    this.editor.setText("");
  }

  /** Keys that must not reach the editor as they are. */
  intercept(data: string): { consume?: boolean; data?: string } | undefined {
    if (matchesKey(data, "alt+enter")) {
      this.editor.insertTextAtCursor("\n");
      return { consume: true };
    }
    if (!data.startsWith(PASTE_OPEN) || !data.endsWith(PASTE_CLOSE)) return undefined;
    const text = cleanPaste(data.slice(PASTE_OPEN.length, -PASTE_CLOSE.length));
    if (!shouldCollapse(text, this.#options.pasteLimits(), this.editor.getText())) {
      return { data: `${PASTE_OPEN}${text}${PASTE_CLOSE}` };
    }
    void this.#collapse(text);
    return { consume: true };
  }

  async #collapse(text: string): Promise<void> {
    try {
      this.editor.insertTextAtCursor(await this.#pastes.store(text, this.#options.now()));
    } catch (error) {
      this.#options.onWarning(
        `The paste could not be kept as a file (${error instanceof Error ? error.message : error}).`,
      );
      this.editor.insertTextAtCursor(text);
    }
  }

  async #submit(typed: string): Promise<void> {
    if (typed.trim() === "") return;
    const { text, missing } = await this.#pastes.expand(typed);
    for (const placeholder of missing)
      this.#options.onWarning(`The file behind ${placeholder} is gone; its text is missing.`);
    this.#options.onSubmit(text);
    await this.#remember(typed);
  }

  async #remember(entry: string): Promise<void> {
    if (entry === this.#lastEntry) return;
    this.#lastEntry = entry;
    this.editor.addToHistory(entry);
    try {
      await appendHistory(this.#options.historyFile, entry, this.#options.now());
    } catch (error) {
      this.#options.onWarning(
        `The input history could not be written: ${error instanceof Error ? error.message : error}`,
      );
    }
  }
}
