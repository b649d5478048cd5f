// The line under the input: what answers, how full its window is, what it cost, how long it has been.
import type { SessionTotals } from "../../agent/events.ts";
import { compactDuration, dollars, exactDuration, percentBar, tokenCount } from "../../kit/formats.ts";
import type { Theme } from "./theme.ts";
import { cut } from "./width.ts";

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
  /** Prompts that run beside the conversation. */
  readonly background?: number;
  readonly queued: number;
  readonly yolo: boolean;
}

const MODEL_CELLS = 26;

export function statusLine(facts: StatusFacts, width: number, theme: Theme): string {
  const model = cut(facts.model.slice(facts.model.lastIndexOf("/") + 1), MODEL_CELLS);
  const duration = compactDuration(facts.sessionSeconds);
  if (width < 52) return cut(`⚕ ${model} · ${duration}`, width);
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
      ? [`⚕ ${model}`, context, ...counters, duration, cost, yolo]
      : [
          `⚕ ${model}`,
          `${facts.contextUsed === null ? "–" : tokenCount(facts.contextUsed)}/${tokenCount(facts.contextLength)}`,
          `${contextColour(percent, theme)(`[${percentBar(percent ?? 0)}]`)} ${context}`,
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
export function costText(totals: SessionTotals | null): string {
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
