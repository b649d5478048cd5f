// `hermes -z`: for scripts. stdout is the answer and a newline, nothing else, ever.
import { writeFile } from "node:fs/promises";
import type { TurnOutcome } from "../../agent/events.ts";
import { type OpenAgent, openAgent } from "../../agent/open.ts";
import type { ChatRequest } from "../chat-request.ts";
import { onInterruptSignal, resultJson } from "../turn-result.ts";
import type { ChatOptions } from "./chat-options.ts";
import { type CliContext, ExitError } from "./context.ts";

export async function runOneShot(
  prompt: string,
  request: ChatRequest,
  options: ChatOptions,
  ctx: CliContext,
): Promise<number> {
  if (prompt.trim() === "") throw new ExitError(1, "hermes: the prompt is empty.");
  const conversation = await openAgent(request);
  const stopListening = onInterruptSignal(() => conversation.agent.interrupt("interrupted by a signal"));
  try {
    // The one line a script may see: that no model is connected.
    if (conversation.demo) for (const note of conversation.notes) ctx.io.err(`${note}\n`);
    const outcome = await answer(conversation, prompt);
    if (options.usageFile) await writeFile(options.usageFile, `${JSON.stringify(resultJson(outcome).usage)}\n`);
    if (options.json) ctx.io.out(`${JSON.stringify(resultJson(outcome))}\n`);
    else if (outcome.finalText && !outcome.failed) ctx.io.out(`${outcome.finalText}\n`);
    return finish(outcome, ctx, options.json === true);
  } finally {
    stopListening();
    await conversation.close("cli_close");
  }
}

async function answer(conversation: OpenAgent, prompt: string): Promise<TurnOutcome> {
  for await (const event of conversation.agent.run({ text: prompt })) {
    if (event.type === "done") return event.outcome;
  }
  throw new Error("the turn ended without a result");
}

/** 0 an answer; 1 an error or nothing; 2 failed or partial without text; 130 interrupted. */
function finish(outcome: TurnOutcome, ctx: CliContext, json: boolean): number {
  if (outcome.interrupted) return 130;
  if (outcome.failed) {
    if (!json) ctx.io.err(`hermes: ${outcome.finalText ?? outcome.error ?? "the run failed"}\n`);
    return outcome.error ? 1 : 2;
  }
  if (outcome.finalText) return 0;
  ctx.io.err("hermes: the model gave no answer.\n");
  return outcome.partial ? 2 : 1;
}
