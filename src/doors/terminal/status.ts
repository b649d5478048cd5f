import type { Component } from "@earendil-works/pi-tui";
import type { AgentEvent, SessionTotals, ToolCallView } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { compactDuration, dollars, exactDuration, percentBar, tokenCount } from "../../kit/formats.ts";
import type { WorkMode } from "../../tools/toolset/work-mode.ts";
import { feedRow, subagentActivity } from "../feed.ts";
import { cut, printable, type Theme } from "../terminal-text.ts";
import type { Turns } from "./turns.ts";

interface StatusSources {
  now(): number;
  conversation(): OpenAgent | null;
  turnSeconds(): number | null;
  readonly turns: Turns;
  showCost(): boolean;
  /** Background prompts. */
  background(): number;
}

/** The status line, fed by events. */
export class Status implements Component {
  readonly #theme: Theme;
  readonly #sources: StatusSources;
  readonly #startedAt: number;
  #totals: SessionTotals | null = null;
  #contextUsed: number | null = null;
  #compressions = 0;
  #shown = true;

  constructor(theme: Theme, sources: StatusSources) {
    this.#theme = theme;
    this.#sources = sources;
    this.#startedAt = sources.now();
  }

  follow(event: AgentEvent): void {
    if (event.type === "compressed") this.#compressions++;
    if (event.type !== "usage") return;
    this.#totals = event.totals;
    if (event.contextUsed !== null) this.#contextUsed = event.contextUsed;
  }

  /** Another conversation begins. */
  forget(): void {
    this.#totals = null;
    this.#contextUsed = null;
    this.#compressions = 0;
  }

  /** Returns whether it is shown now. */
  toggle(): boolean {
    this.#shown = !this.#shown;
    return this.#shown;
  }

  render(width: number): string[] {
    if (!this.#shown) return [];
    const { now, conversation, turnSeconds, turns, showCost, background } = this.#sources;
    const present = conversation();
    if (!present) return [this.#theme.dim(cut("connecting ...", width))];
    const { target } = present;
    const facts = {
      model: target.model,
      contextUsed: this.#contextUsed,
      contextLength: target.contextLength,
      totals: this.#totals,
      showCost: showCost(),
      sessionSeconds: (now() - this.#startedAt) / 1000,
      turnSeconds: turnSeconds(),
      busy: turns.busy,
      compressions: this.#compressions,
      background: background(),
      processes: present.processes.running,
      queued: turns.waiting.length,
      yolo: present.yolo,
      mode: present.workMode,
    };
    return [statusLine(facts, width, this.#theme)];
  }

  invalidate(): void {
    // drawn anew for every frame
  }
}

// The line under the input: what answers, how full its window is, what it cost, how long it has been.

export interface StatusFacts {
  readonly model: string;
  readonly contextUsed: number | null;
  readonly contextLength: number;
  readonly totals: SessionTotals | null;
  readonly showCost: boolean;
  readonly sessionSeconds: number;
  /** Seconds of the running turn, or of the last one. */
  readonly turnSeconds: number | null;
  readonly busy: boolean;
  readonly compressions: number;
  /** Processes the agent started in the background. */
  readonly processes: number;
  /** Background prompts. */
  readonly background?: number;
  readonly queued: number;
  readonly yolo: boolean;
  /** How far the agent may go by itself; nothing is shown for `ask`. */
  readonly mode?: WorkMode;
}

const MODEL_CELLS = 26;
const MODE_SHOWN: Readonly<Record<WorkMode, string | null>> = {
  ask: null,
  "accept-edits": "✎ accept edits",
  plan: "◔ plan",
};

export function statusLine(facts: StatusFacts, width: number, theme: Theme): string {
  const model = cut(facts.model.slice(facts.model.lastIndexOf("/") + 1), MODEL_CELLS);
  const duration = compactDuration(facts.sessionSeconds);
  const mode = MODE_SHOWN[facts.mode ?? "ask"];
  const working = mode === null ? null : theme.accent(mode);
  if (width < 52) return cut([`⚕ ${model}`, working, duration].filter((part) => part !== null).join(" · "), width);
  const percent = facts.contextUsed === null ? null : (facts.contextUsed / facts.contextLength) * 100;
  const context = percent === null ? "–" : `${Math.round(percent)}%`;
  const counters = [
    facts.compressions > 0 ? `🗜️ ${facts.compressions}` : null,
    facts.background ? `▶ ${facts.background}` : null,
    facts.processes > 0 ? `⚙ ${facts.processes}` : null,
    facts.queued > 0 ? `▶ ${facts.queued} queued` : null,
  ];
  const cost = facts.showCost ? costText(facts.totals) : null;
  const yolo = facts.yolo ? theme.warn("⚠ YOLO") : null;
  const parts =
    width < 76
      ? [`⚕ ${model}`, context, working, ...counters, duration, cost, yolo]
      : [
          `⚕ ${model}`,
          `${facts.contextUsed === null ? "–" : tokenCount(facts.contextUsed)}/${tokenCount(facts.contextLength)}`,
          `${contextColour(percent, theme)(`[${percentBar(percent ?? 0)}]`)} ${context}`,
          working,
          ...counters,
          cost,
          duration,
          facts.turnSeconds === null ? null : `${facts.busy ? "⏱" : "⏲"} ${exactDuration(facts.turnSeconds)}`,
          yolo,
        ];
  const separator = width < 76 ? " · " : " │ ";
  return cut(parts.filter((part) => part !== null).join(separator), width);
}

/** A cost that is not fully known is never shown as a plain number. */
function costText(totals: SessionTotals | null): string {
  if (totals === null || totals.apiCalls === 0) return "$0.00";
  if (totals.costStatus === "included") return "included";
  if (totals.costUsd === null) return "cost unknown";
  return totals.costStatus === "unknown" ? `≥ ${dollars(totals.costUsd)} (partly unknown)` : dollars(totals.costUsd);
}

function contextColour(percent: number | null, theme: Theme): (text: string) => string {
  if (percent === null) return theme.dim;
  if (percent < 50) return theme.ok;
  if (percent <= 80) return theme.warn;
  return percent < 95 ? theme.error : (text) => theme.bold(theme.error(text));
}

// The one line that moves while the agent works: what it is doing, and for how long.

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS = 100;

interface ActivityOptions {
  now(): number;
  onFrame(): void;
  /** Esc would stop what is shown here, rather than close something else. */
  stoppable(): boolean;
}

export class Activity implements Component {
  readonly #theme: Theme;
  readonly #now: () => number;
  readonly #onFrame: () => void;
  readonly #stoppable: () => boolean;
  #doing: { readonly what: string; readonly since: number } | null = null;
  #turn: { readonly startedAt: number } | null = null;
  #lastTurnSeconds: number | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(theme: Theme, options: ActivityOptions) {
    this.#theme = theme;
    this.#now = options.now;
    this.#onFrame = options.onFrame;
    this.#stoppable = options.stoppable;
  }

  /** Seconds of the running turn, or of the last one. */
  get turnSeconds(): number | null {
    return this.#turn ? (this.#now() - this.#turn.startedAt) / 1000 : this.#lastTurnSeconds;
  }

  follow(event: AgentEvent): void {
    switch (event.type) {
      case "turn_start":
        this.#turn = { startedAt: this.#now() };
        return this.#show("thinking");
      case "tool_start":
        return this.#show(runningText(event.call));
      case "tool_progress":
        return this.#show(event.text ? `${runningText(event.call)} · ${event.text}` : runningText(event.call));
      case "subagent": {
        const doing = subagentActivity(event);
        if (doing !== null) this.#show(doing);
        return;
      }
      case "tool_end":
      case "step":
      case "thinking":
        return this.#show("thinking");
      case "text":
        return this.#show("writing");
      case "status":
        // Before the turn begins, the wait for another process counts.
        if (event.kind === "waiting") this.#turn ??= { startedAt: this.#now() };
        if (event.kind === "waiting" || event.kind === "lifecycle") this.#show(event.message);
        return;
      case "done":
        this.#lastTurnSeconds = this.turnSeconds;
        this.#turn = null;
        return this.stop();
    }
  }

  stop(): void {
    this.#doing = null;
    this.pause();
  }

  /** Nothing moves until the next event. */
  pause(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  render(width: number): string[] {
    if (this.#doing === null) return [];
    const frame = FRAMES[Math.floor(this.#now() / FRAME_MS) % FRAMES.length] ?? "";
    const seconds = Math.floor((this.#now() - this.#doing.since) / 1000);
    const facts = [...(seconds >= 2 ? [compactDuration(seconds)] : []), ...(this.#stoppable() ? ["esc to stop"] : [])];
    const elapsed = facts.length === 0 ? "" : ` (${facts.join(" · ")})`;
    const what = cut(this.#doing.what, Math.max(8, width - 4 - elapsed.length));
    return ["", cut(`${this.#theme.accent(frame)} ${this.#theme.dim(what + elapsed)}`, width)];
  }

  invalidate(): void {
    // nothing is kept between frames
  }

  #show(what: string): void {
    const line = printable(what).replace(/\s+/g, " ").trim();
    if (this.#doing?.what !== line) this.#doing = { what: line, since: this.#now() };
    this.#timer ??= setInterval(this.#onFrame, FRAME_MS);
  }
}

function runningText(call: ToolCallView): string {
  const { emoji, verb, detail } = feedRow(call);
  return `${emoji} ${verb} ${detail.slice(0, 500)}`;
}

// The ways a process is ended from outside, and by its own mistakes. Whichever it is, the terminal is given back first.

const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
export const HANGUP = CODES.SIGHUP;
type Watched = keyof typeof CODES;

interface ProcessEnds {
  /** Ask the agent to stop and leave with this code. */
  onSignal(code: number): void;
  /** The terminal must be usable when this returns; the process ends right after. Resolves when the log is written. */
  onCrash(error: unknown): Promise<void>;
}

/** Returns how to stop watching. A second signal ends the process at once; a hang-up comes in many pieces and counts once. */
export function watchProcess({ onSignal, onCrash }: ProcessEnds): () => void {
  let asked = false;
  const end = (code: number) => {
    if (asked && code !== HANGUP) process.exit(code);
    if (!asked) onSignal(code);
    asked = true;
  };
  const onEnd = (signal: Watched) => end(CODES[signal]);
  const onHangup = () => end(HANGUP);
  const onUncaught = (error: unknown) => {
    // A terminal that is gone cannot be written to; that is a hang-up, not a defect.
    if (isGone(error)) return onHangup();
    void onCrash(error).finally(() => process.exit(1));
  };
  const signals = Object.keys(CODES) as Watched[]; // the keys just written
  for (const signal of signals) process.on(signal, onEnd);
  process.stdin.on("end", onHangup);
  process.on("uncaughtException", onUncaught);
  return () => {
    for (const signal of signals) process.off(signal, onEnd);
    process.stdin.off("end", onHangup);
    process.off("uncaughtException", onUncaught);
  };
}

const isGone = (error: unknown) => {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException; // read only
  return code === "EIO" && (syscall === "read" || syscall === "write");
};
