// The editor with what surrounds it: lasting history, big pastes, a draft put aside.
import { matchesKey, type TUI } from "@earendil-works/pi-tui";
import { appendHistory, InputHistory, loadHistory } from "./input-history.ts";
import { cleanPaste, type PasteLimits, Pastes, shouldCollapse } from "./pastes.ts";
import { PromptEditor } from "./prompt-editor.ts";
import type { Theme } from "./theme.ts";

const PASTE_OPEN = "\u001b[200~";
const PASTE_CLOSE = "\u001b[201~";

export interface InputLineOptions {
  readonly theme: Theme;
  readonly historyFile: string;
  readonly pastesDir: string;
  display(path: string): string;
  prompt(): string;
  pasteLimits(): PasteLimits;
  now(): Date;
  onSubmit(text: string): void;
  onWarning(text: string): void;
}

export class InputLine {
  readonly editor: PromptEditor;
  readonly #options: InputLineOptions;
  readonly #pastes: Pastes;
  #stash = "";

  constructor(tui: TUI, options: InputLineOptions) {
    this.#options = options;
    this.#pastes = new Pastes({
      folder: options.pastesDir,
      display: options.display,
      onTrouble: (error) =>
        options.onWarning(`The paste is not kept as a file (${reason(error)}); its text is sent all the same.`),
    });
    this.editor = new PromptEditor(tui, new InputHistory(), options);
    this.editor.onSubmit = (text) => void this.#submit(text);
  }

  get draft(): string {
    return this.editor.getText();
  }

  set draft(text: string) {
    this.editor.setText(text);
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

  /** Puts the draft aside; with nothing typed, brings it back. */
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
    const text = cleanPaste(data.slice(PASTE_OPEN.length, -PASTE_CLOSE.length));
    const collapsed = shouldCollapse(text, this.#options.pasteLimits(), this.draft);
    this.editor.insertTextAtCursor(collapsed ? this.#pastes.store(text, this.#options.now()) : withoutControls(text));
    return { consume: true };
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
    if (!this.history.add(entry)) return;
    try {
      await appendHistory(this.#options.historyFile, entry, this.#options.now());
    } catch (error) {
      this.#options.onWarning(`The input history could not be written: ${reason(error)}`);
    }
  }
}

const withoutControls = (text: string) => text.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
const reason = (error: unknown) => (error instanceof Error ? error.message : String(error));
