// Events -> blocks on the screen. Knows nothing of keys, turns or sessions.

import { type Component, Container, Spacer } from "@earendil-works/pi-tui";
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import { plural } from "../../kit/formats.ts";
import { feedLine, feedSuffix, recoveryLine, subagentLine } from "../feed.ts";
import { printable, type Theme } from "../terminal-text.ts";
import type { ChatRequest } from "../typed-input.ts";
import { AnswerBlock, type AnswerStyle } from "./answer-block.ts";
import { CutLines, Lines, Rule } from "./blocks.ts";
import { loadCodeColours } from "./markdown.ts";

export interface TranscriptSettings {
  readonly answerStyle: AnswerStyle;
  readonly toolProgress: "off" | "new" | "all" | "verbose" | "log";
  readonly previewLength: number;
  readonly showReasoning: boolean;
  readonly interimText: boolean;
  readonly inlineDiffs: boolean;
  readonly streaming: boolean;
  /** `[HH:MM]` in front of messages; null = without. */
  readonly timestamp: string | null;
  readonly echo: { readonly first_lines: number; readonly last_lines: number };
}

/** How the transcript looks right now; settings may change while the screen is open. */
export function transcriptSettings(request: ChatRequest, now: () => number): () => TranscriptSettings {
  const configured = request.home.config().display.tool_progress;
  return () => {
    const { display } = request.home.config();
    return {
      answerStyle: display.final_response_markdown,
      // --verbose holds until /verbose says something else.
      toolProgress: request.verbose && display.tool_progress === configured ? "verbose" : display.tool_progress,
      previewLength: display.tool_preview_length,
      showReasoning: display.show_reasoning,
      interimText: display.interim_assistant_messages,
      inlineDiffs: display.inline_diffs,
      streaming: display.streaming,
      timestamp: display.timestamps ? clockTime(now()) : null,
      echo: display.user_message_preview,
    };
  };
}

function clockTime(now: number): string {
  const at = new Date(now);
  return `[${String(at.getHours()).padStart(2, "0")}:${String(at.getMinutes()).padStart(2, "0")}]`;
}

const VERBOSE_CHARS = 2000;
const LABEL = "⚕ Hermes";

export class Transcript {
  readonly view = new Container();
  readonly #theme: Theme;
  readonly #settings: () => TranscriptSettings;
  #answer: AnswerBlock | null = null;
  #thinking: AnswerBlock | null = null;
  #lastTool: string | null = null;
  /** The last thing added was a line of the feed or a note: such lines stand together. */
  #inFeed = false;

  constructor(theme: Theme, settings: () => TranscriptSettings) {
    this.#theme = theme;
    this.#settings = settings;
  }

  user(text: string): void {
    this.#gap();
    const { echo, timestamp } = this.#settings();
    const stamp = timestamp === null ? "" : `${timestamp} `;
    this.view.addChild(new Lines(`${stamp}❯ ${userEcho(text, echo)}`, this.#theme.user));
  }

  info(text: string): void {
    this.#gap();
    this.view.addChild(new Lines(text));
  }

  /** A block that its owner goes on changing, such as the output of a shell line. */
  add(block: Component): void {
    this.#gap();
    this.view.addChild(block);
  }

  dim(text: string): void {
    this.#note(new Lines(text, this.#theme.dim));
  }

  warn(text: string): void {
    this.#note(new Lines(`⚠ ${text}`, this.#theme.warn));
  }

  clear(): void {
    this.view.clear();
    this.#answer = null;
    this.#thinking = null;
    this.#inFeed = false;
  }

  /** An answer that is already whole: shown when a conversation is taken up again. */
  answer(text: string): void {
    this.#openAnswer().finish(text);
  }

  /** A text of its own with a name, such as the answer of a prompt in the background. */
  panel(label: string, text: string): void {
    this.#gap();
    this.view.addChild(new Rule(printable(label), this.#theme.dim));
    const block = new AnswerBlock(this.#settings().answerStyle, this.#theme);
    this.view.addChild(block);
    block.finish(text);
  }

  show(event: AgentEvent): void {
    const settings = this.#settings();
    switch (event.type) {
      case "text":
        if (!settings.streaming) return;
        this.#answer ??= this.#openAnswer();
        return this.#answer.append(event.delta);
      case "text_end":
        return this.#endText(event.text, event.kind);
      case "thinking":
        if (settings.showReasoning || settings.toolProgress === "verbose") this.#think(event.delta);
        return;
      case "tool_end":
        return this.#tool(event);
      case "subagent":
        return this.#child(event);
      case "status":
      case "compressed":
        return this.#status(event);
      case "notice":
        return this.dim(event.kind === "review" ? `  ${event.text}` : event.text);
      case "done":
        this.#answer = null;
        this.#thinking = null;
        this.#lastTool = null;
        return this.#end(event.outcome);
    }
  }

  #end({ interrupted, failed, exitReason, finalText, unsent }: TurnOutcome): void {
    // The user knows what they stopped, not that somebody else took the conversation.
    const unknown = failed || exitReason === "conversation_moved";
    if (unknown && finalText) this.warn(finalText);
    else if (interrupted) this.dim(unsent ? "⏹ stopped: nothing was sent" : "⏹ stopped");
  }

  #status(event: AgentEvent & { type: "status" | "compressed" }): void {
    if (event.type === "status" && event.kind === "warn") return this.warn(event.message);
    if (event.type === "status" && event.kind === "done") return this.dim(`✓ ${event.message}`);
    const recovery = recoveryLine(event);
    if (recovery !== null) this.dim(recovery);
  }

  #openAnswer(): AnswerBlock {
    // Code that was drawn without its colours is drawn again with the next frame.
    void loadCodeColours().then((isNew) => isNew && this.view.invalidate());
    this.#gap();
    const { timestamp, answerStyle } = this.#settings();
    this.view.addChild(new Rule(timestamp === null ? LABEL : `${LABEL} ${timestamp}`, this.#theme.dim));
    const block = new AnswerBlock(answerStyle, this.#theme);
    this.view.addChild(block);
    return block;
  }

  #endText(text: string, kind: "interim" | "final"): void {
    const shown = text.trim() !== "" && (kind === "final" || this.#settings().interimText);
    if (this.#answer && shown) this.#answer.finish(text);
    else if (this.#answer) this.#dropAnswer(this.#answer);
    else if (shown) this.answer(text);
    this.#answer = null;
    this.#thinking = null;
  }

  #dropAnswer(answer: AnswerBlock): void {
    const rule = this.view.children[this.view.children.indexOf(answer) - 1];
    if (rule) this.view.removeChild(rule);
    this.view.removeChild(answer);
  }

  #think(delta: string): void {
    if (this.#thinking === null) {
      this.#gap();
      this.view.addChild(new Rule("thinking", this.#theme.dim));
      this.#thinking = new AnswerBlock("raw", this.#theme, this.#theme.dim);
      this.view.addChild(this.#thinking);
    }
    this.#thinking.append(delta);
  }

  #tool(event: Extract<AgentEvent, { type: "tool_end" }>): void {
    const { call, result, ms } = event;
    const { toolProgress, inlineDiffs, previewLength } = this.#settings();
    const repeated = call.name === this.#lastTool;
    this.#lastTool = call.name;
    if (toolProgress === "off" || toolProgress === "log") return;
    if (toolProgress !== "new" || !repeated) {
      const suffix = feedSuffix(call.name, result);
      const style = suffix ? this.#theme.warn : this.#theme.dim;
      const line = (width: number) => [style(feedLine(call, ms, suffix, { width, detailChars: previewLength }))];
      this.#note(new CutLines(line));
    }
    if (toolProgress === "verbose") {
      this.#note(new Lines(`  ${JSON.stringify(call.args).slice(0, VERBOSE_CHARS)}`, this.#theme.dim));
      this.#note(new Lines(result.slice(0, VERBOSE_CHARS).replace(/^/gm, "  "), this.#theme.dim));
    }
    const diff = inlineDiffs ? diffOf(event) : null;
    if (diff !== null) this.#note(new CutLines(diffLines(diff, this.#theme)));
  }

  #child(event: Extract<AgentEvent, { type: "subagent" }>): void {
    const { toolProgress } = this.#settings();
    if (toolProgress === "off" || toolProgress === "log") return;
    const everyCall = toolProgress === "verbose";
    if (subagentLine(event, { everyCall }) === null) return;
    const failed = event.phase === "complete" && event.status !== "completed";
    const style = failed ? this.#theme.warn : this.#theme.dim;
    const line = (width: number) => [style(printable(subagentLine(event, { width, everyCall }) ?? ""))];
    this.#note(new CutLines(line));
  }

  #note(block: Lines | CutLines): void {
    if (!this.#inFeed) this.#gap();
    this.#inFeed = true;
    this.view.addChild(block);
  }

  #gap(): void {
    this.#inFeed = false;
    if (this.view.children.length > 0) this.view.addChild(new Spacer(1));
  }
}

const LONG_LINE = 400;

/** A long message as the transcript repeats it: its first and last lines, and how many are between. */
export function userEcho(text: string, shown: { readonly first_lines: number; readonly last_lines: number }): string {
  const head = text.slice(0, (shown.first_lines + 1) * LONG_LINE * 4).split("\n");
  const lines = text.length < 100_000 ? text.split("\n") : null;
  const count = lines?.length ?? countLines(text);
  const most = shown.first_lines + shown.last_lines + 1;
  if (lines && count <= most) return lines.map(shorten).join("\n");
  const tail = text.slice(-(shown.last_lines + 1) * LONG_LINE * 4).split("\n");
  const last = shown.last_lines > 0 && count > shown.first_lines ? tail.slice(-shown.last_lines) : [];
  const between = count - shown.first_lines - last.length;
  return [
    ...head.slice(0, shown.first_lines).map(shorten),
    ...(between > 0 ? [`... ${plural(between, "more line")} ...`] : []),
    ...last.map(shorten),
  ].join("\n");
}

function shorten(line: string): string {
  return line.length > LONG_LINE * 4 ? `${line.slice(0, LONG_LINE * 4)}... (${line.length} characters)` : line;
}

function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

// The diff that a file edit reports, short enough for the feed.

const MAX_FILES = 6;
const MAX_LINES = 80;

/** The diff of a call: from its event, or from `diff` in a successful result. Null when there is none. */
export function diffOf(event: {
  readonly result: string;
  readonly failed: boolean;
  readonly diff?: string;
}): string | null {
  return event.failed ? null : (event.diff ?? diffInResult(event.result));
}

function diffInResult(result: string): string | null {
  if (!result.startsWith("{")) return null;
  try {
    const value = JSON.parse(result);
    return typeof value.diff === "string" && value.diff !== "" && !value.error ? value.diff : null;
  } catch {
    return null; // not JSON: no diff to show
  }
}

export function diffLines(diff: string, theme: Theme): string[] {
  const out: string[] = [];
  let files = 0;
  let hidden = 0;
  for (const line of printable(diff).replace(/\n$/, "").split("\n")) {
    if (line.startsWith("--- ")) files++;
    if (files > MAX_FILES || out.length >= MAX_LINES) hidden++;
    else out.push(paint(line, theme));
  }
  if (hidden > 0) out.push(theme.dim(`... ${plural(hidden, "more line")}`));
  return out;
}

function paint(line: string, theme: Theme): string {
  if (line.startsWith("+++") || line.startsWith("---")) return theme.bold(line);
  if (line.startsWith("@@")) return theme.accent(line);
  if (line.startsWith("+")) return theme.added(line);
  if (line.startsWith("-")) return theme.removed(line);
  return theme.dim(line);
}
