import type { Component } from "@earendil-works/pi-tui";
import type { AgentEvent, SessionTotals } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { statusLine } from "./status-line.ts";
import type { Theme } from "./theme.ts";
import type { Turns } from "./turns.ts";
import { cut } from "./width.ts";

export interface StatusSources {
  now(): number;
  conversation(): OpenAgent | null;
  turnSeconds(): number | null;
  readonly turns: Turns;
  showCost(): boolean;
  /** Prompts that run beside the conversation. */
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
    };
    return [statusLine(facts, width, this.#theme)];
  }

  invalidate(): void {
    // drawn anew for every frame
  }
}
