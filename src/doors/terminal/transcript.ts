// Events -> blocks on the screen. Knows nothing of keys, turns or sessions.

import { type Component, Container, Spacer } from "@earendil-works/pi-tui";
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import type { Config } from "../../home/config/schema.ts";
import { said } from "../../home/language/words.ts";
import { plural } from "../../kit/formats.ts";
import { isRefusedByUser, recoveryLine, subagentLine } from "../feed.ts";
import { printable, type Theme } from "../terminal-text.ts";
import type { ChatRequest } from "../typed-input.ts";
import { AnswerBlock, type AnswerStyle } from "./answer-block.ts";
import { CutLines, Lines, Rule, Withdrawn } from "./blocks.ts";
import { diffLines, diffOf } from "./diff-view.ts";
import { loadCodeColours } from "./markdown.ts";
import { type FinishedCall, ToolBlock } from "./tool-block.ts";

type Details = "hidden" | "collapsed" | "expanded";

export interface TranscriptSettings {
  readonly answerStyle: AnswerStyle;
  readonly toolProgress: "off" | "new" | "all" | "verbose" | "log";
  readonly previewLength: number;
  readonly details: { readonly tools: Details; readonly thinking: Details };
  readonly interimText: boolean;
  readonly inlineDiffs: boolean;
  /** How pictures are found; null = they are not shown. */
  readonly pictures: { readonly cwd: string; readonly filesAreHere: boolean } | null;
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
      details: detailsOf(display),
      interimText: display.interim_assistant_messages,
      inlineDiffs: display.inline_diffs,
      pictures: display.inline_pictures
        ? { cwd: request.cwd, filesAreHere: areFilesHere(request.home.config()) }
        : null,
      streaming: display.streaming,
      timestamp: display.timestamps ? clockTime(now()) : null,
      echo: display.user_message_preview,
    };
  };
}

function detailsOf({ details_mode, sections, show_reasoning }: Config["display"]): TranscriptSettings["details"] {
  const mode = (own: Details | "auto", otherwise: Details): Details =>
    own !== "auto" ? own : details_mode !== "auto" ? details_mode : otherwise;
  return {
    tools: mode(sections.tools, "collapsed"),
    thinking: mode(sections.thinking, show_reasoning ? "expanded" : "hidden"),
  };
}

const areFilesHere = ({ terminal: { backend } }: Config) => ["local", "auto", "bubblewrap"].includes(backend);

function clockTime(now: number): string {
  const at = new Date(now);
  return `[${String(at.getHours()).padStart(2, "0")}:${String(at.getMinutes()).padStart(2, "0")}]`;
}

/** Calls that can be opened again, and how much of each is kept for it. */
const KEPT_CALLS = 60;
const KEPT_CHARS = 200_000;
const SHOWS_PICTURES: ReadonlySet<string> = new Set(["image_generate", "browser_vision", "vision_analyze"]);

export class Transcript {
  readonly view = new Container();
  readonly #theme: Theme;
  readonly #settings: () => TranscriptSettings;
  #answer: AnswerBlock | null = null;
  #thinking: AnswerBlock | null = null;
  #lastTool: string | null = null;
  #calls: FinishedCall[] = [];
  #thought = "";
  /** Said by a key for this session; null = as configured. */
  #showsThinking: boolean | null = null;
  /** Turns that are still part of the conversation, and the blocks of each. */
  #turns: Component[][] = [];
  #inTurn = false;
  /** The last thing added was a line of the feed or a note: such lines stand together. */
  #inFeed = false;

  constructor(theme: Theme, settings: () => TranscriptSettings) {
    this.#theme = theme;
    this.#settings = settings;
  }

  user(text: string): void {
    this.#gap();
    this.#turns.push([]);
    this.#inTurn = true;
    const { echo, timestamp } = this.#settings();
    const stamp = timestamp === null ? "" : `${timestamp} `;
    this.#add(new Lines(`${stamp}${this.#theme.look.promptSymbol} ${userEcho(text, echo)}`, this.#theme.user));
  }

  /** A command as it was typed, so that its answer makes sense later. */
  command(text: string): void {
    this.#gap();
    this.view.addChild(
      new Lines(`${this.#theme.look.promptSymbol} ${userEcho(text, this.#settings().echo)}`, this.#theme.dim),
    );
  }

  /** The last turns no longer count: what of them can still be redrawn is struck out. `isDrawn`: lines from here on are on the screen. */
  takeBack(turns: number, firstOnScreen: (block: Component) => number): void {
    for (const block of this.#turns.splice(-turns).flat()) {
      const at = this.view.children.indexOf(block);
      const from = firstOnScreen(block);
      if (at >= 0 && from !== Number.POSITIVE_INFINITY)
        this.view.children[at] = new Withdrawn(block, from, this.#theme);
    }
  }

  /** Calls that were made, oldest first; with their results. */
  get calls(): readonly FinishedCall[] {
    return this.#calls;
  }

  /** What the model thought in this turn, or in the last one. */
  get thought(): string {
    return this.#thought;
  }

  /** Shows or hides thinking from now on; returns whether it is shown. */
  toggleThinking(): boolean {
    this.#showsThinking = !this.#thinks;
    if (this.#showsThinking && this.#thought !== "" && this.#thinking === null) this.#think(this.#thought);
    if (!this.#showsThinking) this.#thinking = null;
    return this.#showsThinking;
  }

  get #thinks(): boolean {
    const { details, toolProgress } = this.#settings();
    return this.#showsThinking ?? (details.thinking === "expanded" || toolProgress === "verbose");
  }

  info(text: string): void {
    this.#gap();
    this.view.addChild(new Lines(said(text)));
  }

  /** A block that its owner goes on changing, such as the output of a shell line. */
  add(block: Component): void {
    this.#gap();
    this.view.addChild(block);
  }

  dim(text: string): void {
    this.#note(new Lines(said(text), this.#theme.dim));
  }

  /** A line as those of the feed. */
  feed(text: string): void {
    this.dim(`${this.#theme.look.toolPrefix} ${text}`);
  }

  warn(text: string): void {
    this.#note(new Lines(`⚠ ${said(text)}`, this.#theme.warn));
  }

  clear(): void {
    this.view.clear();
    this.#turns = [];
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
    this.#add(new Rule(printable(label), this.#theme.dim));
    const block = this.#add(new AnswerBlock(this.#settings().answerStyle, this.#theme));
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
      case "turn_start":
        this.#thought = "";
        return;
      case "thinking":
        this.#thought = (this.#thought + event.delta).slice(-KEPT_CHARS);
        if (this.#thinks) this.#think(event.delta);
        else if (settings.details.thinking === "collapsed") this.#thoughtOnce();
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
        this.#answer?.end();
        this.#answer = null;
        this.#thinking = null;
        this.#lastTool = null;
        this.#end(event.outcome);
        this.#inTurn = false;
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
    this.#add(
      new Rule([this.#theme.look.answerLabel, timestamp].filter((part) => part).join(" "), this.#theme.answerRule),
    );
    return this.#add(new AnswerBlock(answerStyle, this.#theme));
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
      this.#add(new Rule("thinking", this.#theme.dim));
      this.#thinking = this.#add(new AnswerBlock("raw", this.#theme, this.#theme.dim));
    }
    this.#thinking.append(delta);
  }

  /** One line for a stretch of thinking. */
  #thoughtOnce(): void {
    if (this.#lastTool === "thinking") return;
    this.#lastTool = "thinking";
    this.feed("💭 thinking  Ctrl+T shows it");
  }

  #tool(event: FinishedCall): void {
    const { call, result } = event;
    const { toolProgress, inlineDiffs, previewLength, details } = this.#settings();
    const kept = result.length > KEPT_CHARS ? { ...event, result: result.slice(0, KEPT_CHARS) } : event;
    this.#calls = [...this.#calls.slice(1 - KEPT_CALLS), kept];
    const repeated = call.name === this.#lastTool;
    this.#lastTool = call.name;
    const isOpen = toolProgress === "verbose" || details.tools === "expanded";
    if (toolProgress === "off" || toolProgress === "log" || details.tools === "hidden") return;
    // The answer to the question said it already.
    if ((toolProgress !== "new" || !repeated) && (isOpen || !isRefusedByUser(result)))
      this.#note(new ToolBlock(kept, { theme: this.#theme, detailChars: previewLength, open: isOpen }));
    const diff = inlineDiffs ? diffOf(event) : null;
    if (diff !== null) this.#note(new CutLines((width) => diffLines(diff, this.#theme, width)));
    if (SHOWS_PICTURES.has(call.name)) void this.#picture(event);
  }

  /** Its place is taken at once; what is drawn there comes when it is read. */
  async #picture(event: FinishedCall): Promise<void> {
    const { pictures } = this.#settings();
    if (pictures === null) return;
    const place = new Container();
    this.#note(place);
    const { pictureOf } = await import("./pictures.ts");
    const picture = await pictureOf(event, { ...pictures, theme: this.#theme });
    if (picture) place.addChild(picture);
  }

  #child(event: Extract<AgentEvent, { type: "subagent" }>): void {
    const { toolProgress } = this.#settings();
    if (toolProgress === "off" || toolProgress === "log") return;
    const everyCall = toolProgress === "verbose";
    if (subagentLine(event, { everyCall }) === null) return;
    const failed = event.phase === "complete" && event.status !== "completed";
    const style = failed ? this.#theme.warn : this.#theme.dim;
    const line = (width: number) => [
      style(printable(subagentLine(event, { width, everyCall, prefix: this.#theme.look.toolPrefix }) ?? "")),
    ];
    this.#note(new CutLines(line));
  }

  #note(block: Component): void {
    if (!this.#inFeed) this.#gap();
    this.#inFeed = true;
    this.#add(block);
  }

  #gap(): void {
    this.#inFeed = false;
    if (this.view.children.length > 0) this.view.addChild(new Spacer(1));
  }

  #add<Block extends Component>(block: Block): Block {
    this.view.addChild(block);
    if (this.#inTurn) this.#turns.at(-1)?.push(block);
    return block;
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
    ...(between > 0 ? [said(`... ${plural(between, "more line")} ...`)] : []),
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
