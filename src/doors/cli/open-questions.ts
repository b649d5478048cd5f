// `hermes approvals list` and `answer`: questions that an agent in another terminal, a chat or a server waits with.
import type { Command } from "commander";
import { relativeTime } from "../../kit/relative-time.ts";
import type { OpenQuestionRow } from "../../sessions/store.ts";
import { type CliContext, ExitError } from "./context.ts";

const CHOICES = ["once", "session", "always", "deny"];

export function defineOpenQuestions(command: Command, ctx: CliContext): void {
  command
    .command("list", { isDefault: true })
    .description("commands that wait for your yes or no, in every running conversation of this home")
    .option("--json", "one object per line")
    .action((flags: { readonly json?: true }) => list(flags, ctx));
  command
    .command("answer")
    .description("answer one of them")
    .argument("<ID>", "its id, or the first characters of it")
    .argument("<CHOICE>", CHOICES.join(", "))
    .argument("[REASON...]", "what the agent is told with a no")
    .action((id: string, choice: string, reason: string[]) => answer(id, choice, reason.join(" "), ctx));
}

async function list({ json }: { readonly json?: true }, ctx: CliContext): Promise<void> {
  const rows = await (await ctx.store()).questions();
  if (rows.length === 0 && !json) return ctx.io.out("Nothing waits for an answer.\n");
  for (const row of rows) {
    const { command, description } = shownOf(row);
    if (json)
      ctx.io.out(
        `${JSON.stringify({ id: row.id, session_id: row.sessionId, kind: row.kind, command, description, asked_at: row.askedAt, expires_at: row.expiresAt })}\n`,
      );
    else
      ctx.io.out(
        `${row.id.slice(0, 8)}  ${relativeTime(row.askedAt, ctx.clock.now() / 1000)}  [${description}] ${command}\n`,
      );
  }
}

async function answer(id: string, choice: string, reason: string, ctx: CliContext): Promise<void> {
  if (!CHOICES.includes(choice))
    throw new ExitError(1, `"${choice}" is no answer. Choose one of: ${CHOICES.join(", ")}.`);
  const store = await ctx.store();
  const found = (await store.questions()).filter((row) => row.id.startsWith(id));
  const [row] = found;
  if (found.length > 1) throw new ExitError(1, `More than one question begins with ${id}. Give more of its id.`);
  const given = { choice, ...(reason === "" ? {} : { reason }) };
  if (!row || !(await store.answerQuestion(row.id, given, "cli")))
    throw new ExitError(1, `No question ${id} waits for an answer. "hermes approvals list" shows those that do.`);
  ctx.io.out(`Answered "${choice}": ${shownOf(row).command}\n`);
}

function shownOf({ payload }: OpenQuestionRow): { command: string; description: string } {
  const { command, description } = (payload ?? {}) as Readonly<Record<string, unknown>>; // written by any version; looked at as text
  return { command: String(command ?? ""), description: String(description ?? "") };
}
