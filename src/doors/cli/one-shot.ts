// `hermes -z`: for scripts. stdout is the answer and a newline, nothing else, ever.

import { readFile, stat, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import { openAgent } from "../../agent/open.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { messageOf } from "../../kit/errors.ts";
import type { ContentPart, UserInput } from "../../llm/messages.ts";
import { onStopSignal } from "../stop-signals.ts";
import { type ChatRequest, withReferences } from "../typed-input.ts";
import type { ChatOptions } from "./argv.ts";
import { type CliContext, ExitError } from "./context.ts";

export async function runOneShot(
  prompt: string,
  request: ChatRequest,
  options: ChatOptions,
  ctx: CliContext,
): Promise<number> {
  if (prompt.trim() === "") throw new ExitError(1, "the prompt is empty.");
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
    const reason = messageOf(error);
    throw new ExitError(1, `the answer is printed, but its usage could not be written: ${reason}.`);
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

// Images given on the command line, as parts of the message.

/** What goes beside the text; null when there is nothing to attach. */
export async function attachImages(paths: readonly string[], cwd: string): Promise<readonly ContentPart[] | null> {
  if (paths.length === 0) return null;
  return Promise.all(paths.map((path) => imagePart(resolve(cwd, path))));
}

async function imagePart(path: string): Promise<ContentPart> {
  const { imageType, MOST_IMAGE_BYTES, SHOWABLE } = await import("../../tools/media/pictures.ts");
  const bytes = await bytesOf(path, MOST_IMAGE_BYTES);
  const type = imageType(bytes);
  if (type === null || !SHOWABLE.has(type))
    throw new ExitError(1, `${path} is no image this program can send (png, jpeg, gif, webp).`);
  return { type: "image_url", image_url: { url: `data:${type};base64,${bytes.toString("base64")}` } };
}

async function bytesOf(path: string, most: number): Promise<Buffer> {
  try {
    if ((await stat(path)).size <= most) return await readFile(path);
  } catch (error) {
    throw new ExitError(1, `cannot read the image ${path}: ${(error as NodeJS.ErrnoException).code ?? error}.`);
  }
  throw new ExitError(1, `${path} is too large to send; 50 MB are allowed.`);
}

// `--learn`: a run that ends after one turn stays until what is due has been learned.

/** Waits for the review that follows the turn, and for the last look before the end. One line for each thing that was saved. */
export async function learn({ agent }: OpenAgent, say: (line: string) => unknown): Promise<void> {
  void listen(agent, say); // until the conversation is closed
  await agent.settled();
  for (const line of await agent.saveMemories()) say(line);
}

async function listen({ notices }: OpenAgent["agent"], say: (line: string) => unknown): Promise<void> {
  for await (const event of notices) if (event.type === "notice" && event.kind === "review") say(event.text);
}

/** What a signal does: it stops the turn; behind the turn it stops the learning. */
export function stopRun(conversation: OpenAgent): void {
  const { agent } = conversation;
  agent.interrupt("interrupted by a signal");
  if (agent.lastOutcome) void conversation.close("cli_close");
}

// The result of a turn for programs.

/** What an event warns of; null for all others. */
export function warningOf(event: AgentEvent): string | null {
  return event.type === "status" && event.kind === "warn" ? event.message : null;
}

/** The JSON object of `--json`: a format that scripts rely on. `warnings` is what a person would have been shown. */
export function resultJson(outcome: TurnOutcome, warnings: readonly string[]) {
  const { totals } = outcome;
  return {
    session_id: outcome.sessionId,
    final_response: outcome.finalText,
    completed: outcome.completed,
    failed: outcome.failed,
    interrupted: outcome.interrupted,
    error: outcome.error ?? null,
    warnings,
    turn_exit_reason: outcome.exitReason,
    model: outcome.model,
    provider: outcome.provider,
    api_calls: outcome.apiCalls,
    usage: {
      input_tokens: totals.inputTokens,
      output_tokens: totals.outputTokens,
      cache_read_tokens: totals.cacheReadTokens,
      cache_write_tokens: totals.cacheWriteTokens,
      reasoning_tokens: totals.reasoningTokens,
    },
    cost_usd: totals.costUsd,
    cost_status: totals.costStatus,
  };
}
