// `hermes -z`: for scripts. stdout is the answer and a newline, nothing else, ever.

import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import { openAgent } from "../../agent/open.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { t } from "../../home/language/words.ts";
import { messageOf } from "../../kit/errors.ts";
import type { UserInput } from "../../llm/messages.ts";
import type { Picture } from "../../tools/media/user-pictures.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { onStopSignal } from "../stop-signals.ts";
import { type ChatRequest, withReferences } from "../typed-input.ts";
import type { ChatOptions } from "./argv.ts";
import type { WorkerLife } from "./kanban-worker.ts";
import type { runSlashOnce } from "./slash-once.ts";

export async function runOneShot(
  prompt: string,
  request: ChatRequest,
  options: ChatOptions,
  ctx: CliContext,
): Promise<number> {
  if (prompt.trim() === "") throw new ExitError(1, "the prompt is empty.");
  const json = options.json === true;
  return runTurn(prompt, request, options, ctx, {
    // Scripts too see that nothing can be stored or that no model is configured.
    opened({ demo, notes }) {
      if (ctx.home.unwritable !== null) ctx.io.err(`hermes: ${ctx.home.unwritable}\n`);
      if (demo) for (const note of notes) ctx.io.err(`${note}\n`);
    },
    note: () => undefined,
    warn: (text) => ctx.io.err(`hermes: ${text}\n`),
    show(event) {
      if (event.type === "status" && event.changedInput && !json) ctx.io.err(`hermes: ${event.message}\n`);
    },
    async present(outcome) {
      const { finalText, failed, interrupted } = outcome;
      if (!json && finalText && !failed && !interrupted) ctx.io.out(`${finalText}\n`, { asIs: true });
      if (!json && interrupted) ctx.io.err(`hermes: ${finalText ?? "interrupted."}\n`);
      if (options.usageFile) await writeUsage(options.usageFile, outcome);
    },
    learned: (line) => json || ctx.io.err(`  ${line}\n`),
    exitCode: (outcome) => finish(outcome, ctx, json),
  });
}

/** What `-z` and `-q` do differently with the one turn they run. */
interface TurnDoor {
  /** The run works on a card of a board: what keeps it, and what follows each turn. */
  readonly life?: WorkerLife | null;
  opened(conversation: OpenAgent): void;
  /** What the message points at: a quiet line, and a warning. */
  note(text: string): void;
  warn(text: string): void;
  show(event: AgentEvent): Promise<void> | void;
  /** After the result for `--json`, if that was asked for. */
  present(outcome: TurnOutcome): Promise<void> | void;
  learned(line: string): void;
  /** Of a turn that was not interrupted. */
  exitCode(outcome: TurnOutcome): number;
}

/** One turn, from opening the conversation to closing it. Resolves to the exit code. */
export async function runTurn(
  text: string,
  request: ChatRequest,
  options: ChatOptions,
  ctx: CliContext,
  door: TurnDoor,
): Promise<number> {
  const { life } = door;
  const pictures = await readPictures(options.image, ctx.cwd);
  const conversation = await openAgent(request).catch(async (error: unknown) => {
    await life?.close();
    throw error;
  });
  const signals = onStopSignal({
    stop: () => stopRun(conversation),
    graceSeconds: ctx.home.env("HERMES_SIGTERM_GRACE"),
    clock: ctx.clock,
  });
  try {
    const warnings = [...ctx.home.warnings, ...conversation.notes];
    door.opened(conversation);
    const parts = pictures?.map(({ part }) => part);
    const attached = parts ? { parts } : {};
    let said: UserInput = { text, ...attached };
    if (text.startsWith("/")) {
      const outcome = await (await import("./slash-once.ts")).runSlashOnce(text, request, conversation);
      if (outcome.type !== "message") return answeredByCommand(outcome, text, options, ctx);
      said = { ...outcome.input, ...attached };
    }
    const input = await withReferences(said, conversation, {
      note: door.note,
      warn(warning) {
        warnings.push(warning);
        door.warn(warning);
      },
    });
    // A signal may have come before the turn began.
    if (input === null || signals.code !== null) return signals.code ?? 1;
    const located = pictures ? (await import("../../tools/media/user-pictures.ts")).withPaths(input, pictures) : input;
    await life?.begin(conversation);
    let outcome = await answer(conversation, located, warnings, door);
    for (let next = await life?.next(outcome); next && signals.code === null; next = await life?.next(outcome))
      outcome = await answer(conversation, next, warnings, door);
    if (outcome.pendingSteer !== undefined && !life) {
      const late = t('"{text}" came too late to be read.', { text: outcome.pendingSteer });
      warnings.push(late);
      door.warn(late);
    }
    if (options.json) ctx.io.out(`${JSON.stringify(resultJson(outcome, warnings))}\n`, { asIs: true });
    await door.present(outcome);
    if (outcome.interrupted) return signals.code ?? 1;
    if (options.learn) await learn(conversation, door.learned);
    return door.exitCode(outcome);
  } finally {
    signals.stopListening();
    await conversation.close("cli_close");
    await life?.close();
  }
}

/** What a slash command said, in place of an answer of the model. */
function answeredByCommand(
  outcome: Exclude<Awaited<ReturnType<typeof runSlashOnce>>, { readonly type: "message" }>,
  text: string,
  { json }: ChatOptions,
  ctx: CliContext,
): number {
  if (outcome.type === "needs_screen")
    throw new ExitError(2, `${outcome.command} needs the interactive screen: start hermes and type it there.`);
  const { said, warnings } = outcome;
  const failed = said.length === 0 && warnings.length > 0;
  if (json) ctx.io.out(`${JSON.stringify({ command: text, output: said.join("\n"), warnings, failed })}\n`);
  else if (said.length > 0) ctx.io.out(`${said.join("\n")}\n`);
  if (!json) for (const warning of warnings) ctx.io.err(`hermes: ${warning}\n`);
  return failed ? 1 : 0;
}

async function answer(
  { agent }: OpenAgent,
  input: UserInput,
  warnings: string[],
  door: TurnDoor,
): Promise<TurnOutcome> {
  for await (const event of agent.run(input)) {
    if (event.type === "done") return event.outcome;
    if (event.type === "status" && event.kind === "warn") warnings.push(event.message);
    door.life?.saw(event);
    await door.show(event);
  }
  throw new Error("the turn ended without a result");
}

async function writeUsage(path: string, outcome: TurnOutcome): Promise<void> {
  try {
    const { usage, cost_usd, cost_status } = resultJson(outcome, []);
    await writeFile(path, `${JSON.stringify({ ...usage, cost_usd, cost_status })}\n`);
  } catch (error) {
    const reason = messageOf(error);
    throw new ExitError(1, `the answer was printed, but the usage file could not be written: ${reason}.`);
  }
}

/** 0 an answer; 1 an error or nothing; 2 failed or partial without text. */
function finish(outcome: TurnOutcome, ctx: CliContext, json: boolean): number {
  if (outcome.failed) {
    if (!json) ctx.io.err(`hermes: ${outcome.finalText ?? outcome.error ?? "the run failed"}\n`);
    return outcome.error ? 1 : 2;
  }
  if (outcome.finalText) return 0;
  ctx.io.err("hermes: the model returned no answer.\n");
  return outcome.partial ? 2 : 1;
}

/** The pictures given on the command line; undefined when there are none. */
export async function readPictures(
  paths: readonly string[] | undefined,
  cwd: string,
): Promise<readonly Picture[] | undefined> {
  if (!paths?.length) return undefined;
  const { PictureError, pictureFile } = await import("../../tools/media/user-pictures.ts");
  return Promise.all(paths.map((path) => pictureFile(resolve(cwd, path)))).catch((error: unknown) => {
    throw error instanceof PictureError ? new ExitError(1, error.message) : error;
  });
}

// `--learn`: a run that ends after one turn stays until what is due has been learned.

/** Waits for the review that follows the turn, and for the last look before the end. One line for each thing that was saved. */
async function learn({ agent }: OpenAgent, say: (line: string) => void): Promise<void> {
  void listen(agent, say); // until the conversation is closed
  await agent.settled();
  for (const line of await agent.saveMemories()) say(line);
}

async function listen({ notices }: OpenAgent["agent"], say: (line: string) => void): Promise<void> {
  for await (const event of notices) if (event.type === "notice" && event.kind === "review") say(event.text);
}

/** What a signal does: it stops the turn; behind the turn it stops the learning. */
function stopRun(conversation: OpenAgent): void {
  const { agent } = conversation;
  agent.interrupt("interrupted by a signal");
  if (agent.lastOutcome) void conversation.close("cli_close");
}

// The result of a turn for programs.

/** The JSON object of `--json`: a format that scripts rely on. `warnings` is what a person would have been shown. */
function resultJson(outcome: TurnOutcome, warnings: readonly string[]) {
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
