// The agent beside the agent: the same model, prompt, tool list and history byte for byte, so that the provider has read it all before;
// but nothing it does is stored as conversation, nobody can be asked, and only memory and skills can be changed.
import type { CommandGuard } from "../../safety/decision.ts";
import { createToolState, type OwnedToolState } from "../../tools/state.ts";
import { IterationBudget } from "../budget.ts";
import type { Conversation, SentSoFar } from "../conversation.ts";
import type { AgentOptions, AgentPorts, ModelChoice, ToolRunnerPort } from "../options.ts";
import { digestOf } from "./digest.ts";
import { REVIEWER } from "./prompts.ts";

const SKILL_TOOLS = ["skills_list", "skill_view", "skill_manage"];

export interface Fork {
  readonly conversation: Conversation;
  readonly state: OwnedToolState;
  readonly budget: IterationBudget;
}

export async function forkForReview(parent: Conversation, sent: SentSoFar): Promise<Fork> {
  const { options } = parent;
  const { timeout, max_iterations } = options.ports.config().auxiliary.background_review;
  const routed = await otherModel(options.ports, sent);
  const state = createToolState();
  const budget = new FirmBudget(max_iterations);
  const model = routed ?? sent.model;
  const forked: AgentOptions = {
    session: {
      ...options.session,
      id: sent.sessionId,
      turn: sent.turn,
      store: null,
      history: routed ? digestOf(sent.messages) : sent.messages,
      origin: "background_review",
      task: "background_review",
      interactive: false,
      reviews: false,
    },
    // No stand-ins: a look back is not worth a cold cache elsewhere.
    model: { ...model, fallbacks: [], ...(timeout > 0 && { liveness: { ...model.liveness, totalSeconds: timeout } }) },
    prompt: {
      system: async () => (routed ? `${REVIEWER}\n\n${sent.system.text}` : sent.system),
      ...(options.prompt.ephemeral ? { ephemeral: () => options.prompt.ephemeral?.() } : {}),
      ...(options.prompt.prefill ? { prefill: options.prompt.prefill } : {}),
    },
    tools: onlyLearning(options.tools, state, options.ports.memory !== undefined),
    limits: { ...options.limits, maxIterations: budget.max, compression: false, lastAnswer: false },
    ports: quietPorts(options.ports),
  };
  return { conversation: parent.fork(forked), state, budget };
}

/** The whole list is offered, as the prefix wants it; what a review has no business with is refused when it is called. */
function onlyLearning(tools: ToolRunnerPort, state: OwnedToolState, memory: boolean): ToolRunnerPort {
  const allowed = new Set(memory ? ["memory", ...SKILL_TOOLS] : SKILL_TOOLS);
  const { hydrate: _, ...rest } = tools;
  return {
    ...rest,
    state,
    async call(name, args, ctx) {
      if (allowed.has(name)) return tools.call(name, args, ctx);
      return JSON.stringify({
        error: `${name} was not run: in a review only memory and skill tools are allowed (${[...allowed].join(", ")}).`,
      });
    },
  };
}

/** Nobody outside hears of a review. What was shown to it has not been shown in the conversation: it remembers its own reading. */
function quietPorts(ports: AgentPorts): AgentPorts {
  const { compression: _, follower: __, hints: ___, events: ____, ...rest } = ports;
  const { skills, ...toolPorts } = ports.toolPorts ?? {};
  const own = skills?.fork?.() ?? skills;
  return { ...rest, toolPorts: { ...toolPorts, ...(own ? { skills: own } : {}) }, guardFor: () => DENY };
}

const DENY: CommandGuard = {
  decide: async () => ({
    approved: false,
    message: "Commands do not run in a review.",
    description: null,
    patternKey: null,
  }),
};

/** A model of its own only where the settings name one whole and it can be asked; otherwise the conversation's, whose cache is warm. */
async function otherModel(ports: AgentPorts, { model }: SentSoFar): Promise<ModelChoice | null> {
  const settings = ports.config().auxiliary.background_review;
  const provider = settings.base_url && isAuto(settings.provider) ? "custom" : settings.provider;
  if (isAuto(provider) || settings.model === "" || !ports.resolvePlace) return null;
  const { base_url, api_key, context_length } = settings;
  try {
    const target = await ports.resolvePlace({
      provider,
      model: settings.model,
      ...(base_url ? { baseUrl: base_url } : {}),
      ...(api_key ? { apiKey: api_key } : {}),
      ...(context_length ? { contextLength: context_length } : {}),
    });
    const same = target.model === model.target.model && target.baseUrl === model.target.baseUrl;
    if (same) return null;
    const { extra_body } = settings;
    return { target, ...(Object.keys(extra_body).length > 0 ? { overrides: extra_body } : {}) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    ports.log.warn(`auxiliary.background_review: ${why} The conversation's own model looks back instead.`);
    return null;
  }
}

const isAuto = (provider: string) => provider === "" || provider === "auto";

/** What is refused costs its call: a model that goes on asking for it must come to an end. */
class FirmBudget extends IterationBudget {
  override refund(): void {
    // nothing is given back
  }
}
