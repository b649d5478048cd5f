// The last look before a conversation is cut or closed: one call in which the model may save what it would otherwise lose. The conversation
// itself never learns of it.
import { AuxiliaryError } from "../llm/auxiliary/contract.ts";
import type { HistoryMessage, ToolCall } from "../llm/messages.ts";
import { refuse } from "../safety/decision.ts";
import { reasoningFor } from "./ask-model.ts";
import type { Conversation } from "./conversation.ts";
import { RequestBuilder } from "./request.ts";
import { type EndedCall, noticeMode, summaryParts } from "./review/review.ts";

interface FlushRequest {
  readonly why: FlushReason;
  readonly signal: AbortSignal;
}

const MAX_OUTPUT = 5120;
const TEMPERATURE = 0.3;

const HAPPENS = {
  compression: "This conversation is about to be compressed: its earlier part will be gone",
  closing: "This conversation is about to be closed",
} as const;

const noteFor = (why: FlushReason) =>
  `[System: ${HAPPENS[why]}. Save with the memory tool what is worth keeping and not saved yet: the user's preferences and corrections first, then what keeps coming back. Only memory calls are carried out now. If there is nothing to save, just say so.]`;

/** Resolves to one line per save. Never rejects: what fails is logged. */
export async function flushMemories(conversation: Conversation, request: FlushRequest): Promise<readonly string[]> {
  const { assembly } = conversation;
  const { session } = assembly;
  try {
    const calls = await askForMemories(conversation, request);
    const ended: EndedCall[] = [];
    for (const call of calls) {
      if (call.function.name !== "memory" || request.signal.aborted) continue;
      ended.push(await save(conversation, call, request.signal));
    }
    const mode = noticeMode(assembly.config(), session.platform);
    return summaryParts(ended, mode === "off" ? "off" : "verbose").map((part) => `💾 ${part}`);
  } catch (error) {
    const expected = error instanceof AuxiliaryError;
    assembly.log[expected ? "info" : "warn"]("memories could not be saved at the end", error);
    return [];
  }
}

async function askForMemories(conversation: Conversation, { why, signal }: FlushRequest): Promise<readonly ToolCall[]> {
  const { auxiliary, transcript, assembly, model, turns } = conversation;
  const { prompt, tools } = assembly;
  const system = await conversation.systemPrompt();
  const choice = await auxiliary.resolveAux("flush_memories");
  if (!choice) return [];
  const ephemeral = prompt.ephemeral?.();
  const note: HistoryMessage = { role: "user", content: noteFor(why) };
  const messages = new RequestBuilder().build({
    target: choice.target,
    system,
    ...(ephemeral === undefined ? {} : { ephemeral }),
    ...(prompt.prefill ? { prefill: prompt.prefill } : {}),
    history: [...transcript.messages, note],
    scaffold: [],
    images: choice.main && conversation.takesImages,
  });
  const { promptLayout } = conversation;
  const { cacheTtl, overrides } = model;
  const reasoning = reasoningFor(model);
  const same = {
    ...(promptLayout ? { promptLayout } : {}),
    ...(reasoning ? { reasoning } : {}),
    ...(cacheTtl ? { cacheTtl } : {}),
    ...(overrides ? { overrides } : {}),
  };
  const { message } = await auxiliary.callAux({
    task: "flush_memories",
    target: choice.target,
    messages,
    tools: tools.definitions,
    maxTokens: MAX_OUTPUT,
    temperature: TEMPERATURE,
    sessionId: transcript.sessionId,
    turn: turns,
    signal,
    ...(choice.main ? { like: same } : {}),
  });
  return message.tool_calls ?? [];
}

async function save({ assembly, transcript, turns, foreign }: Conversation, call: ToolCall, signal: AbortSignal) {
  const args = argumentsOf(call);
  const result = await assembly.memory?.apply(args, {
    origin: "flush",
    sessionId: transcript.sessionId,
    turn: turns,
    platform: assembly.session.platform,
    interactive: false,
    ask: async (question) => refuse(question),
    signal,
    foreignText: () => (assembly.asksAfterForeignText?.() === false ? null : foreign.words),
  });
  return { name: "memory", args, result: JSON.stringify(result ?? {}) };
}

function argumentsOf(call: ToolCall): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(call.function.arguments);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}; // the store checks it
  } catch {
    return {}; // a call that was cut off; the store refuses it
  }
}

export type FlushReason = "compression" | "closing";

const LEAST_MESSAGES = { compression: 3, closing: 4 } as const;

/** Whether a flush would have something to do. Before a compression there is no minimum of turns, but a minimum of 0 is never. */
export function isFlushDue(conversation: Conversation, why: FlushReason): boolean {
  const { assembly } = conversation;
  const { tools, session } = assembly;
  if (!assembly.memory || !tools.names.has("memory") || (session.origin ?? "foreground") !== "foreground") return false;
  if (conversation.transcript.messages.length < LEAST_MESSAGES[why]) return false;
  const least = assembly.config().memory.flush_min_turns;
  if (least === 0) return false;
  const { userTurns, userTurnsHere } = conversation.nudges;
  return why === "compression" || (userTurnsHere > 0 && userTurns >= least);
}
