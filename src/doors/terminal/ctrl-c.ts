// What Ctrl+C means right now. The most specific meaning wins; leaving always takes a second press.

export interface CtrlCState {
  readonly questionOpen: boolean;
  readonly busy: boolean;
  readonly menuOpen: boolean;
  readonly draft: string;
}

export type CtrlCAction =
  | "cancel_question"
  | "interrupt"
  | "force_exit"
  | "close_menu"
  | "clear_draft"
  | "arm_exit"
  | "exit";

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
