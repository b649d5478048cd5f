// Events -> blocks on the screen. Knows nothing of keys, turns or sessions.
import { Container, Spacer } from "@earendil-works/pi-tui";
import type { AgentEvent, ToolCallView } from "../../agent/events.ts";
import { feedLine, feedRow, feedSuffix } from "../tool-feed.ts";
import { AnswerBlock, type AnswerStyle, CutLine, Lines } from "./blocks.ts";
import { diffLines, diffOf } from "./inline-diff.ts";
import type { Theme } from "./theme.ts";

export interface TranscriptSettings {
  readonly answerStyle: AnswerStyle;
  readonly toolProgress: "off" | "new" | "all" | "verbose" | "log";
  readonly showReasoning: boolean;
  readonly interimText: boolean;
  readonly inlineDiffs: boolean;
  readonly streaming: boolean;
}

export class Transcript {
  readonly view = new Container();
  readonly #theme: Theme;
  readonly #settings: () => TranscriptSettings;
  #answer: AnswerBlock | null = null;
  #thinking: AnswerBlock | null = null;
  #lastTool: string | null = null;

  constructor(theme: Theme, settings: () => TranscriptSettings) {
    this.#theme = theme;
    this.#settings = settings;
  }

  user(text: string): void {
    this.#gap();
    this.view.addChild(new Lines(`❯ ${text}`, this.#theme.user));
  }

  info(text: string): void {
    this.#gap();
    this.view.addChild(new Lines(text));
  }

  dim(text: string): void {
    this.view.addChild(new Lines(text, this.#theme.dim));
  }

  warn(text: string): void {
    this.view.addChild(new Lines(`⚠ ${text}`, this.#theme.warn));
  }

  clear(): void {
    this.view.clear();
    this.#answer = null;
    this.#thinking = null;
  }

  /** An answer that is already whole: shown when a conversation is taken up again. */
  answer(text: string): void {
    this.#gap();
    const block = new AnswerBlock(this.#settings().answerStyle, this.#theme);
    block.setText(text);
    this.view.addChild(block);
  }

  show(event: AgentEvent): void {
    const settings = this.#settings();
    switch (event.type) {
      case "text":
        if (settings.streaming) this.#growing().append(event.delta);
        return;
      case "text_end":
        return this.#endText(event.text, event.kind);
      case "thinking":
        if (settings.showReasoning) this.#think(event.delta);
        return;
      case "tool_end":
        return this.#tool(event.call, event.result, event.ms);
      case "status":
        if (event.kind === "warn") this.warn(event.message);
        return;
      case "compressed":
        return this.dim(`context compressed: ${event.before} → ${event.after} tokens`);
      case "notice":
        return this.dim(event.text);
      case "done":
        this.#answer = null;
        this.#thinking = null;
        this.#lastTool = null;
        if (event.outcome.interrupted) this.dim("⏹ stopped");
        return;
    }
  }

  #growing(): AnswerBlock {
    if (this.#answer === null) {
      this.#gap();
      this.#answer = new AnswerBlock(this.#settings().answerStyle, this.#theme);
      this.view.addChild(this.#answer);
    }
    return this.#answer;
  }

  #endText(text: string, kind: "interim" | "final"): void {
    const hidden = kind === "interim" && !this.#settings().interimText;
    if (this.#answer) {
      if (hidden) this.view.removeChild(this.#answer);
      else if (text.trim() !== "") this.#answer.setText(text);
    } else if (!hidden && text.trim() !== "") this.answer(text);
    this.#answer = null;
    this.#thinking = null;
  }

  #think(delta: string): void {
    if (this.#thinking === null) {
      this.#gap();
      this.view.addChild(new Lines("thinking", this.#theme.dim));
      this.#thinking = new AnswerBlock("raw", this.#theme);
      this.view.addChild(this.#thinking);
    }
    this.#thinking.append(delta);
  }

  #tool(call: ToolCallView, result: string, ms: number): void {
    const { toolProgress, inlineDiffs } = this.#settings();
    const repeated = call.name === this.#lastTool;
    this.#lastTool = call.name;
    if (toolProgress === "off" || toolProgress === "log" || (toolProgress === "new" && repeated)) return;
    const suffix = feedSuffix(call.name, result);
    this.view.addChild(new CutLine(feedLine(call, ms, suffix), suffix ? this.#theme.warn : this.#theme.dim));
    if (toolProgress === "verbose") this.view.addChild(new Lines(result.slice(0, 2000), this.#theme.dim));
    const diff = inlineDiffs ? diffOf(result) : null;
    if (diff) this.view.addChild(new Lines(diffLines(diff, this.#theme).join("\n")));
  }

  #gap(): void {
    if (this.view.children.length > 0) this.view.addChild(new Spacer(1));
  }
}

/** What the spinner says while a call runs. */
export function runningText(call: ToolCallView): string {
  const { emoji, verb, detail } = feedRow(call);
  return `${emoji} ${verb} ${detail.replace(/\s+/g, " ")}`;
}
