// The dialogs a page puts over itself. It stands still until one is answered, so the model is told and has to answer.
import type { Dialog } from "playwright-core";
import type { Config } from "../../home/config/schema.ts";

export interface OpenDialog {
  readonly type: string;
  readonly message: string;
  readonly default_value?: string;
}

export class Dialogs {
  readonly #policy: string;
  readonly #timeoutMs: number;
  readonly #waiting: { dialog: Dialog; timer: NodeJS.Timeout }[] = [];
  #listeners = new Set<() => void>();

  constructor({ dialog_policy, dialog_timeout_s }: Config["browser"]) {
    this.#policy = dialog_policy;
    this.#timeoutMs = dialog_timeout_s * 1000;
  }

  /** The one that has to be answered now. */
  get open(): OpenDialog | null {
    const dialog = this.#waiting[0]?.dialog;
    if (!dialog) return null;
    const preset = dialog.defaultValue();
    return {
      type: dialog.type(),
      message: dialog.message().slice(0, 1000),
      ...(preset ? { default_value: preset } : {}),
    };
  }

  add(dialog: Dialog): void {
    if (this.#policy === "auto_accept") return void dialog.accept().catch(() => undefined); // the page is gone
    if (this.#policy === "auto_dismiss") return void dialog.dismiss().catch(() => undefined); // the page is gone
    const entry = { dialog, timer: setTimeout(() => void this.#end(entry, () => dialog.dismiss()), this.#timeoutMs) };
    entry.timer.unref();
    this.#waiting.push(entry);
    for (const listener of this.#listeners) listener();
  }

  /** Resolves to the dialog that was answered; null when there was none. */
  async answer(answer: { readonly accept: boolean; readonly text?: string | undefined }): Promise<OpenDialog | null> {
    const { open } = this;
    const entry = this.#waiting[0];
    if (!entry || !open) return null;
    await this.#end(entry, () => (answer.accept ? entry.dialog.accept(answer.text) : entry.dialog.dismiss()));
    return open;
  }

  /** Dialogs that died with their page. */
  forget(): void {
    for (const { timer } of this.#waiting.splice(0)) clearTimeout(timer);
  }

  /** Calls back when one opens, until the returned function is called. */
  onOpen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async #end(entry: { dialog: Dialog; timer: NodeJS.Timeout }, act: () => Promise<void>): Promise<void> {
    clearTimeout(entry.timer);
    const at = this.#waiting.indexOf(entry);
    if (at >= 0) this.#waiting.splice(at, 1);
    await act().catch(() => undefined); // the page is gone, and the dialog with it
  }
}
