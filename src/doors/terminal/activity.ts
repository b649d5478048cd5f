// The one line that moves while the agent works: what it is doing, and for how long.
import type { Component } from "@earendil-works/pi-tui";
import type { AgentEvent, ToolCallView } from "../../agent/events.ts";
import { compactDuration } from "../../kit/formats.ts";
import { feedRow } from "../feed.ts";
import { subagentActivity } from "../subagent-feed.ts";
import { printable } from "./printable.ts";
import type { Theme } from "./theme.ts";
import { cut } from "./width.ts";

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS = 100;

export class Activity implements Component {
  readonly #theme: Theme;
  readonly #now: () => number;
  readonly #onFrame: () => void;
  #doing: { readonly what: string; readonly since: number } | null = null;
  #turn: { readonly startedAt: number } | null = null;
  #lastTurnSeconds: number | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(theme: Theme, now: () => number, onFrame: () => void) {
    this.#theme = theme;
    this.#now = now;
    this.#onFrame = onFrame;
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
    const elapsed = seconds >= 2 ? ` (${compactDuration(seconds)})` : "";
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
