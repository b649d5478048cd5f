// A plugin's question to the conversation's model: through the one gate, under its own name in the ledger.

import { classifyApiError } from "../../llm/errors/classify.ts";
import { failureLine } from "../../llm/errors/explain.ts";
import type { ModelGate } from "../../llm/gate.ts";
import type { Message } from "../../llm/messages.ts";
import { listenToModel } from "../../llm/model-call.ts";
import type { PluginLlm } from "../../plugins/contract.ts";
import type { Agent } from "../agent.ts";

const LIMIT_MS = 120_000;

export async function askModel(
  request: Parameters<PluginLlm["complete"]>[0],
  { gate, agent, jobId }: { readonly gate: ModelGate; readonly agent: Agent; readonly jobId?: string | undefined },
): Promise<string> {
  const { target } = agent.model;
  const messages: readonly Message[] = [
    ...(request.system === undefined ? [] : [{ role: "system" as const, content: request.system }]),
    { role: "user", content: request.prompt },
  ];
  const signal = request.signal ?? AbortSignal.timeout(LIMIT_MS);
  const { maxTokens } = request;
  const stream = gate.stream(
    { target, messages, tools: [], limits: { totalMs: LIMIT_MS }, ...(maxTokens === undefined ? {} : { maxTokens }) },
    { task: "plugin", sessionId: agent.sessionId, ...(jobId === undefined ? {} : { jobId }) },
    signal,
  );
  const reply = await listenToModel(stream, signal, {
    emit: () => undefined,
    usage: (usage) => agent.countSideCall(usage),
  });
  if (reply.type === "answer") return reply.message.content ?? "";
  if (reply.type === "interrupted") throw new Error("the question was interrupted");
  const { provider, model, contextLength } = target;
  throw new Error(failureLine(classifyApiError(reply.error, { provider, model, contextLength }), target.apiKey));
}
