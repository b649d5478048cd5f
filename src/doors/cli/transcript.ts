// One session as text, Markdown or HTML, from its exported form.

import { cutCells } from "../../kit/cells.ts";
import { localMinute } from "../../kit/relative-time.ts";
import { stripAnsi } from "../../kit/terminal-text.ts";
import { type ContentPart, textOf } from "../../llm/messages.ts";
import { oneLine } from "./session-table.ts";

export type ExportedSession = Readonly<Record<string, unknown>>;

interface Spoken {
  readonly role: string;
  readonly at: number;
  readonly text: string;
  readonly calls: readonly string[];
  readonly tool: string | null;
}

export function transcriptText(session: ExportedSession, options: { full: boolean; columns: number }): string {
  return messagesOf(session)
    .map((message) => {
      const head = `${label(message)} · ${localMinute(message.at)}`;
      if (message.role === "tool" && !options.full) {
        return cutCells(`  ↳ ${message.tool ?? "tool"}: ${oneLine(message.text)}`, options.columns, "…");
      }
      const calls = message.calls.map((call) =>
        cutCells(`  → ${call}`, options.full ? Number.MAX_SAFE_INTEGER : options.columns, "…"),
      );
      return [head, ...(message.text === "" ? [] : [indent(message.text)]), ...calls].join("\n");
    })
    .join("\n\n");
}

export function transcriptMarkdown(session: ExportedSession): string {
  const body = messagesOf(session).map((message) => {
    const head = `## ${label(message)} · ${localMinute(message.at)}`;
    const text = message.role === "tool" ? fenced(message.text) : message.text;
    return [head, text, ...message.calls.map((call) => fenced(call))].filter((part) => part !== "").join("\n\n");
  });
  return `${[`# ${headline(session)}`, factLine(session), ...body].join("\n\n")}\n`;
}

export function transcriptHtml(sessions: readonly ExportedSession[]): string {
  const body = sessions.map((session) => {
    const messages = messagesOf(session).map(
      (message) =>
        `<section class="${escapeHtml(message.role)}"><h3>${escapeHtml(label(message))} · ${localMinute(message.at)}</h3>` +
        `<pre>${escapeHtml([message.text, ...message.calls].filter(Boolean).join("\n"))}</pre></section>`,
    );
    return `<article><h2>${escapeHtml(headline(session))}</h2><p>${escapeHtml(factLine(session))}</p>${messages.join("\n")}</article>`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Hermes sessions</title><style>
body{font-family:system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;line-height:1.5}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:0}
section{border-left:3px solid #bbb;padding:.2rem 1rem;margin:1rem 0}section.user{border-color:#46c}section.tool{opacity:.75;font-size:.9em}
h3{font-size:.85rem;color:#666;margin:0}@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}
</style></head><body>
${body.join("\n")}
</body></html>
`;
}

function messagesOf(session: ExportedSession): readonly Spoken[] {
  const rows = Array.isArray(session.messages) ? session.messages : [];
  return rows.flatMap((row: Readonly<Record<string, unknown>>) =>
    row.active === 0
      ? []
      : [
          {
            role: String(row.role),
            at: Number(row.timestamp),
            text: printable(textOf(row.content as string | readonly ContentPart[] | null)), // decoded by the store
            calls: callsOf(row.tool_calls),
            tool: typeof row.tool_name === "string" ? row.tool_name : null,
          },
        ],
  );
}

function callsOf(calls: unknown): readonly string[] {
  if (!Array.isArray(calls)) return [];
  return calls.map((call: { function?: { name?: unknown; arguments?: unknown } }) =>
    printable(`${String(call?.function?.name ?? "?")} ${String(call?.function?.arguments ?? "")}`),
  );
}

/** Newlines and tabs stay; everything else a terminal would act on goes. */
const printable = (text: string) => stripAnsi(text).replace(/[^\P{Control}\n\t]/gu, "");

const label = (message: Spoken) => (message.role === "tool" ? `tool ${message.tool ?? ""}`.trim() : message.role);
const indent = (text: string) => text.replace(/^/gm, "  ");
const headline = (session: ExportedSession) => String(session.title ?? session.id);

function factLine(session: ExportedSession): string {
  const started = typeof session.started_at === "number" ? localMinute(session.started_at) : "?";
  return [session.id, session.source, session.model, started]
    .filter((fact) => fact !== null && fact !== undefined)
    .join(" · ");
}

/** A fence longer than any inside. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

const escapeHtml = (text: string) =>
  text.replace(/[&<>"]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[char] ?? char);
