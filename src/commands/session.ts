// Commands about this conversation.
import { said, t } from "../home/language/words.ts";
import {
  compactDuration,
  contextSize,
  dollars,
  exactDuration,
  padWide,
  tokenCount,
  wideLength,
} from "../kit/formats.ts";
import { type HistoryMessage, textOf } from "../llm/messages.ts";
import type { RateLimit, RateLimits } from "../llm/usage.ts";
import { placeOf } from "../llm/wire.ts";
import { addUsage } from "../sessions/ledger.ts";
import type { Session, UsageTotals } from "../sessions/store.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";

const status: CommandDefinition = {
  name: "status",
  description: "show the status of this conversation",
  category: "Session",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { agent, target } = ctx.conversation;
    const session = await ctx.store.get(agent.sessionId);
    const name = session?.title ?? agent.sessionId.slice(0, 8);
    ctx.say(
      [
        `Session:  ${agent.sessionId}`,
        `Title:    ${session?.title ?? "—"}`,
        `Home:     ${ctx.home.display(ctx.home.paths.dir)} (profile ${ctx.home.paths.profile})`,
        `Model:    ${target.model} (${placeOf(target)})`,
        `Commands: ${ctx.conversation.place}`,
        ...(session ? sessionLines(session, ctx) : []),
        `Running:  ${said(ctx.busy ? "yes" : "no")}`,
        ...(ctx.chat ? [`Waiting:  ${ctx.waiting.length}`, `Chats:    ${connected(ctx.chat)}`] : []),
        ...(ctx.conversation.yolo ? ["YOLO:     on"] : []),
        "",
        ...statusRecap(session ? await ctx.store.load(session.id) : [], name),
      ].join("\n"),
    );
  },
};

const connected = ({ platforms }: NonNullable<CommandContext["chat"]>) =>
  platforms.map(({ name, state }) => (state === "connected" ? name : `${name} (${state})`)).join(", ");

function sessionLines(session: Session, ctx: CommandContext): string[] {
  const ago = (seconds: number) => `${compactDuration(Math.max(0, ctx.now() - seconds))} ago`;
  const tokens = session.inputTokens + session.cacheReadTokens + session.cacheWriteTokens + session.outputTokens;
  return [
    `Created:  ${ago(session.startedAt)}`,
    ...(session.lastActivityAt === null ? [] : [`Active:   ${ago(session.lastActivityAt)}`]),
    `Messages: ${session.messageCount}`,
    `Tokens:   ${tokenCount(tokens)}`,
  ];
}

const usage: CommandDefinition = {
  name: "usage",
  description: "show tokens and cost of this conversation",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { agent } = ctx.conversation;
    const rows = await ctx.store.usage({ sessionId: agent.sessionId, by: "purpose" });
    if (rows.size === 0) return ctx.say("No requests sent yet.");
    const session = await ctx.store.get(agent.sessionId);
    const sessions = await ctx.store.conversation(agent.sessionId);
    const begun = await ctx.store.get(sessions[0] ?? agent.sessionId);
    const known = agent.rateLimits;
    const age = known ? Math.max(0, ctx.clock.now() - known.at) / 1000 : 0;
    ctx.say(
      [
        ...(known ? [...rateLimitLines(known.limits, age), ""] : []),
        ...totalLines(
          [...rows.values()].reduce(addUsage),
          session && { ...session, startedAt: begun?.startedAt ?? session.startedAt },
          ctx,
        ),
        fact("Compressions", sessions.length - 1),
        ...engineLines(agent.engineStatus),
        "",
        ...usageTable(rows, ctx.columns?.() ?? Number.POSITIVE_INFINITY),
      ].join("\n"),
    );
  },
};

function totalLines(totals: UsageTotals, session: Session | null, ctx: CommandContext): string[] {
  const { agent, target } = ctx.conversation;
  const used = agent.lastOutcome?.lastPromptTokens ?? null;
  const prompt = totals.inputTokens + totals.cacheReadTokens + totals.cacheWriteTokens;
  const context =
    used === null
      ? "not known yet"
      : `${tokenCount(used)} / ${contextSize(target.contextLength)} (${Math.round((used / target.contextLength) * 100)}%)`;
  const rows: readonly (readonly [label: string, value: string | number])[] = [
    ["Model", `${target.model} (${placeOf(target)})`],
    ["Input", tokenCount(totals.inputTokens)],
    ["Cache read", tokenCount(totals.cacheReadTokens)],
    ["Cache write", tokenCount(totals.cacheWriteTokens)],
    [
      "Output",
      t("{count} ({reasoning} of it reasoning)", {
        count: tokenCount(totals.outputTokens),
        reasoning: tokenCount(totals.reasoningTokens),
      }),
    ],
    ["Prompt total", tokenCount(prompt)],
    ["Completion", tokenCount(totals.outputTokens)],
    ["Total", tokenCount(prompt + totals.outputTokens)],
    ["API calls", totals.calls],
    ...(session ? [["Duration", exactDuration(Math.max(0, ctx.now() - session.startedAt))] as const] : []),
    ["Cost", costOf(totals)],
    ["Context", said(context)],
    ...(session ? [["Messages", session.messageCount] as const] : []),
  ];
  return rows.map(([label, value]) => fact(label, value));
}

const fact = (label: string, value: string | number) => `${padWide(said(`${label}:`), 16)}${value}`;

/** The context engine, once it had something to do. */
function engineLines(status: CommandContext["conversation"]["agent"]["engineStatus"]): string[] {
  if (!status) return [];
  // Zeros and empty values say nothing.
  const facts = Object.entries(status.facts).filter(([key, value]) => key !== "engine" && isPlain(value) && value);
  const parts = facts.map(
    ([key, value]) => `${inWords(key)} ${typeof value === "number" ? value.toLocaleString("en-US") : value}`,
  );
  return [`Engine:         ${[status.name, ...parts].join(", ")}`];
}

const inWords = (name: string) =>
  name.replace(/(?<=[a-z])[A-Z]|_/g, (mark) => ` ${mark === "_" ? "" : mark.toLowerCase()}`);
const isPlain = (value: unknown) => ["string", "number", "boolean"].includes(typeof value);

/** Title, the figure of a row, and when it is left out where there is no room: the highest number first. */
const COLUMNS: readonly (readonly [title: string, figure: (totals: UsageTotals) => string, dropped: number])[] = [
  ["calls", ({ calls }) => String(calls), 1],
  ["cache read", ({ cacheReadTokens }) => tokenCount(cacheReadTokens), 3],
  ["cache write", ({ cacheWriteTokens }) => tokenCount(cacheWriteTokens), 4],
  ["input", ({ inputTokens }) => tokenCount(inputTokens), 2],
  ["output", ({ outputTokens }) => tokenCount(outputTokens), 0],
  ["reasoning", ({ reasoningTokens }) => tokenCount(reasoningTokens), 5],
];

/** One row per purpose, as many columns as fit. */
export function usageTable(rows: ReadonlyMap<string, UsageTotals>, columns: number): string[] {
  const table = (most: number) => {
    const shown = COLUMNS.filter(([, , dropped]) => dropped <= most);
    const cells = [
      [said("purpose"), ...shown.map(([title]) => said(title)), said("cost")],
      ...[...rows].map(([purpose, totals]) => [purpose, ...shown.map(([, figure]) => figure(totals)), costOf(totals)]),
    ];
    const widths = shown.map((_, at) => Math.max(...cells.map((row) => wideLength(row[at + 1] ?? ""))));
    const first = Math.max(...cells.map(([purpose = ""]) => wideLength(purpose)));
    return cells.map(([purpose = "", ...figures]) =>
      [
        padWide(purpose, first),
        ...figures.map((text, at) => " ".repeat(Math.max(0, (widths[at] ?? 0) - wideLength(text))) + text),
      ].join("  "),
    );
  };
  for (let most = COLUMNS.length; most >= 0; most--) {
    const lines = table(most);
    if (lines.every((line) => wideLength(line) <= columns)) return lines;
  }
  return table(-1);
}

/** An unknown cost is never shown as 0. */
function costOf(totals: UsageTotals): string {
  if (totals.unknownCostCalls === 0) return `${dollars(totals.costUsd)} (${said(totals.costStatus)})`;
  return totals.unknownCostCalls === totals.calls
    ? "unknown"
    : t("≥ {cost} ({unknown} of {count} calls unknown)", {
        cost: dollars(totals.costUsd),
        unknown: totals.unknownCostCalls,
        count: totals.calls,
      });
}

export const SESSION_COMMANDS: readonly CommandDefinition[] = [status, usage];

const WINDOWS = [
  ["requestsMin", "requests per minute"],
  ["requestsHour", "requests per hour"],
  ["tokensMin", "tokens per minute"],
  ["tokensHour", "tokens per hour"],
] as const;

/** What is left of the provider's allowance, as its newest answer said. `ageSeconds` ago it said so. */
export function rateLimitLines(limits: RateLimits, ageSeconds: number): string[] {
  const lines = WINDOWS.flatMap(([window, label]) => {
    const limit = limits[window];
    return limit ? [`  ${padWide(said(label), 19)}  ${lineOf(limit, ageSeconds)}`] : [];
  });
  return [`Rate limits of ${limits.provider}, ${exactDuration(ageSeconds)} ago:`, ...lines];
}

function lineOf({ limit, remaining, usagePct, resetSeconds }: RateLimit, ageSeconds: number): string {
  const left = t("{count} of {limit} left ({share}% used)", {
    count: remaining.toLocaleString("en-US"),
    limit: limit.toLocaleString("en-US"),
    share: Math.round(usagePct),
  });
  if (resetSeconds === null) return left;
  const rest = resetSeconds - ageSeconds;
  return `${left}, ${rest > 0 ? t("resets in {time}", { time: exactDuration(Math.ceil(rest)) }) : t("reset since")}`;
}

// The last lines of `/status`: what this conversation has been about.

const FILE_TOOLS = new Set(["write_file", "patch", "read_file"]);
const MAX_FILES = 6;
const CHARS = 120;

function statusRecap(messages: readonly HistoryMessage[], name: string): string[] {
  if (messages.length === 0) return ["Nothing to recap yet."];
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
  const answers = messages.filter((message) => message.role === "assistant" && textOf(message.content).trim() !== "");
  const users = messages.filter((message) => message.role === "user");
  const results = messages.filter((message) => message.role === "tool");
  const tools = counted(calls.map((call) => call.function.name));
  const files = [...new Set(calls.flatMap((call) => fileOf(call.function.name, call.function.arguments)))];
  const more = files.length > MAX_FILES ? `, ${files.length - MAX_FILES} more` : "";
  return [
    `Session recap — ${name}`,
    `Recent: ${users.length} user turn(s) / ${answers.length} assistant replies, ${results.length} tool result(s)`,
    ...(tools.length > 0 ? [`Tools used: ${tools.join(", ")}`] : []),
    ...(files.length > 0 ? [`Files touched: ${files.slice(0, MAX_FILES).join(", ")}${more}`] : []),
    `Last ask: ${oneLine(users.at(-1))}`,
    ...(answers.length > 0 ? [`Last reply: ${oneLine(answers.at(-1))}`] : []),
  ];
}

function counted(names: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name}×${count}`);
}

function fileOf(tool: string, args: string): string[] {
  if (!FILE_TOOLS.has(tool)) return [];
  const path = /"path"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(args)?.[1];
  return path === undefined ? [] : [String(JSON.parse(path))];
}

function oneLine(message: HistoryMessage | undefined): string {
  const points = [
    ...textOf(message?.content ?? null)
      .replace(/\s+/g, " ")
      .trim(),
  ];
  return points.length > CHARS ? `${points.slice(0, CHARS).join("")}...` : points.join("");
}
