// `/insights` and `hermes insights`: how the agent was used, in numbers.
import { said, t } from "../home/language/words.ts";
import { compactDuration, dollars, padWide, plural, tokenCount } from "../kit/formats.ts";
import type { InsightGroup, Insights, InsightTotals, NotableSession } from "../sessions/insights.ts";
import type { CommandDefinition } from "./context.ts";

export const DEFAULT_DAYS = 30;
const DAY = 86_400;
const BAR = 20;
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

const insights: CommandDefinition = {
  name: "insights",
  description: "show usage statistics",
  category: "Info",
  argsHint: "[days]",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const days = args === "" ? DEFAULT_DAYS : Number(args);
    if (!Number.isInteger(days) || days < 1) return ctx.warn(`/insights takes a number of days, not "${args}".`);
    ctx.say(insightsText(await ctx.store.insights({ since: ctx.now() - days * DAY }), days));
  },
};

export const INSIGHT_COMMANDS: readonly CommandDefinition[] = [insights];

/** Lines of at most 80 cells. */
export function insightsText(found: Insights, days: number): string {
  const period = days === 1 ? "the last day" : `the last ${days} days`;
  if (found.totals.sessions === 0) return `No conversations in ${period}.`;
  const blocks = [
    `Insights for ${period}`,
    overview(found.totals),
    groups("Models", found.models),
    groups("Sources", found.sources),
    ranking(
      "Tools",
      found.tools.map(({ name, calls }) => [name, calls]),
    ),
    ranking(
      "Weekdays",
      WEEKDAYS.map((name, day) => [name, found.byWeekday[day] ?? 0]),
    ),
    hours(found.byHour),
    notable(found.notable),
  ];
  return blocks.filter((block) => block !== "").join("\n\n");
}

function overview(totals: InsightTotals): string {
  const unknown = totals.unknownCostSessions;
  const rows: readonly (readonly [string, string])[] = [
    ["Conversations", String(totals.sessions)],
    [
      "Messages",
      t("{count} ({own} from you, {calls})", {
        count: totals.messages,
        own: totals.userMessages,
        calls: said(plural(totals.toolCalls, "tool call")),
      }),
    ],
    ["Active time", compactDuration(totals.activeSeconds)],
    [
      "Tokens",
      t("{input} input, {read} cache read, {write} cache write", {
        input: tokenCount(totals.inputTokens),
        read: tokenCount(totals.cacheReadTokens),
        write: tokenCount(totals.cacheWriteTokens),
      }),
    ],
    [
      "",
      t("{output} output, of which {reasoning} reasoning", {
        output: tokenCount(totals.outputTokens),
        reasoning: tokenCount(totals.reasoningTokens),
      }),
    ],
    [
      "Cost",
      `${dollars(totals.costUsd)}${unknown > 0 ? ` ${t("+ unknown ({what})", { what: said(plural(unknown, "conversation")) })}` : ""}`,
    ],
  ];
  return rows.map(([name, value]) => `  ${padWide(said(name), 15)}${value}`).join("\n");
}

function groups(title: string, rows: readonly InsightGroup[]): string {
  if (rows.length === 0) return "";
  const lines = rows
    .slice(0, 10)
    .map(({ name, sessions, messages, tokens, ...cost }) =>
      [
        `  ${shortened(name, 32).padEnd(32)}`,
        String(sessions).padStart(9),
        String(messages).padStart(9),
        tokenCount(tokens).padStart(8),
        costText(cost).padStart(9),
      ].join(" "),
    );
  const head = `  ${"".padEnd(32)} ${"sessions".padStart(9)} ${"messages".padStart(9)} ${"tokens".padStart(8)} ${"cost".padStart(9)}`;
  return [title + head.slice(title.length), ...lines].join("\n");
}

/** What nobody knows is never shown as 0. */
function costText({ costUsd, unknownCostSessions }: Pick<InsightGroup, "costUsd" | "unknownCostSessions">): string {
  if (unknownCostSessions === 0) return dollars(costUsd);
  return costUsd === 0 ? "unknown" : `${dollars(costUsd)}+?`;
}

function ranking(title: string, rows: readonly (readonly [string, number])[]): string {
  const most = Math.max(0, ...rows.map(([, count]) => count));
  if (most === 0) return "";
  const lines = rows.map(
    ([name, count]) =>
      `  ${padWide(shortened(said(name), 24), 24)} ${String(count).padStart(6)} ${"█".repeat(Math.ceil((count / most) * BAR))}`,
  );
  return [title, ...lines.map((line) => line.trimEnd())].join("\n");
}

/** One row of blocks: 0 to 23 o'clock. */
function hours(counts: readonly number[]): string {
  const most = Math.max(0, ...counts);
  if (most === 0) return "";
  const levels = " ▁▂▃▄▅▆▇█";
  const bars = counts.map((count) => `${levels[Math.ceil((count / most) * (levels.length - 1))]} `);
  const scale = counts.map((_, hour) => (hour % 6 === 0 ? String(hour).padEnd(2) : "  "));
  return ["Hours of the day", `  ${bars.join("").trimEnd()}`, `  ${scale.join("").trimEnd()}`].join("\n");
}

function notable(sessions: readonly NotableSession[]): string {
  if (sessions.length === 0) return "";
  const value = ({ why, value }: NotableSession) =>
    why === "longest" ? compactDuration(value) : why === "most tokens" ? tokenCount(value) : String(value);
  const lines = sessions.map(
    (one) =>
      `  ${padWide(said(one.why), 16)} ${value(one).padStart(7)}  ${one.id}${one.title ? `  ${shortened(one.title, 28)}` : ""}`,
  );
  return ["Notable conversations", ...lines].join("\n");
}

const shortened = (text: string, most: number) => {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
};
