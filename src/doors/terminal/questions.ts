// Questions of the agent, one at a time, between the transcript and the input line. The cautious answer is always preselected.
import { type Component, Container, Input, SelectList, type SelectListTheme, type TUI } from "@earendil-works/pi-tui";
import type { AskRequest } from "../../agent/events.ts";
import type { AnswerTo, ApprovalQuestion, ClarifyQuestion, ConfirmQuestion, Question } from "../../safety/questions.ts";
import { Lines } from "./blocks.ts";
import type { Theme } from "./theme.ts";

interface Choice<T> {
  readonly label: string;
  readonly hint?: string;
  readonly value: T;
}

export class Questions {
  readonly area = new Container();
  readonly #tui: TUI;
  readonly #theme: Theme;
  readonly #focusBack: () => void;
  readonly #waiting: (() => void)[] = [];
  #cancel: (() => void) | null = null;

  constructor(tui: TUI, theme: Theme, focusBack: () => void) {
    this.#tui = tui;
    this.#theme = theme;
    this.#focusBack = focusBack;
  }

  get open(): boolean {
    return this.#cancel !== null;
  }

  /** Gives the refusing answer to the question on screen. */
  cancel(): void {
    this.#cancel?.();
  }

  ask(request: AskRequest): void {
    const show = () => this.#show(request);
    if (this.open) this.#waiting.push(show);
    else show();
  }

  /** A choice that belongs to a command, not to the agent; null = cancelled. */
  pick<T>(title: string, choices: readonly Choice<T>[], selected = 0): Promise<T | null> {
    const result = Promise.withResolvers<T | null>();
    const show = () => this.#choose(title, choices, selected, result.resolve, () => result.resolve(null));
    if (this.open) this.#waiting.push(show);
    else show();
    return result.promise;
  }

  #show(request: AskRequest): void {
    const question: Question = request.question;
    const answer = request.answer as (value: AnswerTo<Question>) => void; // the kind was checked by the switch below
    if (request.signal.aborted) return this.#next();
    request.signal.addEventListener("abort", () => this.#close(), { once: true });
    switch (question.kind) {
      case "approval":
        return this.#choose(approvalTitle(question, this.#theme), approvalChoices(question), -1, answer, () =>
          answer({ choice: "deny", reason: "cancelled by the user" }),
        );
      case "confirm":
        return this.#choose(confirmTitle(question), CONFIRM_CHOICES, -1, answer, () => answer({ choice: "cancel" }));
      case "clarify":
        return this.#clarify(question, answer);
      case "sudo":
        return this.#type("🔐 sudo password (empty = skip)", true, (text) => answer({ text: text || null }));
      case "secret":
        return this.#type(`🔑 ${question.prompt}`, true, (text) => answer({ text: text || null }));
    }
  }

  #clarify(question: ClarifyQuestion, answer: (value: { text: string | null }) => void): void {
    const choices = question.choices ?? [];
    if (choices.length === 0) return this.#type(`✎ ${question.question}`, false, (text) => answer({ text }));
    const rows: Choice<string | null>[] = [
      ...choices.map((choice) => ({ label: choice, value: choice })),
      { label: "Other ...", value: null },
    ];
    this.#choose(
      `? ${question.question}`,
      rows,
      0,
      (choice) =>
        choice === null
          ? this.#type(`✎ ${question.question}`, false, (text) => answer({ text }))
          : answer({ text: choice }),
      () => answer({ text: null }),
    );
  }

  #choose<T>(
    title: string,
    choices: readonly Choice<T>[],
    selected: number,
    chosen: (value: T) => void,
    cancelled: () => void,
  ): void {
    const items = choices.map((choice, index) => ({
      value: String(index),
      label: `${index + 1}. ${choice.label}`,
      ...(choice.hint ? { description: choice.hint } : {}),
    }));
    const list = new SelectList(items, 10, selectTheme(this.#theme), { maxPrimaryColumnWidth: 60 });
    list.setSelectedIndex(selected < 0 ? choices.length + selected : selected);
    const take = (index: number) => {
      const choice = choices[index];
      if (!choice) return;
      this.#close();
      chosen(choice.value);
    };
    list.onSelect = (item) => take(Number(item.value));
    list.onCancel = () => this.cancel();
    const byNumber: Component & { focused?: boolean } = {
      render: (width) => list.render(width),
      invalidate: () => list.invalidate(),
      handleInput: (data) => (/^[1-9]$/.test(data) ? take(Number(data) - 1) : list.handleInput(data)),
    };
    this.#open([new Lines(title), byNumber], byNumber, cancelled);
  }

  #type(title: string, hidden: boolean, done: (text: string | null) => void): void {
    const input = new Input();
    input.onSubmit = (text) => {
      this.#close();
      done(text);
    };
    input.onEscape = () => this.cancel();
    const shown: Component & { focused: boolean } = hidden ? masked(input) : input;
    this.#open([new Lines(title)], shown, () => done(null), shown);
  }

  #open(parts: readonly Component[], focus: Component, cancelled: () => void, extra?: Component): void {
    this.area.clear();
    for (const part of parts) this.area.addChild(part);
    if (extra) this.area.addChild(extra);
    this.#cancel = () => {
      this.#close();
      cancelled();
    };
    this.#tui.setFocus(focus);
    this.#tui.requestRender();
  }

  #close(): void {
    if (this.#cancel === null) return;
    this.#cancel = null;
    this.area.clear();
    this.#focusBack();
    this.#next();
    this.#tui.requestRender();
  }

  #next(): void {
    this.#waiting.shift()?.();
  }
}

/** An input whose text is never drawn. */
function masked(input: Input): Component & { focused: boolean } {
  return {
    get focused() {
      return input.focused;
    },
    set focused(value) {
      input.focused = value;
    },
    render: () => [`> ${"•".repeat([...input.getValue()].length)}`],
    invalidate: () => input.invalidate(),
    handleInput: (data) => input.handleInput(data),
  };
}

function approvalTitle(question: ApprovalQuestion, theme: Theme): string {
  return `${theme.warn(`⚠ Dangerous command: ${question.description}`)}\n  ${question.command.split("\n").join("\n  ")}`;
}

function approvalChoices(question: ApprovalQuestion): Choice<AnswerTo<ApprovalQuestion>>[] {
  return [
    { label: "Run it once", value: { choice: "once" } },
    {
      label: "Allow for this session",
      hint: `everything of the kind "${question.patternKey}"`,
      value: { choice: "session" },
    },
    ...(question.allowAlways
      ? [{ label: "Always allow", hint: "kept in config.yaml", value: { choice: "always" as const } }]
      : []),
    { label: "No, do not run it", value: { choice: "deny" } },
  ];
}

const confirmTitle = (question: ConfirmQuestion) => `${question.title}\n${question.detail}`;

const CONFIRM_CHOICES: Choice<AnswerTo<ConfirmQuestion>>[] = [
  { label: "Yes, once", value: { choice: "once" } },
  { label: "Yes, and never ask again", value: { choice: "always" } },
  { label: "No, cancel", value: { choice: "cancel" } },
];

export function selectTheme(theme: Theme): SelectListTheme {
  return {
    selectedPrefix: theme.accent,
    selectedText: theme.accent,
    description: theme.dim,
    scrollInfo: theme.dim,
    noMatch: theme.dim,
  };
}
