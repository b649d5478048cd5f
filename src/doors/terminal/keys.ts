// What a key does to the screen, once its meaning is known.

import { isKeyRelease, matchesKey } from "@earendil-works/pi-tui";
import type { InputLine } from "./input-line.ts";
import type { Questions } from "./questions.ts";
import type { Turns } from "./turns.ts";

interface KeyTargets {
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

// What a key means to the screen, before the input line or a question sees it.

export interface KeyState {
  readonly questionOpen: boolean;
  readonly menuOpen: boolean;
  readonly draft: string;
  readonly queued: number;
  readonly busy: boolean;
}

type KeyAction =
  | "ctrl_c"
  | "leave"
  | "redraw"
  | "suspend"
  | "stash"
  | "edit_externally"
  | "search_history"
  | "edit_previous"
  | "take_back_queued";

const DOUBLE_MS = 600;
const PASTE = "\u001b[200~";

export class ScreenKeys {
  #escapeAt = Number.NEGATIVE_INFINITY;
  /** Ctrl+X was pressed and waits for its second key. */
  #chord = false;

  /** Null: the key belongs to whoever has the focus. "nothing": it is used up. */
  read(data: string, state: KeyState, now: number): KeyAction | "nothing" | null {
    if (data.startsWith(PASTE) || isKeyRelease(data)) return null;
    if (matchesKey(data, "ctrl+c")) return "ctrl_c";
    if (matchesKey(data, "ctrl+l")) return "redraw";
    if (matchesKey(data, "ctrl+z")) return "suspend";
    if (state.questionOpen) return null;
    if (this.#chord) {
      this.#chord = false;
      return matchesKey(data, "ctrl+e") ? "edit_externally" : null;
    }
    if (matchesKey(data, "ctrl+x")) {
      this.#chord = true;
      return "nothing";
    }
    if (matchesKey(data, "ctrl+g") || matchesKey(data, "alt+g")) return "edit_externally";
    if (matchesKey(data, "ctrl+r")) return "search_history";
    if (matchesKey(data, "ctrl+s")) return "stash";
    if (matchesKey(data, "ctrl+d") && state.draft === "") return "leave";
    if (matchesKey(data, "up") && state.draft === "" && state.queued > 0) return "take_back_queued";
    return this.#escape(data, state, now);
  }

  #escape(data: string, state: KeyState, now: number): KeyAction | null {
    // Some terminals deliver two quick presses as one sequence.
    const twice = data === "\u001b\u001b";
    if ((!matchesKey(data, "escape") && !twice) || state.menuOpen || state.draft !== "" || state.busy) return null;
    const again = twice || now - this.#escapeAt <= DOUBLE_MS;
    this.#escapeAt = again ? Number.NEGATIVE_INFINITY : now;
    return again ? "edit_previous" : null;
  }
}

// What Ctrl+C means right now. The most specific meaning wins; leaving always takes a second press.

export interface CtrlCState {
  readonly questionOpen: boolean;
  readonly busy: boolean;
  readonly menuOpen: boolean;
  readonly draft: string;
}

type CtrlCAction = "cancel_question" | "interrupt" | "force_exit" | "close_menu" | "clear_draft" | "arm_exit" | "exit";

const WINDOW_MS = 2000;

export class CtrlC {
  #armed: { readonly action: CtrlCAction; readonly at: number } | null = null;

  press(state: CtrlCState, now: number): CtrlCAction {
    const previous = this.#armed && now - this.#armed.at <= WINDOW_MS ? this.#armed.action : null;
    const action = meaning(state, previous);
    this.#armed = { action, at: now };
    return action;
  }
}

function meaning(state: CtrlCState, previous: CtrlCAction | null): CtrlCAction {
  if (state.questionOpen) return "cancel_question";
  if (state.busy) return previous === "interrupt" ? "force_exit" : "interrupt";
  if (state.menuOpen) return "close_menu";
  if (state.draft !== "") return "clear_draft";
  return previous === "arm_exit" ? "exit" : "arm_exit";
}

// Ctrl+R: what was typed before, narrowed by typing.

const MOST = 200;

async function searchHistory(input: InputLine, questions: Questions): Promise<void> {
  const entries = input.history.matching(input.draft).slice(0, MOST);
  if (entries.length === 0) return;
  const choices = entries.map((entry) => ({ label: entry.replace(/\s+/g, " "), value: entry }));
  const chosen = await questions.pick("History", choices, { filter: true });
  if (chosen !== null) input.draft = chosen;
}
