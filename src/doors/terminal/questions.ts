// Questions, one at a time, between the transcript and the input line. The cautious answer is always preselected; silence means no.
import { type Component, Container, Input, matchesKey, type OverlayHandle, type TUI } from "@earendil-works/pi-tui";
import type { AskRequest } from "../../agent/events.ts";
import type { PickOptions } from "../../commands/context.ts";
import { said, t } from "../../home/language/words.ts";
import {
  type AnswerTo,
  type ApprovalQuestion,
  type ClarifyQuestion,
  type Question,
  refuse,
} from "../../safety/decision.ts";
import { approvalWords, dangerWords } from "../approval-words.ts";
import { type Choice, ChoiceList, PREVIEW_ROWS } from "../choice-list.ts";
import { cut, onlyStyled, printable, revealed, type Theme, wrapLines } from "../terminal-text.ts";
import { Lines } from "./blocks.ts";

/** Whoever stops typing for so long has seen the question. */
const TYPING_PAUSE_MS = 800;

interface QuestionsOptions {
  readonly theme: Theme;
  now(): number;
  /** The input line, with what is not sent yet. */
  draft?(): { getText(): string; handleInput(key: string): void };
  /** A question of the agent is on the screen. */
  onAsked?(question: Question): void;
  /** The last question is answered: keys belong to the input again. */
  onIdle(): void;
  /** A line about what became of a question. */
  onSettled(text: string): void;
}

/** One question while it is shown. */
interface Shown {
  /** Gives the refusing answer. */
  cancel(): void;
  readonly expiresAt: number | null;
  /** What happens when nobody answers in time. */
  readonly otherwise: string;
}

interface PickSettings<T> extends PickOptions<T> {
  readonly filter?: boolean;
  readonly numbers?: boolean | "shown";
  /** Silence for this long means "cancelled". */
  readonly timeoutMs?: number;
}

export class Questions {
  readonly area = new Container();
  readonly #tui: TUI;
  readonly #options: QuestionsOptions;
  readonly #waiting: (() => void)[] = [];
  #shown: Shown | null = null;
  #panelOpen = false;
  #overlay: OverlayHandle | null = null;
  #otherwise = "then no";
  /** Until then keys belong to what was being typed when the question came. */
  #heldUntil = 0;

  constructor(tui: TUI, options: QuestionsOptions) {
    this.#tui = tui;
    this.#options = options;
  }

  get open(): boolean {
    return this.#shown !== null;
  }

  /**
   * A key of somebody who has not seen yet that there is a question: it answers nothing, and each one starts the wait for a pause again.
   * What was being typed goes on.
   */
  held(key: string): { consume: true } | undefined {
    const now = this.#options.now();
    const isText = key !== "" && key === printable(key);
    if (!this.open || now >= this.#heldUntil || !(isText || matchesKey(key, "enter"))) return undefined;
    this.#heldUntil = now + TYPING_PAUSE_MS;
    if (isText) this.#options.draft?.().handleInput(key);
    return { consume: true };
  }

  /** Gives the refusing answer to the question on screen. */
  cancel(): void {
    this.#shown?.cancel();
  }

  /** The keys belong to something that is looked at, as to a question; a question of the agent takes it away. */
  showPanel(panel: Component, onClose: () => void): void {
    this.#line(() => {
      this.#open([], panel, null, onClose);
      this.#panelOpen = true;
    });
  }

  ask(request: AskRequest): void {
    if (this.#panelOpen) this.cancel();
    this.#line(() => this.#show(request));
  }

  /** A choice that belongs to a command, not to the agent; null = cancelled. */
  pick<T>(title: string, choices: readonly Choice<T>[], options: PickSettings<T> = {}): Promise<T | null> {
    const result = Promise.withResolvers<T | null>();
    this.#line(() => {
      const { timeoutMs } = options;
      const expiresAt = timeoutMs === undefined ? null : this.#options.now() + timeoutMs;
      this.#otherwise = "then no";
      // A program that was ended meanwhile does not wait for it.
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => this.cancel(), timeoutMs).unref();
      const settle = (value: T | null) => {
        clearTimeout(timer);
        result.resolve(value);
      };
      this.#choose(
        title,
        choices,
        options,
        expiresAt,
        ([value]) => settle(value ?? null),
        () => settle(null),
      );
    });
    return result.promise;
  }

  /** Something of its own in the place of a question, until it closes itself. */
  panel(make: (close: () => void) => Component): Promise<void> {
    const result = Promise.withResolvers<void>();
    this.#line(() => {
      const component = make(() => this.#close(result.resolve));
      this.#open([component], component, null, result.resolve);
    });
    return result.promise;
  }

  /** One typed line that belongs to a command, not to the agent; null = cancelled. */
  type(title: string, look: { readonly hidden?: boolean } = {}): Promise<string | null> {
    const result = Promise.withResolvers<string | null>();
    this.#line(() => this.#type(title, look, null, result.resolve));
    return result.promise;
  }

  #line(show: () => void): void {
    if (this.open) this.#waiting.push(show);
    else show();
  }

  #show(request: AskRequest): void {
    const { question, expiresAt, signal } = request;
    if (signal.aborted) return this.#next();
    if (this.#options.draft?.().getText()) this.#heldUntil = this.#options.now() + TYPING_PAUSE_MS;
    const settled = this.#close.bind(this);
    const onAbort = () => {
      const late = expiresAt !== null && this.#options.now() >= expiresAt;
      if (late) this.#options.onSettled(`⌛ no answer in time: ${silence(question)}`);
      settled();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#otherwise =
      question.kind === "clarify" ? "then Hermes decides" : "text" in refuse(question) ? "then skipped" : "then no";
    this.#options.onAsked?.(question);
    const answer = (value: AnswerTo<Question>) => {
      signal.removeEventListener("abort", onAbort);
      this.#options.onSettled(outcome(question, value));
      (request.answer as (value: AnswerTo<Question>) => void)(value); // made for this kind of question below
    };
    const text = (given: string | null) => answer({ text: given === "" ? null : given });
    switch (question.kind) {
      case "approval":
        return this.#approve(question, expiresAt, answer);
      case "confirm":
        return this.#choose(
          `${question.title}\n${question.detail}`,
          question.onceOnly ? yesOrNo() : confirmChoices(),
          { selected: question.onceOnly ? 1 : 2 },
          expiresAt,
          ([choice = "cancel"]) => answer({ choice }),
          () => answer({ choice: "cancel" }),
        );
      case "clarify":
        return this.#clarify(question, expiresAt, text);
      case "sudo":
        return this.#type(t("🔐 sudo password (empty = skip)"), { hidden: true }, expiresAt, text);
      case "secret":
        return this.#type(`🔑 ${question.prompt} (empty = skip)`, { hidden: true }, expiresAt, text);
    }
  }

  #approve(
    question: ApprovalQuestion,
    expiresAt: number | null,
    answer: (value: AnswerTo<ApprovalQuestion>) => void,
  ): void {
    const { theme } = this.#options;
    const { title } = approvalWords(question);
    const choices = approvalChoices(question);
    const why = () =>
      this.#type(t("✎ Tell the agent why, or what to do instead"), {}, expiresAt, (text) =>
        answer({ choice: "deny", ...(text?.trim() ? { reason: text.trim() } : {}) }),
      );
    const command: Component = {
      render: (width) => [
        theme.warn(cut(`⚠ ${printable(title)}`, width)),
        ...wrapLines(revealed(question.command), Math.max(10, width - 2)).map((line) => cut(`  ${line}`, width)),
        ...wrapLines(printable(question.note ?? ""), width).map((line) => theme.dim(cut(line, width))),
      ],
      invalidate: () => undefined,
    };
    this.#choose(
      command,
      choices,
      { selected: choices.findIndex(({ value }) => value === "deny") },
      expiresAt,
      ([choice = "deny"]) => (choice === "why" ? why() : answer({ choice })),
      () => answer({ choice: "deny", reason: "cancelled by the user" }),
    );
  }

  #clarify(question: ClarifyQuestion, expiresAt: number | null, answer: (text: string | null) => void): void {
    const type = (given: readonly string[] = []) =>
      this.#type(`✎ ${question.question}`, {}, expiresAt, (text) =>
        answer([...given, ...(text ? [text] : [])].join(", ") || null),
      );
    if (!question.choices || question.choices.length === 0) return type();
    const rows: Choice<string | null>[] = [
      ...question.choices.map((choice) => ({ label: choice, value: choice })),
      { label: t("Other ..."), value: null },
    ];
    const title = `? ${question.question}${question.multiSelect ? " (Space selects, Enter confirms)" : ""}`;
    this.#choose(
      title,
      rows,
      { multiple: question.multiSelect },
      expiresAt,
      (taken) => {
        const given = taken.filter((choice) => choice !== null);
        if (taken.includes(null)) type(given);
        else answer(given.join(", "));
      },
      () => answer(null),
    );
  }

  #choose<T>(
    title: string | Component,
    choices: readonly Choice<T>[],
    look: Omit<PickSettings<T>, "timeoutMs"> & { readonly multiple?: boolean },
    expiresAt: number | null,
    taken: (values: readonly T[]) => void,
    cancelled: () => void,
  ): void {
    const list = new ChoiceList<T>({
      choices,
      theme: this.#options.theme,
      ...look,
      ...(look.filter ? { rows: () => rowsIn(this.#tui.terminal.rows, look.preview !== undefined) } : {}),
      onChange: () => this.#tui.requestRender(),
      onTake: (values) => this.#close(() => taken(values)),
      onCancel: () => this.cancel(),
    });
    const head = typeof title === "string" ? new Lines(said(title)) : title;
    // A short one leaves what was said just before in sight.
    if (look.filter && (look.preview || choices.length > SHORT)) this.#cover([head, list], list, cancelled);
    else this.#open([head, list], list, expiresAt, cancelled);
  }

  #type(
    title: string,
    look: { readonly hidden?: boolean },
    expiresAt: number | null,
    done: (text: string | null) => void,
  ): void {
    const input = new Input();
    input.onSubmit = (text) => this.#close(() => done(text));
    input.onEscape = () => this.cancel();
    const shown = look.hidden ? masked(input) : input;
    this.#open([new Lines(title), shown], shown, expiresAt, () => done(null));
  }

  #open(parts: readonly Component[], focus: Component, expiresAt: number | null, cancelled: () => void): void {
    this.area.clear();
    this.area.addChild({ render: () => [""], invalidate: () => undefined });
    for (const part of parts) this.area.addChild(part);
    // Below the question: a line above the window that changes every second would redraw everything.
    this.area.addChild({ render: (width) => this.#countdown(width), invalidate: () => undefined });
    this.#shown = { expiresAt, otherwise: this.#otherwise, cancel: () => this.#close(cancelled) };
    this.#tui.setFocus(focus);
    this.#tui.requestRender();
  }

  /** A long list lies over the end of the screen: what it covers is back as it was when the list is gone. */
  #cover(parts: readonly Component[], list: Component, cancelled: () => void): void {
    const { theme } = this.#options;
    const page: Component = {
      render: (width) =>
        onlyStyled([theme.dim("─".repeat(width)), ...parts.flatMap((part) => part.render(width)), ""], width),
      handleInput: (data) => list.handleInput?.(data),
      invalidate: () => list.invalidate(),
    };
    this.#shown = { expiresAt: null, otherwise: this.#otherwise, cancel: () => this.#close(cancelled) };
    this.#overlay = this.#tui.showOverlay(page, { anchor: "bottom-left", width: "100%", maxHeight: "100%" });
  }

  #countdown(width: number): string[] {
    const { expiresAt = null, otherwise = "" } = this.#shown ?? {};
    const more = this.#waiting.length > 0 ? t("{count} more to answer", { count: this.#waiting.length }) : "";
    const left =
      expiresAt === null
        ? ""
        : t("{seconds}s left, {otherwise}", {
            seconds: Math.max(0, Math.ceil((expiresAt - this.#options.now()) / 1000)),
            otherwise: said(otherwise),
          });
    const text = [left, more].filter((part) => part !== "").join(" · ");
    return text === "" ? [] : [this.#options.theme.dim(cut(`  ${text}`, width))];
  }

  /** Takes the question away, lets its answer be given, shows the next one. */
  #close(then: () => void = () => undefined): void {
    if (this.#shown === null) return;
    this.#shown = null;
    this.#panelOpen = false;
    this.area.clear();
    this.#overlay?.hide();
    this.#overlay = null;
    then();
    // The answer may have opened a follow-up of its own ("Other ...").
    if (!this.open) this.#next();
    if (!this.open) this.#options.onIdle();
    this.#tui.requestRender();
  }

  #next(): void {
    this.#waiting.shift()?.();
  }
}

const SHORT = 8;

/** Rows of a list, so that its title, a preview and the input stay in sight. */
const rowsIn = (rows: number, preview: boolean) => Math.max(4, Math.min(20, rows - (preview ? PREVIEW_ROWS + 9 : 14)));

/** An input whose text is never drawn. */
function masked(input: Input): Component & { focused: boolean } {
  return {
    get focused() {
      return input.focused;
    },
    set focused(value) {
      input.focused = value;
    },
    render: (width) => [cut(`> ${"•".repeat([...input.getValue()].length)}`, width)],
    invalidate: () => input.invalidate(),
    handleInput: (data) => input.handleInput(data),
  };
}

function approvalChoices(question: ApprovalQuestion): Choice<AnswerTo<ApprovalQuestion>["choice"] | "why">[] {
  const { once, no } = approvalWords(question);
  return [
    { label: once, value: "once" },
    ...(question.allowSession === false
      ? []
      : [
          {
            label: t("Allow for this session"),
            hint: t('all "{kind}" actions', { kind: dangerWords(question.patternKey) }),
            value: "session" as const,
          },
        ]),
    ...(question.allowAlways
      ? [
          {
            label: t("Always allow"),
            hint: t("saved in {place}", { place: question.keptIn ?? "config.yaml" }),
            value: "always" as const,
          },
        ]
      : []),
    { label: no, value: "deny" },
    { label: t("No, and tell the agent why ..."), value: "why" },
  ];
}

const confirmChoices = (): Choice<"once" | "always" | "cancel">[] => [
  { label: t("Yes, once"), value: "once" },
  { label: t("Yes, and don't ask again"), value: "always" },
  { label: t("No, cancel"), value: "cancel" },
];

const yesOrNo = (): Choice<"once" | "always" | "cancel">[] => [
  { label: t("Yes"), value: "once" },
  { label: t("No"), value: "cancel" },
];

function outcome(question: Question, value: AnswerTo<Question>): string {
  if ("choice" in value) {
    const no = value.choice === "deny" || value.choice === "cancel";
    if (question.kind !== "approval") return `? ${oneLine(titleOf(question))} → ${no ? "no" : "yes"}`;
    const done = { once: t("allowed once"), session: t("allowed for this session"), always: t("always allowed") };
    const what = oneLine(question.command);
    const why = question.kind === "approval" && "reason" in value && value.reason ? ` (${oneLine(value.reason)})` : "";
    return no ? `✗ ${t("not allowed")}: ${what}${why}` : `✓ ${done[value.choice as keyof typeof done]}: ${what}`; // the rest is no
  }
  if (question.kind === "clarify") return `? ${oneLine(question.question)} → ${oneLine(value.text ?? "no answer")}`;
  const what = question.kind === "secret" ? `🔑 ${question.name}` : "🔐 sudo password";
  return `${what}: ${value.text === null ? "skipped" : "given"}`;
}

const titleOf = (question: Question) => (question.kind === "confirm" ? question.title : question.kind);

const silence = (question: Question) =>
  question.kind === "approval" ? `not allowed: ${oneLine(question.command)}` : "the agent continues without it";

const oneLine = (text: string) => cut(revealed(text).replace(/\s+/g, " "), 100);
