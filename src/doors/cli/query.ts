// `hermes chat -q`: one turn with everything a person wants to see. With --quiet only the answer and warnings, with --json one object.

import type { AgentEvent, AskRequest, TurnOutcome } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import type { Worker } from "../../kanban/own-card.ts";
import { plural } from "../../kit/formats.ts";
import type { Question } from "../../safety/decision.ts";
import { approvalWords } from "../approval-words.ts";
import type { CliContext } from "../cli-context.ts";
import { feedLine, feedSuffix, recoveryLine, subagentLine } from "../feed.ts";
import { plainMarkdown } from "../plain-markdown.ts";
import { revealed } from "../terminal-text.ts";
import type { ChatRequest } from "../typed-input.ts";
import type { ChatOptions } from "./argv.ts";
import type { WorkerLife } from "./kanban-worker.ts";
import { runTurn } from "./one-shot.ts";

export async function runQuery(
  query: string,
  request: ChatRequest,
  options: ChatOptions,
  ctx: CliContext,
  worker: Worker | null = null,
): Promise<number> {
  const silent = options.quiet === true || options.json === true;
  const whisper = (text: string) => silent || ctx.io.err(`${text}\n`);
  const life = worker && (await openLife(worker, request, ctx));
  return runTurn(query, request, options, ctx, {
    life,
    opened(conversation) {
      for (const note of conversation.notes) ctx.io.err(`${note}\n`);
      announceResume(conversation, ctx);
      whisper(`❯ ${ctx.home.redact.fromUser(query.trimEnd()).text}`);
    },
    note: whisper,
    warn: (text) => ctx.io.err(`⚠ ${text}\n`),
    async show(event) {
      if (event.type === "ask") return answerOnTerminal(event.request, ctx);
      if (event.type === "status" && !options.json) {
        if (event.kind === "warn") ctx.io.err(`⚠ ${event.message}\n`);
        if (event.kind === "done") ctx.io.err(`✓ ${event.message}\n`);
      }
      if (!silent) show(event, ctx);
    },
    present(outcome) {
      if (options.json) return;
      present(outcome, request, ctx, options.quiet === true);
      ctx.io.err(options.quiet ? `session_id: ${outcome.sessionId}\n` : farewell(outcome, ctx));
    },
    learned: (line) => whisper(`  ${line}`),
    exitCode(outcome) {
      const usual = outcome.failed || !outcome.finalText ? 1 : 0;
      return life?.exitCode(outcome, usual) ?? usual;
    },
  });
}

async function openLife(worker: Worker, request: ChatRequest, ctx: CliContext): Promise<WorkerLife> {
  const { WorkerLife } = await import("./kanban-worker.ts");
  return WorkerLife.open(worker, request, (line) => ctx.io.err(`${line}\n`));
}

function announceResume(conversation: OpenAgent, ctx: CliContext): void {
  const { resumed } = conversation;
  if (!resumed) return;
  const origin = resumed.continuationOf ? ` (continuation of ${resumed.continuationOf})` : "";
  ctx.io.err(`resumed ${resumed.title ?? resumed.id}${origin}, ${plural(conversation.history.length, "message")}\n`);
}

function show(event: AgentEvent, ctx: CliContext): void {
  if (event.type === "tool_end")
    ctx.io.err(`${feedLine(event.call, event.ms, feedSuffix(event.call.name, event.result))}\n`);
  const child = event.type === "subagent" ? subagentLine(event) : null;
  if (child !== null) ctx.io.err(`${child}\n`);
  if (event.type === "text_end" && event.kind === "interim" && event.text.trim()) ctx.io.err(`${event.text.trim()}\n`);
  const recovery = recoveryLine(event);
  if (recovery !== null) ctx.io.err(`${recovery}\n`);
}

function present(outcome: TurnOutcome, request: ChatRequest, ctx: CliContext, quiet: boolean): void {
  const text = outcome.finalText ?? "";
  if (outcome.failed) return ctx.io.err(`hermes: ${text || (outcome.error ?? "the run failed")}\n`);
  if (outcome.interrupted) return ctx.io.err(`${text || "Interrupted."}\n`);
  const style = quiet ? "raw" : request.home.config().display.final_response_markdown;
  ctx.io.out(`${style === "raw" ? text : plainMarkdown(text, ctx.io.columns)}\n`, { asIs: true });
}

function farewell(outcome: TurnOutcome, { home }: CliContext): string {
  if (home.unwritable !== null) return "";
  const { profile } = home.paths;
  const chosen = profile === "default" || profile === "custom" ? "" : ` -p ${profile}`;
  return `\nhermes${chosen} --resume ${outcome.sessionId}  resumes this conversation\n`;
}

/** Typed answers on stderr and stdin; anything that is not a clear yes is a no. */
async function answerOnTerminal(request: AskRequest, ctx: CliContext): Promise<void> {
  const question: Question = request.question;
  const reply = (value: unknown) => request.answer(value as never); // each branch gives the answer of its own kind
  switch (question.kind) {
    case "approval": {
      const note = question.note === undefined ? "" : `${question.note}\n`;
      const { title, ask } = approvalWords(question);
      ctx.io.err(`\n⚠ ${title}\n  ${revealed(question.command)}\n${note}`);
      // A session is this one run here.
      const offered = [
        ["once", "[o]nce"],
        ...(question.allowSession === false ? [] : [["session", "[r]est of this run"]]),
        ...(question.allowAlways ? [["always", "[a]lways"]] : []),
      ];
      const names = offered.map(([, name]) => name).join(", ");
      const typed = await ctx.io.question(`${ask} ${names}, anything else = no: `, request.signal);
      const letter = (typed ?? "").trim().toLowerCase().slice(0, 1);
      return reply({ choice: offered.find(([, name]) => letter !== "" && name?.[1] === letter)?.[0] ?? "deny" });
    }
    case "confirm": {
      const typed = await ctx.io.question(
        `${question.title}\n${question.detail}\n[y]es, anything else = no: `,
        request.signal,
      );
      return reply({ choice: /^y/i.test((typed ?? "").trim()) ? "once" : "cancel" });
    }
    case "clarify": {
      const list = (question.choices ?? []).map((choice, index) => `  ${index + 1}. ${choice}\n`).join("");
      const typed = await ctx.io.question(`\n? ${question.question}\n${list}> `, request.signal);
      const picked = question.choices?.[Number(typed) - 1];
      return reply({ text: picked ?? typed });
    }
    default:
      return reply({ text: null });
  }
}
