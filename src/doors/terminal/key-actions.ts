// What a key does to the screen, once `keys.ts` and `ctrl-c.ts` have said what it means.
import { CtrlC } from "./ctrl-c.ts";
import { searchHistory } from "./history-search.ts";
import type { InputLine } from "./input-line.ts";
import { type KeyAction, ScreenKeys } from "./keys.ts";
import type { Questions } from "./questions.ts";
import type { Turns } from "./turns.ts";

export interface KeyTargets {
  readonly input: InputLine;
  readonly questions: Questions;
  readonly turns: Turns;
  now(): number;
  /** Something runs that can be stopped. */
  busy(): boolean;
  interrupt(): void;
  leave(code: number): void;
  redraw(): void;
  suspend(): void;
  /** Opens the draft in the user's editor. */
  compose(): void;
  submit(text: string): void;
  say(text: string): void;
}

type Used = { consume: true } | undefined;

export class KeyActions {
  readonly #screen: KeyTargets;
  readonly #keys = new ScreenKeys();
  readonly #ctrlC = new CtrlC();

  constructor(screen: KeyTargets) {
    this.#screen = screen;
  }

  /** Undefined: the key belongs to whoever has the focus. */
  press(data: string): Used {
    const { input, questions, turns } = this.#screen;
    const action = this.#keys.read(data, { ...this.#state(), queued: turns.waiting.length }, this.#screen.now());
    if (action === null) return questions.open ? undefined : input.intercept(data);
    if (action !== "nothing") this.#act(action);
    return { consume: true };
  }

  #state() {
    const { input, questions, busy } = this.#screen;
    return {
      questionOpen: questions.open,
      menuOpen: input.editor.isShowingAutocomplete(),
      draft: input.draft,
      busy: busy(),
    };
  }

  #act(action: KeyAction): void {
    const { input, questions, turns } = this.#screen;
    switch (action) {
      case "ctrl_c":
        return this.#onCtrlC();
      case "leave":
        return this.#screen.leave(0);
      case "redraw":
        return this.#screen.redraw();
      case "suspend":
        return this.#screen.suspend();
      case "stash":
        return input.stash();
      case "edit_externally":
        return this.#screen.compose();
      case "search_history":
        return void searchHistory(input, questions);
      case "edit_previous":
        return this.#screen.submit("/undo");
      case "take_back_queued":
        input.draft = turns.takeBack() ?? "";
    }
  }

  #onCtrlC(): void {
    const { input, questions } = this.#screen;
    switch (this.#ctrlC.press(this.#state(), this.#screen.now())) {
      case "cancel_question":
        return questions.cancel();
      case "interrupt":
        return this.#screen.interrupt();
      case "close_menu":
        return input.editor.handleInput("\u001b");
      case "clear_draft":
        input.draft = "";
        return;
      case "arm_exit":
        return this.#screen.say("press Ctrl+C again to leave");
      case "force_exit":
        return this.#screen.leave(130);
      case "exit":
        return this.#screen.leave(0);
    }
  }
}
