import type { Component } from "@earendil-works/pi-tui";
import type { AgentEvent, SessionTotals, ToolCallView } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { currentBranch } from "../../home/git-pointer.ts";
import { said, t } from "../../home/language/words.ts";
import { compactDuration, dollars, exactDuration, percentBar, tokenCount } from "../../kit/formats.ts";
import type { WorkMode } from "../../tools/toolset/work-mode.ts";
import { cutLeft, feedRow, subagentActivity } from "../feed.ts";
import { cellWidth, cut, printable, type Theme } from "../terminal-text.ts";
import type { Turns } from "./turns.ts";

interface StatusSources {
  now(): number;
  conversation(): OpenAgent | null;
  turnSeconds(): number | null;
  readonly turns: Turns;
  showCost(): boolean;
  /** Where the conversation was started, and how messages write it. */
  readonly folder: { readonly path: string; readonly shown: string };
  /** Background prompts. */
  background(): number;
  /** How far the standing goal is. */
  goal(): string | null;
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
  #branch: { readonly name: string | null; readonly at: number } = { name: null, at: Number.NEGATIVE_INFINITY };

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

  /** Another conversation begins. An earlier one is as full as its newest request was. */
  async begin({ store, agent, history }: Pick<OpenAgent, "store" | "agent" | "history">): Promise<void> {
    this.#totals = null;
    this.#contextUsed = null;
    this.#compressions = 0;
    if (history.length === 0) return;
    const last = (await store.calls(agent.sessionId)).findLast(
      ({ task, inputTokens }) => task === "main" && inputTokens !== null,
    );
    if (last) this.#contextUsed ??= sum(last.inputTokens, last.cacheReadTokens, last.cacheWriteTokens);
  }

  /** Returns whether it is shown now. */
  toggle(): boolean {
    this.#shown = !this.#shown;
    return this.#shown;
  }

  render(width: number): string[] {
    if (!this.#shown) return [];
    const { now, conversation, turnSeconds, turns, showCost, background, folder, goal } = this.#sources;
    const present = conversation();
    if (!present) return [this.#theme.dim(cut(t("connecting ..."), width))];
    const { target } = present;
    const facts = {
      model: printable(target.model),
      contextUsed: this.#contextUsed,
      contextLength: target.contextLength,
      totals: this.#totals,
      showCost: showCost(),
      sessionSeconds: (now() - this.#startedAt) / 1000,
      turnSeconds: turnSeconds(),
      busy: turns.busy,
      compressions: this.#compressions,
      background: background(),
      goal: goal(),
      processes: present.processes.running,
      queued: turns.waiting.length,
      yolo: present.yolo,
      mode: present.workMode,
      folder: folder.shown,
      branch: this.#branchNow(),
    };
    return [statusLine(facts, width, this.#theme)];
  }

  invalidate(): void {
    // drawn anew for every frame
  }

  /** Branches change seldom, frames are many. */
  #branchNow(): string | null {
    const now = this.#sources.now();
    if (now - this.#branch.at > BRANCH_MS) this.#branch = { name: currentBranch(this.#sources.folder.path), at: now };
    return this.#branch.name;
  }
}

const BRANCH_MS = 2000;

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
  /** How far the standing goal is. */
  readonly goal?: string | null;
  readonly queued: number;
  readonly yolo: boolean;
  /** How far the agent may go by itself; nothing is shown for `ask`. */
  readonly mode?: WorkMode;
  readonly folder?: string;
  readonly branch?: string | null;
}

const MODEL_CELLS = 26;
const MODE_SHOWN: Readonly<Record<WorkMode, string | null>> = {
  ask: null,
  "accept-edits": "✎ accept edits",
  plan: "◔ plan",
};

/** Less than this of a folder tells nothing. */
const LEAST_PLACE = 8;

export function statusLine(facts: StatusFacts, width: number, theme: Theme): string {
  const model = theme.statusModel(`⚕ ${cut(facts.model.slice(facts.model.lastIndexOf("/") + 1), MODEL_CELLS)}`);
  const plain = (text: string | null) => (text === null ? null : theme.status(text));
  const duration = theme.status(compactDuration(facts.sessionSeconds));
  const mode = MODE_SHOWN[facts.mode ?? "ask"];
  const working = mode === null ? null : theme.accent(said(mode));
  if (width < 52) return filled([model, working, duration], " · ", width, theme);
  const percent = facts.contextUsed === null ? null : (facts.contextUsed / facts.contextLength) * 100;
  const context = percent === null ? "–" : `${Math.round(percent)}%`;
  const counters = [
    facts.goal ?? null,
    facts.compressions > 0 ? `🗜️ ${facts.compressions}` : null,
    facts.background ? `▶ ${facts.background}` : null,
    facts.processes > 0 ? `⚙ ${facts.processes}` : null,
    facts.queued > 0 ? `▶ ${t("{count} queued", { count: facts.queued })}` : null,
  ].map(plain);
  const cost = plain(facts.showCost ? costText(facts.totals) : null);
  const yolo = facts.yolo ? theme.warn("⚠ YOLO") : null;
  if (width < 76)
    return withPlace([model, plain(context), working, ...counters, duration, cost, yolo], " · ", facts, width, theme);
  const used = facts.contextUsed === null ? "–" : tokenCount(facts.contextUsed);
  const parts = [
    model,
    theme.status(`${used}/${tokenCount(facts.contextLength)}`),
    `${contextColour(percent, theme)(`[${percentBar(percent ?? 0)}]`)}${theme.status(` ${context}`)}`,
    working,
    ...counters,
    cost,
    duration,
    facts.turnSeconds === null ? null : theme.status(`${facts.busy ? "⏱" : "⏲"} ${exactDuration(facts.turnSeconds)}`),
    yolo,
  ];
  return withPlace(parts, " │ ", facts, width, theme);
}

type Parts = readonly (string | null)[];

/** Folder and branch take what room there is: the branch is the last to go, and of a folder its end says most. */
function withPlace(parts: Parts, separator: string, facts: StatusFacts, width: number, theme: Theme): string {
  const taken = cellWidth([...parts.filter((part) => part !== null), ""].join(separator));
  const room = width - taken;
  const branch = facts.branch ? `⎇ ${cut(printable(facts.branch), 30)}` : "";
  const folderRoom = room - (branch === "" ? 0 : cellWidth(branch) + 1);
  const folder =
    facts.folder === undefined || folderRoom < LEAST_PLACE ? "" : cutLeft(printable(facts.folder), folderRoom);
  const place = [folder, cellWidth(branch) <= room ? branch : ""].filter((part) => part !== "").join(" ");
  return filled([...parts, place === "" ? null : theme.statusDim(place)], separator, width, theme);
}

/** A bar with a background of its own reaches to the edge. */
function filled(parts: Parts, separator: string, width: number, theme: Theme): string {
  const line = cut(parts.filter((part) => part !== null).join(theme.statusDim(separator)), width);
  const rest = theme.status(" ".repeat(Math.max(0, width - cellWidth(line))));
  return /\u001b\[(?:[\d;]{0,40};)?(?:4[0-8]|10[0-7])[;m]/.test(rest) ? line + rest : line;
}

/** A cost that is not fully known is never shown as a plain number. */
function costText(totals: SessionTotals | null): string {
  if (totals === null || totals.apiCalls === 0) return "$0.00";
  if (totals.costStatus === "included") return t("included");
  if (totals.costUsd === null) return t("cost unknown");
  return totals.costStatus === "unknown"
    ? t("≥ {cost} (partly unknown)", { cost: dollars(totals.costUsd) })
    : dollars(totals.costUsd);
}

const sum = (...counts: (number | null)[]) => counts.reduce<number>((total, count) => total + (count ?? 0), 0);

function contextColour(percent: number | null, theme: Theme): (text: string) => string {
  if (percent === null) return theme.statusDim;
  if (percent < 50) return theme.contextGood;
  if (percent <= 80) return theme.contextWarn;
  return percent < 95 ? theme.contextBad : (text) => theme.bold(theme.contextCritical(text));
}

// The one line that moves while the agent works: what it is doing, and for how long.

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS = 100;

/** Faces and verbs of a skin or personality. */
const FACE_MS = 3000;
const THINKING = "thinking";

interface Doing {
  readonly what: string;
  readonly since: number;
}

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
  #doing: Doing | null = null;
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
        return this.#show(THINKING);
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
        return this.#show(THINKING);
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
    const frame = this.#frame(this.#doing);
    const seconds = Math.floor((this.#now() - this.#doing.since) / 1000);
    const facts = [
      ...(seconds >= 2 ? [compactDuration(seconds)] : []),
      ...(this.#stoppable() ? [t("esc to stop")] : []),
    ];
    const elapsed = facts.length === 0 ? "" : ` (${facts.join(" · ")})`;
    const what = cut(this.#words(this.#doing), Math.max(8, width - 3 - cellWidth(frame) - cellWidth(elapsed)));
    return ["", cut(`${this.#theme.accent(frame)} ${this.#theme.dim(what + elapsed)}`, width)];
  }

  invalidate(): void {
    // nothing is kept between frames
  }

  #frame({ what }: Doing): string {
    const { thinkingFaces, waitingFaces, wings } = this.#theme.look;
    const faces = what === THINKING ? thinkingFaces : waitingFaces;
    const wheel = FRAMES[Math.floor(this.#now() / FRAME_MS) % FRAMES.length] ?? "";
    if (faces.length === 0) return wheel;
    const turn = Math.floor(this.#now() / FACE_MS);
    const [left, right] = wings[turn % Math.max(1, wings.length)] ?? ["", ""];
    return `${wheel} ${left}${faces[turn % faces.length]}${right}`;
  }

  #words({ what, since }: Doing): string {
    const { thinkingVerbs } = this.#theme.look;
    if (what !== THINKING || thinkingVerbs.length === 0) return said(what);
    return thinkingVerbs[Math.floor((this.#now() - since) / FACE_MS) % thinkingVerbs.length] ?? what;
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
