// What a key means to the screen, before the input line or a question sees it.
import { isKeyRelease, matchesKey } from "@earendil-works/pi-tui";

export interface KeyState {
  readonly questionOpen: boolean;
  readonly menuOpen: boolean;
  readonly draft: string;
  readonly queued: number;
  readonly busy: boolean;
}

export type KeyAction =
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
