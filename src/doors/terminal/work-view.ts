// What is seen of the work besides the transcript: the end of a running command's output, the open tasks, and the window on finished
// calls and thinking.

import type { Component } from "@earendil-works/pi-tui";
import type { BackgroundReport } from "../../agent/background.ts";
import type { AgentEvent } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { t } from "../../home/language/words.ts";
import { type HistoryMessage, textOf } from "../../llm/messages.ts";
import { cut, printable, type Theme } from "../terminal-text.ts";
import type { Page } from "./inspector.ts";
import type { Questions } from "./questions.ts";
import type { DrawnScreen } from "./screen-terminal.ts";
import { TODO_MARKS } from "./tool-details.ts";
import type { Transcript } from "./transcript.ts";

interface WorkParts {
  readonly theme: Theme;
  readonly transcript: Transcript;
  readonly questions: Questions;
  readonly screen: Pick<DrawnScreen, "cover" | "uncover" | "terminal">;
  refresh(): void;
  busy(): boolean;
}

export class WorkView {
  readonly tail: LiveTail;
  readonly todos: TodoPanel;
  readonly #parts: WorkParts;

  constructor(parts: WorkParts) {
    this.#parts = parts;
    this.tail = new LiveTail(parts.theme);
    this.todos = new TodoPanel(parts.theme);
  }

  follow(event: AgentEvent): void {
    this.tail.follow(event);
    this.todos.follow(event);
  }

  /** Another conversation begins: its tasks are the ones in its history. */
  begin(history: readonly HistoryMessage[]): void {
    this.todos.begin(history);
  }

  /** The answer of a prompt in the background. */
  report({ id, prompt, status, text, ms }: BackgroundReport): void {
    const { transcript, refresh } = this.#parts;
    const label = `▶ ${id} · ${cut(prompt.replace(/\s+/g, " "), 40)} · ${(ms / 1000).toFixed(1)}s`;
    if (status === "done") transcript.panel(label, text);
    else transcript.warn(`${label}: ${text}`);
    refresh();
  }

  /** Shift+Tab. */
  async cycleMode(conversation: OpenAgent | null): Promise<void> {
    const { MODE_WORDS, nextMode } = await import("../../tools/toolset/work-mode.ts");
    if (conversation === null) return;
    conversation.workMode = nextMode(conversation.workMode);
    this.#parts.transcript.dim(MODE_WORDS[conversation.workMode]);
    this.#parts.refresh();
  }

  /** Ctrl+O: the last call first. */
  async openCalls(): Promise<void> {
    const { transcript } = this.#parts;
    if (transcript.calls.length === 0) return transcript.dim("No tool calls to show yet.");
    const { pageOfCall } = await import("./inspector.ts");
    await this.#open(transcript.calls.map(pageOfCall));
  }

  /** Ctrl+T: while the agent works, thinking is shown as it comes or no more; afterwards that of the last turn is opened. */
  async toggleThinking(): Promise<void> {
    const { transcript, busy } = this.#parts;
    if (busy()) {
      const shown = transcript.toggleThinking();
      return transcript.dim(shown ? "Thinking is shown. Ctrl+T hides it." : "Thinking is hidden. Ctrl+T shows it.");
    }
    if (transcript.thought.trim() === "") return transcript.dim("The model showed no thinking in the last turn.");
    const { pageOfText } = await import("./inspector.ts");
    await this.#open([pageOfText("💭 Thinking of the last turn", transcript.thought)]);
  }

  async #open(pages: readonly Page[]): Promise<void> {
    const { theme, questions, screen, refresh } = this.#parts;
    const { Inspector } = await import("./inspector.ts");
    if (questions.open) return;
    const height = () => screen.terminal.rows;
    const inspector = new Inspector({ pages, theme, height, onClose: () => questions.cancel(), onChange: refresh });
    screen.cover(inspector);
    questions.showPanel(inspector, () => screen.uncover());
  }
}

// The last lines of a command that still runs, under the line that shows the work.

const TAIL_LINES = 5;

export class LiveTail implements Component {
  readonly #theme: Theme;
  #shown: { readonly call: string; readonly lines: readonly string[] } | null = null;

  constructor(theme: Theme) {
    this.#theme = theme;
  }

  follow(event: AgentEvent): void {
    if (event.type === "tool_progress" && event.output !== undefined)
      this.#shown = { call: event.call.id, lines: lastLines(event.output) };
    if (event.type === "done" || (event.type === "tool_end" && event.call.id === this.#shown?.call)) this.#shown = null;
  }

  render(width: number): string[] {
    return (this.#shown?.lines ?? []).map((line) => this.#theme.dim(cut(`  │ ${line}`, width)));
  }

  invalidate(): void {
    // drawn anew for every frame
  }
}

/** Of a line that was overwritten in place, such as a progress bar, the newest state. */
function lastLines(output: string): readonly string[] {
  return output
    .replace(/\r?\n$/, "")
    .split("\n")
    .slice(-TAIL_LINES)
    .map((line) => printable(line.split("\r").findLast((part) => part !== "") ?? ""));
}

// The task list, pinned above the input while something in it is open.

interface TodoItem {
  readonly content: string;
  readonly status: string;
}

const TODO_ROWS = 6;

const isOpen = ({ status }: TodoItem) => status === "pending" || status === "in_progress";

export class TodoPanel implements Component {
  readonly #theme: Theme;
  #items: readonly TodoItem[] = [];
  #shown = true;

  constructor(theme: Theme) {
    this.#theme = theme;
  }

  follow(event: AgentEvent): void {
    if (event.type === "tool_end" && event.call.name === "todo") this.#items = todosIn(event.result) ?? this.#items;
  }

  begin(history: readonly HistoryMessage[]): void {
    const newest = history.findLast(
      (message) => message.role === "tool" && message.name === "todo" && todosIn(textOf(message.content)) !== null,
    );
    this.#items = (newest && todosIn(textOf(newest.content))) ?? [];
  }

  /** Returns what to tell the user about it. */
  toggle(): string {
    this.#shown = !this.#shown;
    if (!this.#items.some(isOpen)) return this.#shown ? "Open tasks will be shown here." : "The task list is hidden.";
    return this.#shown ? "The task list is shown." : "The task list is hidden. /todo shows it.";
  }

  render(width: number): string[] {
    if (!this.#shown || !this.#items.some(isOpen)) return [];
    const done = this.#items.filter(({ status }) => status === "completed").length;
    // What was just done, what is being done, what comes next.
    const current = this.#items.findIndex(({ status }) => status === "in_progress");
    const next = current >= 0 ? current : this.#items.findIndex(isOpen);
    const from = Math.max(0, Math.min(next - 1, this.#items.length - TODO_ROWS));
    const rows = this.#items.slice(from, from + TODO_ROWS);
    const more = this.#items.length - rows.length;
    const head =
      t("Tasks {done}/{count}", { done, count: this.#items.length }) +
      (more > 0 ? ` · ${t("{count} more", { count: more })}` : "");
    return ["", this.#theme.dim(cut(head, width)), ...rows.map((item) => cut(this.#row(item), width))];
  }

  invalidate(): void {
    // drawn anew for every frame
  }

  #row({ content, status }: TodoItem): string {
    const text = `${TODO_MARKS[status] ?? "○"} ${printable(content).replace(/\s+/g, " ")}`;
    if (status === "in_progress") return this.#theme.accent(text);
    return status === "pending" ? text : this.#theme.dim(text);
  }
}

function todosIn(result: string): readonly TodoItem[] | null {
  if (!result.startsWith("{")) return null;
  try {
    const { todos } = JSON.parse(result);
    if (!Array.isArray(todos)) return null;
    return todos.map((item) => ({ content: String(item?.content ?? ""), status: String(item?.status ?? "pending") }));
  } catch {
    return null; // a shortened result holds no list
  }
}
