// What a turn works with: who it runs for, who judges the answers, who runs the tools.

import type { Ask } from "../safety/questions.ts";
import type { RunContext } from "../tools/toolset/context.ts";
import { createAsk } from "./asking.ts";
import type { IterationBudget } from "./budget.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentEventBody } from "./events.ts";
import { FileMutations } from "./file-mutations.ts";
import { guardedHooks, ToolLoopGuard } from "./guardrails.ts";
import { AnswerJudge } from "./judge.ts";
import { makeRunContext, toolContexts } from "./run-context.ts";
import { ToolRunner } from "./tool-runner.ts";

export interface TurnOptions {
  readonly signal: AbortSignal;
  readonly budget: IterationBudget;
  readonly emit: (event: AgentEventBody) => void;
  readonly notify: (text: string) => void;
  /** What the interrupt said, if there was one. */
  readonly interruptMessage: () => string | undefined;
}

export interface TurnKit {
  readonly run: RunContext;
  readonly ask: Ask;
  readonly judge: AnswerJudge;
  readonly tools: ToolRunner;
  readonly mutations: FileMutations;
  readonly guard: ToolLoopGuard;
}

export function equipTurn(conversation: Conversation, { signal, emit, notify }: TurnOptions): TurnKit {
  const { tools, ports, limits, session } = conversation.options;
  const { target, maxTokens } = conversation.model;
  const { transcript } = conversation;
  const turn = session.turn ?? conversation.turns;
  const facts = {
    get sessionId() {
      return transcript.sessionId;
    },
    turn,
    signal,
  };
  const run = makeRunContext(conversation.options, facts);
  const ask = createAsk({
    interactive: session.interactive,
    signal,
    clock: ports.clock,
    timeoutMs: (question) => ports.askTimeoutMs?.(question, run),
    emit,
  });
  const mutations = new FileMutations(ports.environment);
  const guard = new ToolLoopGuard(run.config.tool_loop_guardrails);
  return {
    run,
    ask,
    mutations,
    guard,
    judge: new AnswerJudge({
      names: tools.names,
      requestedCap: maxTokens,
      maxChildren: limits.maxConcurrentChildren ?? 3,
      redact: (text) => ports.redact(text),
    }),
    tools: new ToolRunner({
      tools,
      ports: { ...ports, hooks: guardedHooks(guard, ports.hooks) },
      run,
      ...(limits.toolTimes ? { times: limits.toolTimes } : {}),
      images: conversation.takesImages,
      history: () => transcript.messages,
      emit,
      onFinished(call, result, failed) {
        mutations.record(call, result, failed);
        if (!failed) conversation.nudges.toolSucceeded(call.name);
      },
      contextFor: toolContexts(conversation.options, run, {
        ask,
        contextLength: target.contextLength,
        seesImages: conversation.takesImages,
        notify,
        emit,
        used: (totals) => conversation.meter.addAll(totals),
        auxiliary: conversation.auxiliary,
      }),
    }),
  };
}
