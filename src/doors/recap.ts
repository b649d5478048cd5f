// What was said before, short enough to read when a conversation is taken up again.
import { type HistoryMessage, textOf } from "../llm/messages.ts";

export interface RecapLimits {
  readonly exchanges: number;
  readonly userChars: number;
  readonly assistantChars: number;
  readonly assistantLines: number;
  readonly skipToolOnly: boolean;
}

export interface RecapEntry {
  readonly who: "user" | "assistant" | "tools";
  readonly text: string;
}

export interface Recap {
  readonly entries: readonly RecapEntry[];
  /** Exchanges before the first one shown. */
  readonly olderExchanges: number;
}

interface Exchange {
  readonly user: string;
  readonly replies: string[];
  readonly tools: string[];
}

/** The last exchanges, cut to size; the very last reply is whole. */
export function recap(messages: readonly HistoryMessage[], limits: RecapLimits): Recap {
  const exchanges = exchangesOf(messages);
  const shown = exchanges.slice(-limits.exchanges);
  const entries = shown.flatMap((exchange, index): RecapEntry[] => {
    const last = index === shown.length - 1;
    const replies = exchange.replies.map((reply, i) =>
      last && i === exchange.replies.length - 1 ? reply : cutText(reply, limits.assistantChars, limits.assistantLines),
    );
    if (limits.skipToolOnly && exchange.user === "" && replies.length === 0) return [];
    return [
      { who: "user", text: cutText(exchange.user, limits.userChars, Number.POSITIVE_INFINITY) },
      ...(exchange.tools.length > 0 ? [{ who: "tools" as const, text: toolLine(exchange.tools) }] : []),
      ...replies.map((text) => ({ who: "assistant" as const, text })),
    ];
  });
  return { entries, olderExchanges: exchanges.length - shown.length };
}

function exchangesOf(messages: readonly HistoryMessage[]): Exchange[] {
  const exchanges: Exchange[] = [];
  for (const message of messages) {
    if (message.role === "user") exchanges.push({ user: withImages(message.content), replies: [], tools: [] });
    const current = exchanges.at(-1);
    if (message.role !== "assistant" || !current) continue;
    if (message.content?.trim()) current.replies.push(message.content.trim());
    current.tools.push(...(message.tool_calls ?? []).map((call) => call.function.name));
  }
  return exchanges;
}

function withImages(content: HistoryMessage["content"]): string {
  const images = Array.isArray(content) ? content.filter((part) => part.type === "image_url").length : 0;
  return [textOf(content), ...new Array<string>(images).fill("[image]")].join(" ").trim();
}

function toolLine(tools: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of tools) counts.set(name, (counts.get(name) ?? 0) + 1);
  const names = [...counts].map(([name, count]) => (count > 1 ? `${name}×${count}` : name));
  return `${tools.length} tool call${tools.length === 1 ? "" : "s"}: ${names.join(", ")}`;
}

function cutText(text: string, chars: number, lines: number): string {
  const fewLines = text.split("\n").slice(0, lines).join("\n");
  const points = [...fewLines];
  const cut = points.length > chars ? points.slice(0, chars).join("") : fewLines;
  return cut.length < text.length ? `${cut.trimEnd()}...` : text;
}
