// The full-screen session picker: typing filters, arrows move, Enter chooses.

import { relativeTime } from "../../kit/formats.ts";
import type { SessionListItem } from "../../sessions/store.ts";
import { cut, padCells } from "../terminal-text.ts";
import { oneLine } from "./session-command.ts";

export interface PickerState {
  readonly items: readonly SessionListItem[];
  readonly filter: string;
  readonly selected: number;
}

export type PickerKey =
  | { readonly type: "up" | "down" | "page_up" | "page_down" | "enter" | "escape" | "backspace" | "interrupt" }
  | { readonly type: "text"; readonly text: string };

type PickerStep =
  | { readonly type: "go_on"; readonly state: PickerState }
  | { readonly type: "chosen"; readonly item: SessionListItem }
  | { readonly type: "quit" };

function visibleItems({ items, filter }: PickerState): readonly SessionListItem[] {
  const wanted = filter.toLowerCase();
  return items.filter((item) =>
    [item.title ?? "", item.preview, item.source, item.id].some((text) => text.toLowerCase().includes(wanted)),
  );
}

export function stepPicker(state: PickerState, key: PickerKey): PickerStep {
  const shown = visibleItems(state);
  const move = (by: number): PickerStep => ({
    type: "go_on",
    state: { ...state, selected: shown.length === 0 ? 0 : (state.selected + by + shown.length) % shown.length },
  });
  const jump = (by: number): PickerStep => ({
    type: "go_on",
    state: { ...state, selected: Math.max(0, Math.min(shown.length - 1, state.selected + by)) },
  });
  const refilter = (filter: string): PickerStep => ({ type: "go_on", state: { ...state, filter, selected: 0 } });
  switch (key.type) {
    case "up":
      return move(-1);
    case "down":
      return move(1);
    case "page_up":
      return jump(-10);
    case "page_down":
      return jump(10);
    case "enter": {
      const item = shown[state.selected];
      return item ? { type: "chosen", item } : { type: "go_on", state };
    }
    case "escape":
      return state.filter === "" ? { type: "quit" } : refilter("");
    case "backspace":
      return refilter([...state.filter].slice(0, -1).join(""));
    case "interrupt":
      return { type: "quit" };
    case "text":
      return key.text === "q" && state.filter === "" ? { type: "quit" } : refilter(state.filter + key.text);
  }
}

const SEQUENCES: Readonly<Record<string, Exclude<PickerKey["type"], "text">>> = {
  "\u001b[A": "up",
  "\u001bOA": "up",
  "\u001b[B": "down",
  "\u001bOB": "down",
  "\u001b[5~": "page_up",
  "\u001b[6~": "page_down",
  "\r": "enter",
  "\n": "enter",
  "\u007f": "backspace",
  "\b": "backspace",
  "\u0003": "interrupt",
  "\u0004": "interrupt",
  "\u001b": "escape",
};

/** The keys in what a terminal in raw mode sent at once. A lone ESC is the key, ESC with something behind it a sequence. */
export function readKeys(chunk: string): readonly PickerKey[] {
  return [
    ...chunk.matchAll(/\u001b(?:\[[0-9;]*[@-~]|O[A-Z])|\u001b|[\u0000-\u001f\u007f]|[^\u0000-\u001f\u007f]+/gu),
  ].flatMap(([part]): PickerKey[] => {
    const type = SEQUENCES[part];
    if (type) return [{ type }];
    return /^[\u0000-\u001f\u007f]/.test(part) ? [] : [{ type: "text", text: part }];
  });
}

/** The whole screen as lines, none wider than `columns`, at most `rows` of them. */
export function renderPicker(
  state: PickerState,
  size: { columns: number; rows: number; now: number },
): readonly string[] {
  const shown = visibleItems(state);
  const room = Math.max(1, size.rows - 4);
  const first = Math.max(0, Math.min(state.selected - Math.floor(room / 2), shown.length - room));
  const lines = shown.slice(first, first + room).map((item, index) => {
    const chosen = first + index === state.selected;
    const name = item.title ?? (item.preview || "—");
    const cells = [
      padCells(cut(oneLine(name), 44, "…"), 46),
      padCells(relativeTime(item.lastActive, size.now), 13),
      padCells(cut(item.source, 10, ""), 12),
      item.id,
    ];
    const line = cut(`${chosen ? "❯ " : "  "}${cells.join("")}`, size.columns, "");
    return chosen ? `\u001b[7m${padCells(line, size.columns)}\u001b[0m` : line;
  });
  return [
    cut(`Sessions (${shown.length} of ${state.items.length})   filter: ${oneLine(state.filter)}▏`, size.columns, ""),
    "",
    ...(lines.length > 0 ? lines : ["  nothing matches"]),
    "",
    cut("type to filter · ↑↓ move · Enter resume · Esc clear/quit · q quit", size.columns, ""),
  ];
}

interface PickerTerminal {
  readonly input: NodeJS.ReadStream;
  write(text: string): void;
  size(): { columns: number; rows: number };
  now(): number;
}

const ENTER_SCREEN = "\u001b[?1049h\u001b[?25l";
const LEAVE_SCREEN = "\u001b[?25h\u001b[?1049l";

/** Takes the terminal over until something is chosen; gives it back as it was. */
export async function pickSession(
  items: readonly SessionListItem[],
  terminal: PickerTerminal,
): Promise<SessionListItem | null> {
  const { input } = terminal;
  let state: PickerState = { items, filter: "", selected: 0 };
  const draw = () => {
    const { columns, rows } = terminal.size();
    const lines = renderPicker(state, { columns, rows, now: terminal.now() });
    terminal.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
  };
  const wasRaw = input.isRaw ?? false;
  terminal.write(ENTER_SCREEN);
  input.setRawMode?.(true);
  input.setEncoding("utf8");
  try {
    draw();
    for await (const chunk of input.iterator({ destroyOnReturn: false })) {
      for (const key of readKeys(String(chunk))) {
        const step = stepPicker(state, key);
        if (step.type === "chosen") return step.item;
        if (step.type === "quit") return null;
        state = step.state;
      }
      draw();
    }
    return null;
  } finally {
    input.setRawMode?.(wasRaw);
    input.pause();
    terminal.write(LEAVE_SCREEN);
  }
}
