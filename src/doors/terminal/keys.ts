// The keys of the screen: one table of what they do. The screen acts by it; /help, /keys and the guide show it.

import { isKeyRelease, type KeyId, matchesKey } from "@earendil-works/pi-tui";
import { said, t } from "../../home/language/words.ts";
import { cellWidth, padCells } from "../terminal-text.ts";
import type { Attachments } from "./attachments.ts";
import type { InputLine } from "./input-line.ts";
import type { Questions } from "./questions.ts";
import type { ShellLines } from "./shell-line.ts";
import type { Turns } from "./turns.ts";

interface KeyTargets {
  readonly input: InputLine;
  readonly attachments: Attachments;
  readonly questions: Questions;
  readonly turns: Turns;
  readonly shell: ShellLines;
  now(): number;
  /** Something runs that can be stopped. */
  busy(): boolean;
  interrupt(): void;
  leave(code: number): void;
  redraw(): void;
  suspend(): void;
  /** The next work mode: ask, accept edits, plan. */
  cycleMode(): void;
  /** Opens the draft in the user's editor. */
  compose(): void;
  /** The output of the last calls. */
  openCalls(): void;
  toggleThinking(): void;
  /** Takes over what is on the clipboard. */
  paste(): void;
  submit(text: string): void;
  say(text: string): void;
}

export interface KeyState {
  readonly questionOpen: boolean;
  readonly menuOpen: boolean;
  readonly draft: string;
  readonly queued: number;
  /** Outputs of shell lines that go along with the next message. */
  readonly attached: number;
  /** Attached to the message that is being written. */
  readonly pictures: number;
  readonly busy: boolean;
}

const TASKS = ["Write a message", "Steer the work", "Look around", "Leave"] as const;

/** One row: the first one whose keys are pressed while `when` holds is done. */
interface KeyRow {
  /** Alternatives; two keys with a blank between them are pressed one after the other. None: somebody else reads them. */
  readonly keys: readonly (KeyId | `${string} ${string}`)[];
  readonly action: string;
  readonly when?: (state: KeyState) => boolean;
  /** It works while a question is open, too. */
  readonly anywhere?: true;
  run?(screen: KeyTargets): void;
  /** How the keys are written for people, for which task they are, and what they do. Rows without a help repeat another one. */
  readonly shown?: string;
  readonly task?: (typeof TASKS)[number];
  readonly help?: string;
}

const emptyLine = ({ draft }: KeyState) => draft === "";
const write = { task: "Write a message" } as const;
const steer = { task: "Steer the work" } as const;
const look = { task: "Look around" } as const;
const leave = { task: "Leave" } as const;
/** Read by the input line itself. */
const ofInput = { keys: [], action: "none", ...write } as const;

/** Ctrl+X and a letter: what a command would open, whatever is in the input. */
function overlay(letter: "m" | "s" | "t" | "f" | "?", action: string, command: string, help: string): KeyRow[] {
  const run = (screen: KeyTargets) => screen.submit(command);
  return [{ keys: [`ctrl+x ${letter}`], action, run, ...look, shown: `Ctrl+X ${letter}`, help }];
}

const KEYS: readonly KeyRow[] = [
  { ...ofInput, shown: "Enter", help: "send; in a menu, choose the row" },
  { ...ofInput, shown: "Alt+Enter, Ctrl+J", help: "new line; so is Enter behind a \\" },
  {
    ...ofInput,
    shown: "Tab",
    help: "complete a command, a path, a project file after @, or accept the grey suggestion",
  },
  {
    ...ofInput,
    shown: "!command",
    help: "run a shell command and send its output with your next message (!!command: show only)",
  },
  {
    keys: ["backspace"],
    action: "detach",
    when: (state) => emptyLine(state) && state.attached > 0,
    run: ({ shell }) => shell.detach(),
  },
  {
    keys: ["up"],
    action: "take_back_queued",
    when: (state) => emptyLine(state) && state.queued > 0,
    run: ({ turns, attachments }) => {
      const message = turns.takeBack();
      if (message !== null) attachments.handBack(message);
    },
    ...write,
    shown: "Up, Down",
    help: "input history; Up on an empty line takes back a queued message",
  },
  {
    keys: ["ctrl+r"],
    action: "search_history",
    run: ({ input, questions }) => void searchHistory(input, questions),
    ...write,
    shown: "Ctrl+R",
    help: "search earlier inputs",
  },
  {
    keys: ["ctrl+g", "alt+g", "ctrl+x ctrl+e"],
    action: "edit_externally",
    run: (screen) => screen.compose(),
    ...write,
    shown: "Ctrl+G, or Ctrl+X Ctrl+E",
    help: "write the message in $EDITOR",
  },
  {
    keys: ["ctrl+s"],
    action: "stash",
    run: ({ input, attachments, say }) => {
      if (input.draft !== "") say(t("Draft stashed. Ctrl+S on an empty line restores it."));
      attachments.stash({ restore: input.draft === "" });
      input.stash();
    },
    ...write,
    shown: "Ctrl+S",
    help: "stash the draft; on an empty line, restore it",
  },
  {
    keys: ["ctrl+v", "alt+v"],
    action: "paste",
    run: (screen) => screen.paste(),
    ...write,
    shown: "Ctrl+V, Alt+V",
    help: "attach the picture on the clipboard, or paste its text",
  },
  {
    keys: ["backspace"],
    action: "remove_picture",
    when: (state) => emptyLine(state) && state.pictures > 0,
    run: ({ attachments }) => attachments.removeLast(),
    ...write,
    shown: "Backspace",
    help: "on an empty line, remove the last attached picture",
  },
  {
    keys: ["escape"],
    action: "stop",
    when: ({ busy, menuOpen }) => busy && !menuOpen,
    run: (screen) => screen.interrupt(),
    ...steer,
    shown: "Esc",
    help: "close a menu or question, else stop the running turn",
  },
  {
    keys: ["escape escape"],
    action: "edit_previous",
    when: (state) => emptyLine(state) && !state.menuOpen && !state.busy,
    run: (screen) => screen.submit("/undo"),
    ...steer,
    shown: "Esc Esc",
    help: "on an empty line, edit and resend your last message",
  },
  {
    keys: ["shift+tab"],
    action: "cycle_mode",
    run: (screen) => screen.cycleMode(),
    ...steer,
    shown: "Shift+Tab",
    help: "switch between ask, accept edits and plan",
  },
  {
    keys: ["ctrl+x q"],
    action: "edit_queue",
    run: (screen) => screen.submit("/queue"),
    ...steer,
    shown: "Ctrl+X q",
    help: "edit, delete, move or send the queued messages",
  },
  {
    keys: ["ctrl+x b"],
    action: "show_tasks",
    run: (screen) => screen.submit("/tasks"),
    ...steer,
    shown: "Ctrl+X b",
    help: "show and stop sub-agents, background prompts and processes",
  },
  {
    keys: ["ctrl+c"],
    action: "ctrl_c",
    anywhere: true,
    ...steer,
    shown: "Ctrl+C",
    help: "stop the running turn, clear the input; twice on an empty line: quit",
  },
  {
    keys: ["ctrl+o"],
    action: "open_calls",
    run: (screen) => screen.openCalls(),
    ...look,
    shown: "Ctrl+O",
    help: "show or hide the output of recent tool calls",
  },
  {
    keys: ["ctrl+t"],
    action: "toggle_thinking",
    run: (screen) => screen.toggleThinking(),
    ...look,
    shown: "Ctrl+T",
    help: "show or hide thinking (when idle: of the last turn)",
  },
  {
    keys: ["ctrl+l"],
    action: "redraw",
    anywhere: true,
    run: (screen) => screen.redraw(),
    ...look,
    shown: "Ctrl+L",
    help: "redraw the screen",
  },
  ...overlay("m", "pick_model", "/model", "choose the model"),
  ...overlay("s", "pick_session", "/sessions", "resume an earlier conversation"),
  ...overlay("t", "pick_tools", "/tools switch", "enable and disable toolsets"),
  ...overlay("f", "fork", "/fork", "fork from one of your messages"),
  ...overlay("?", "show_keys", "/keys", "this list"),
  {
    keys: ["ctrl+z"],
    action: "suspend",
    anywhere: true,
    run: (screen) => screen.suspend(),
    ...leave,
    shown: "Ctrl+Z",
    help: "suspend to the shell; fg returns",
  },
  {
    keys: ["ctrl+d"],
    action: "stay",
    when: (state) => emptyLine(state) && state.pictures > 0,
    run: (screen) => screen.say("A picture is attached: Enter sends it, Backspace removes it."),
  },
  {
    keys: ["ctrl+d"],
    action: "leave",
    when: emptyLine,
    run: (screen) => screen.leave(0),
    ...leave,
    shown: "Ctrl+D",
    help: "quit, on an empty line",
  },
];

interface ShownKey {
  readonly task: string;
  readonly shown: string;
  readonly help: string;
}

/** What people are told, in the order of the tasks. */
export function shownKeys(): readonly ShownKey[] {
  const told = KEYS.flatMap(({ task, shown, help }) =>
    task && shown && help ? [{ task, shown: said(shown), help }] : [],
  );
  return TASKS.flatMap((task) => told.filter((row) => row.task === task));
}

/** The table as text: a heading per task, keys left, what they do right. */
export function keyHelp(): string {
  const rows = shownKeys();
  const column = Math.max(...rows.map(({ shown }) => cellWidth(shown)).filter((width) => width <= 24));
  const line = ({ shown, help }: ShownKey) =>
    cellWidth(shown) > column
      ? `  ${shown}\n  ${" ".repeat(column)}  ${said(help)}`
      : `  ${padCells(shown, column)}  ${said(help)}`;
  const section = (task: string) => [said(task), ...rows.filter((row) => row.task === task).map(line)].join("\n");
  return [...new Set(rows.map(({ task }) => task))].map(section).join("\n\n");
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
    const { input, questions, turns, shell } = this.#screen;
    const state = { ...this.#state(), queued: turns.waiting.length, attached: shell.attached.length };
    const row = this.#keys.read(data, state, this.#screen.now());
    if (row === null) return questions.open ? undefined : input.intercept(data);
    if (row !== "nothing") this.#act(row);
    return { consume: true };
  }

  #state() {
    const { input, attachments, questions, busy } = this.#screen;
    return {
      questionOpen: questions.open,
      menuOpen: input.editor.isShowingAutocomplete(),
      draft: input.draft,
      pictures: attachments.count,
      busy: busy(),
    };
  }

  #act(row: KeyRow): void {
    if (row.action === "ctrl_c") this.#onCtrlC();
    else row.run?.(this.#screen);
  }

  #onCtrlC(): void {
    const { input, attachments, questions } = this.#screen;
    switch (this.#ctrlC.press(this.#state(), this.#screen.now())) {
      case "cancel_question":
        return questions.cancel();
      case "interrupt":
        return this.#screen.interrupt();
      case "close_menu":
        return input.editor.handleInput("\u001b");
      case "clear_draft":
        input.draft = "";
        return attachments.clear();
      case "arm_exit":
        return this.#screen.say("press Ctrl+C again to quit");
      case "force_exit":
        return this.#screen.leave(130);
      case "exit":
        return this.#screen.leave(0);
    }
  }
}

const DOUBLE_MS = 600;
const PASTE = "\u001b[200~";

interface FirstKey {
  readonly key: string;
  readonly at: number;
}

/** What a key means to the screen, before the input line or a question sees it. */
export class ScreenKeys {
  /** The first key of two was pressed and waits for the second. */
  #first: FirstKey | null = null;

  /** Null: the key belongs to whoever has the focus. "nothing": it is used up. */
  read(data: string, state: KeyState, now: number): KeyRow | "nothing" | null {
    if (data.startsWith(PASTE) || isKeyRelease(data)) return null;
    const first = this.#first;
    this.#first = null;
    const fits = ({ when, anywhere }: KeyRow) => (anywhere || !state.questionOpen) && (when?.(state) ?? true);
    const rows = KEYS.filter(fits);
    const second = (name: string) => isSecond(data, name, first, now);
    const row =
      rows.find(({ keys }) => keys.some(second)) ?? rows.find(({ keys }) => keys.some((name) => pressed(data, name)));
    return row ?? this.#begin(data, rows, now);
  }

  #begin(data: string, rows: readonly KeyRow[], now: number): "nothing" | null {
    const pairs = rows.flatMap(({ keys }) => keys).filter((name) => name.includes(" "));
    const key = pairs.map((name) => name.slice(0, name.indexOf(" "))).find((name) => pressed(data, name));
    if (key === undefined) return null;
    this.#first = { key, at: now };
    return key === "escape" ? null : "nothing";
  }
}

/** This one key; never one of two. */
const pressed = (data: string, key: string) => !key.includes(" ") && matchesKey(data, key as KeyId); // a name of the table

function isSecond(data: string, name: string, first: FirstKey | null, now: number): boolean {
  const [one, two] = name.split(" ");
  if (one === undefined || two === undefined) return false;
  // Escape alone means something to others: it counts as a first key for a moment only.
  return first?.key === one && pressed(data, two) && (one !== "escape" || now - first.at <= DOUBLE_MS);
}

// What Ctrl+C means right now. The most specific meaning wins; leaving always takes a second press.

export interface CtrlCState {
  readonly questionOpen: boolean;
  readonly busy: boolean;
  readonly menuOpen: boolean;
  readonly draft: string;
  readonly pictures: number;
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
  if (state.draft !== "" || state.pictures > 0) return "clear_draft";
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
