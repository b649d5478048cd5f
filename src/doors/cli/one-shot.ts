// `hermes -z`: for scripts. stdout is the answer and a newline, nothing else, ever.
import { writeFile } from "node:fs/promises";
import type { TurnOutcome } from "../../agent/events.ts";
import { openAgent } from "../../agent/open.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import type { UserInput } from "../../llm/messages.ts";
import type { ChatRequest } from "../chat-request.ts";
import { onStopSignal } from "../stop-signals.ts";
import { resultJson, warningOf } from "../turn-result.ts";
import { withReferences } from "../typed-input.ts";
import { attachImages } from "./attachments.ts";
import type { ChatOptions } from "./chat-options.ts";
import { type CliContext, ExitError } from "./context.ts";
import { learn, stopRun } from "./learn.ts";

export async function runOneShot(
  prompt: string,
  request: ChatRequest,
  options: ChatOptions,
  ctx: CliContext,
): Promise<number> {
  if (prompt.trim() === "") throw new ExitError(1, "hermes: the prompt is empty.");
  const parts = await attachImages(options.image ?? [], ctx.cwd);
  const conversation = await openAgent(request);
  const signals = onStopSignal({
    stop: () => stopRun(conversation),
    graceSeconds: ctx.home.env("HERMES_SIGTERM_GRACE"),
    clock: ctx.clock,
  });
  try {
    // What even a script is told: that nothing can be kept, that no model is connected.
    if (ctx.home.unwritable !== null) ctx.io.err(`hermes: ${ctx.home.unwritable}\n`);
    if (conversation.demo) for (const note of conversation.notes) ctx.io.err(`${note}\n`);
    const warnings = [...ctx.home.warnings, ...conversation.notes];
    const typed = { text: prompt, ...(parts ? { parts } : {}) };
    const input = await withReferences(typed, conversation, {
      note: () => undefined,
      warn(text) {
        warnings.push(text);
        ctx.io.err(`hermes: ${text}\n`);
      },
    });
    // A signal that came before there was a turn to stop counts as well.
    if (input === null || signals.code !== null) return signals.code ?? 1;
    const outcome = await answer(conversation, input, warnings);
    if (options.json) ctx.io.out(`${JSON.stringify(resultJson(outcome, warnings))}\n`);
    else if (outcome.finalText && !outcome.failed && !outcome.interrupted) ctx.io.out(`${outcome.finalText}\n`);
    if (outcome.interrupted && !options.json) ctx.io.err(`hermes: ${outcome.finalText ?? "interrupted."}\n`);
    if (options.usageFile) await writeUsage(options.usageFile, outcome);
    if (outcome.interrupted) return signals.code ?? 130;
    if (options.learn) await learn(conversation, (line) => options.json || ctx.io.err(`  ${line}\n`));
    return finish(outcome, ctx, options.json === true);
  } finally {
    signals.stopListening();
    await conversation.close("cli_close");
  }
}

async function answer(conversation: OpenAgent, input: UserInput, warnings: string[]): Promise<TurnOutcome> {
  for await (const event of conversation.agent.run(input)) {
    const warning = warningOf(event);
    if (warning !== null) warnings.push(warning);
    if (event.type === "done") return event.outcome;
  }
  throw new Error("the turn ended without a result");
}

async function writeUsage(path: string, outcome: TurnOutcome): Promise<void> {
  try {
    const { usage, cost_usd, cost_status } = resultJson(outcome, []);
    await writeFile(path, `${JSON.stringify({ ...usage, cost_usd, cost_status })}\n`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    throw new ExitError(1, `hermes: the answer is printed, but its usage could not be written: ${reason}.`);
  }
}

/** 0 an answer; 1 an error or nothing; 2 failed or partial without text. */
function finish(outcome: TurnOutcome, ctx: CliContext, json: boolean): number {
  if (outcome.failed) {
    if (!json) ctx.io.err(`hermes: ${outcome.finalText ?? outcome.error ?? "the run failed"}\n`);
    return outcome.error ? 1 : 2;
  }
  if (outcome.finalText) return 0;
  ctx.io.err("hermes: the model gave no answer.\n");
  return outcome.partial ? 2 : 1;
}
